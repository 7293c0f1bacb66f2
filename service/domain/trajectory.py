"""What an agent did in one item, as one typed value whatever wire format it came in.

Not a judgement: nothing here says who made a call or whether the row is worth keeping. `parse` never raises; what
was wrong with the bytes is listed in `defects`, and whatever could be read survives.
"""

from collections.abc import Iterator
from typing import Any, assert_never

import msgspec

from service.domain import dialogues
from service.domain.actions import EpisodeFeedback, Inference, NativeCall, Search, Step, ToolCall
from service.domain.sn15.failures import category_of
from service.domain.sn15.judgement import Judgement
from service.domain.tools import TOOLS, ExecutionKind, ToolRoles, product_ids
from service.domain.wire import atif as atif_wire
from service.domain.wire import envpack as envpack_wire
from service.domain.wire import legacy as legacy_wire
from service.domain.wire import messages as messages_wire
from service.domain.wire.conversation import Told
from service.domain.wire.lenient import Defect, is_deeper, storable

__all__ = [
    "TOOLS",
    "Defect",
    "EpisodeFeedback",
    "ExecutionKind",
    "Inference",
    "Judgement",
    "NativeCall",
    "Search",
    "Step",
    "ToolCall",
    "ToolRoles",
    "Trajectory",
    "parse",
    "product_ids",
]

PARSER_VERSION = "sluice-parser/2"
"""Names what is read of payloads (here) and of replies (`replies`): a change that can change a verdict is a new one."""

LARGEST_PAYLOAD_BYTES = 4 << 20
"""The executor lets no dialogue over 64 KiB out, and the log around it drops replies over 2,000 characters."""
MOST_PARTS = 2_000
"""Most steps, calls and log lines together: agents stop after some 30 steps. What follows is quadratic at worst."""
DEEPEST = 64
"""Most levels of lists and objects in a call's arguments or result: tools need some five, and what follows recurses."""


class Trajectory(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One item's record. `inferences` and `searches` are in order of time, whichever step they were filed under."""

    kind: ExecutionKind
    problem_id: str | None = None
    query: str | None = None
    """As the agent reported it (legacy) or the validator traced it (envpack)."""
    steps: tuple[Step, ...] = ()
    inferences: tuple[Inference, ...] = ()
    searches: tuple[Search, ...] = ()
    execution_seconds: float | None = None
    defects: tuple[Defect, ...] = ()
    feedback: EpisodeFeedback | None = None

    @property
    def empty(self) -> bool:
        """No steps: the agent failed, timed out, or returned nothing that could be uploaded."""
        return not self.steps

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """All calls in order."""
        return tuple([call for step in self.steps for call in step.calls])

    @property
    def answers(self) -> tuple[ToolCall, ...]:
        """Calls that name the products settled on, failed ones left out."""
        naming = TOOLS[self.kind].answer
        return tuple([call for call in self.tool_calls if call.name in naming and call.error_code is None])

    @property
    def answer(self) -> tuple[str, ...]:
        """Product ids of the last of the answers: stripped, without repeats, in order."""
        answers = self.answers
        return product_ids(answers[-1].arguments) if answers else ()


def parse(payload: bytes, kind: ExecutionKind) -> Trajectory:
    """Read the bytes of one item. Never raises, whatever the bytes are."""
    if len(payload) > LARGEST_PAYLOAD_BYTES:
        return Trajectory(kind=kind, defects=(Defect.OVERSIZED,))
    is_shallow = False
    match kind:
        case ExecutionKind.LEGACY:
            steps, defects, is_shallow = legacy_wire.read(payload)
            trajectory = _from_dialogue(dialogues.told(steps), defects)
        case ExecutionKind.ENVPACK:
            trajectory = _from_feedback(*envpack_wire.decode(payload))
        case ExecutionKind.ATIF:
            trajectory = _from_told(kind, atif_wire.decode(payload))
        case ExecutionKind.MESSAGES:
            trajectory = _from_told(kind, messages_wire.decode(payload))
        case _:
            assert_never(kind)
    log_lines = len(trajectory.inferences) + len(trajectory.searches)
    parts = log_lines + sum(1 + len(step.calls) for step in trajectory.steps)
    if parts > MOST_PARTS or Defect.OVERSIZED in trajectory.defects:
        return Trajectory(kind=kind, defects=(Defect.OVERSIZED,))
    if not is_shallow and any(is_deeper(value, DEEPEST) for value in _free_values(trajectory)):
        return Trajectory(kind=kind, defects=(Defect.TOO_DEEP,))
    return trajectory


def _free_values(trajectory: Trajectory) -> Iterator[Any]:
    """Values whose shape no wire format fixes. JSON inside a text is not looked at: its readers bound themselves."""
    for call in trajectory.tool_calls:
        yield call.arguments
        yield call.result
    for reply in trajectory.inferences:
        for native in reply.native_calls:
            yield native.arguments
    for search in trajectory.searches:
        yield search.params


def _from_dialogue(said: dialogues.Told, defects: tuple[Defect, ...]) -> Trajectory:
    return Trajectory(
        kind=ExecutionKind.LEGACY,
        problem_id=said.problem_id,
        query=said.query,
        steps=said.steps,
        inferences=said.inferences,
        searches=said.searches,
        execution_seconds=said.execution_seconds,
        defects=defects,
    )


def _from_feedback(body: envpack_wire.WireFeedback, defects: tuple[Defect, ...]) -> Trajectory:
    return Trajectory(
        kind=ExecutionKind.ENVPACK,
        query=storable(body.query) if body.query is not None else None,
        steps=tuple(_envpack_step(index, step) for index, step in enumerate(body.interaction or ())),
        defects=defects,
        feedback=EpisodeFeedback(
            outcome=body.outcome,
            passed=body.passed,
            paid_reward=body.paid_reward,
            failure_category=category_of(body.failure_category),
            failure_given=body.failure_category,
            termination_code=body.termination_code,
            family=body.family,
            task_id=body.task_id,
            schema_version=body.schema_version,
        ),
    )


def _envpack_step(index: int, step: envpack_wire.WireStep) -> Step:
    return Step(
        index=index,
        calls=tuple(
            ToolCall(
                name=call.tool_name or "",
                arguments=call.args or {},
                call_id=call.call_id or "",
                result=call.observation,
                error_code=call.error_code,
                done=call.done,
            )
            for call in step.calls or ()
        ),
        response=step.message or "",
        shopper_message=step.shopper_message,
    )


def _from_told(kind: ExecutionKind, told: Told) -> Trajectory:
    return Trajectory(kind=kind, query=told.query, steps=told.steps, defects=told.defects)
