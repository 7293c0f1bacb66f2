"""What an agent did in one item, as one typed value whatever wire format it came in.

Not a judgement: nothing here says who made a call or whether the row is worth keeping. `parse` never raises; what
was wrong with the bytes is listed in `defects`, and whatever could be read survives.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple, assert_never

import msgspec

from service.domain.actions import EpisodeFeedback, Inference, NativeCall, Search, Step, ToolCall
from service.domain.failures import category_of
from service.domain.judgement import Judgement
from service.domain.wire import atif as atif_wire
from service.domain.wire import envpack as envpack_wire
from service.domain.wire import legacy as legacy_wire
from service.domain.wire import messages as messages_wire
from service.domain.wire.conversation import Told
from service.domain.wire.lenient import Defect, storable

__all__ = [
    "Defect",
    "EpisodeFeedback",
    "ExecutionKind",
    "Inference",
    "Judgement",
    "NativeCall",
    "Search",
    "Step",
    "ToolCall",
    "Trajectory",
    "parse",
    "product_ids",
]

PARSER_VERSION = "sluice-parser/1"
"""Names what is read of payloads (here) and of replies (`replies`): a change that can change a verdict is a new one."""

LARGEST_PAYLOAD_BYTES = 4 << 20
"""The executor lets no dialogue over 64 KiB out, and the log around it drops replies over 2,000 characters."""
MOST_PARTS = 2_000
"""Most steps, calls and log lines together: agents stop after some 30 steps. What follows is quadratic at worst."""
DEEPEST = 64
"""Most levels of lists and objects in a call's arguments or result: tools need some five, and what follows recurses."""

LIST_KEYS = ("product_ids", "product_id")


class ExecutionKind(StrEnum):
    """Which harness ran the agent; it decides the wire format and what evidence can exist."""

    LEGACY = "legacy_shoppingbench"
    ENVPACK = "envpack"
    ATIF = "atif"
    """Of an imported file: no harness is known, and nothing but the document."""
    MESSAGES = "messages"
    """The same of a chat row."""


class ToolRoles(NamedTuple):
    """What the tools of one execution kind are for; tools of other names are for none of it."""

    search: frozenset[str]
    """They list products."""
    view: frozenset[str]
    """They show products again: those that their arguments name, or those left under one more condition."""
    answer: frozenset[str]
    """They name the products an agent settled on."""
    logged: frozenset[str] = frozenset()
    """Their every call asks the catalogue through the client whose log the payload holds."""


IMPORTED_TOOLS = ToolRoles(
    search=frozenset({"find_product", "search", "filter"}),
    view=frozenset({"view_product_information", "filter"}),
    answer=frozenset({"recommend_product", "place_test_order"}),
)
"""Those of both harnesses: a file of either may be imported."""

TOOLS: Mapping[ExecutionKind, ToolRoles] = {
    ExecutionKind.LEGACY: ToolRoles(
        search=frozenset({"find_product"}),
        view=frozenset({"view_product_information"}),
        answer=frozenset({"recommend_product"}),
        logged=frozenset({"find_product", "view_product_information"}),
    ),
    ExecutionKind.ENVPACK: ToolRoles(
        search=frozenset({"search", "filter"}),
        view=frozenset({"filter"}),
        answer=frozenset({"place_test_order"}),
    ),
    ExecutionKind.ATIF: IMPORTED_TOOLS,
    ExecutionKind.MESSAGES: IMPORTED_TOOLS,
}
"""The published tools. Episodes have none to view one product: their searches show whole listings."""


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
        return tuple(call for step in self.steps for call in step.calls)

    @property
    def answer(self) -> tuple[str, ...]:
        """Product ids of the last answering call: stripped, without repeats, in order."""
        for step in reversed(self.steps):
            for call in reversed(step.calls):
                if call.name in TOOLS[self.kind].answer:
                    return product_ids(call.arguments)
        return ()


def product_ids(arguments: dict[str, Any] | str) -> tuple[str, ...]:
    """Ids named by a call's arguments, which agents write as "a,b", as ["a", "b"] or as a number."""
    if isinstance(arguments, str):
        return ()
    named = next((arguments[key] for key in LIST_KEYS if arguments.get(key)), "")
    parts = named if isinstance(named, list) else str(named).split(",")
    ids = dict.fromkeys([storable(str(part).strip()) for part in parts if isinstance(part, (str, int))])
    ids.pop("", None)
    return tuple(ids)


def parse(payload: bytes, kind: ExecutionKind) -> Trajectory:
    """Read the bytes of one item. Never raises, whatever the bytes are."""
    if len(payload) > LARGEST_PAYLOAD_BYTES:
        return Trajectory(kind=kind, defects=(Defect.OVERSIZED,))
    is_shallow = False
    match kind:
        case ExecutionKind.LEGACY:
            steps, defects, is_shallow = legacy_wire.decode(payload)
            trajectory = _from_dialogue(steps, defects)
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
    if any(_deeper(value, DEEPEST) for value in _free_values(trajectory, is_shallow)):
        return Trajectory(kind=kind, defects=(Defect.TOO_DEEP,))
    return trajectory


def _free_values(trajectory: Trajectory, is_shallow: bool) -> Iterator[Any]:
    """Values whose shape no wire format fixes, those of calls left out where they are known to be shallow.

    JSON inside a text is not looked at: its readers bound themselves.
    """
    for call in () if is_shallow else trajectory.tool_calls:
        yield call.arguments
        yield call.result
    for reply in trajectory.inferences:
        for native in reply.native_calls:
            yield native.arguments
    for search in trajectory.searches:
        yield search.params


def _deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects nest more than so many levels."""
    if not isinstance(value, dict | list):
        return False
    if levels == 0:
        return True
    inner = value.values() if isinstance(value, dict) else value
    return any(_deeper(item, levels - 1) for item in inner)


def _from_dialogue(steps: list[legacy_wire.WireStep], defects: tuple[Defect, ...]) -> Trajectory:
    extras = [step.extra_info for step in steps if step.extra_info is not None]
    lines = [line for extra in extras for line in extra.proxy_calls or ()]
    lines.sort(key=_end)
    return Trajectory(
        kind=ExecutionKind.LEGACY,
        problem_id=next((extra.problem_id for extra in extras if extra.problem_id), None),
        query=next((storable(extra.query) for extra in extras if extra.query), None),
        steps=tuple(_legacy_step(index, step) for index, step in enumerate(steps)),
        inferences=tuple(_inference(line) for line in lines if "/inference/" in line.path),
        searches=tuple(_search(line) for line in lines if "/search/" in line.path),
        execution_seconds=next((extra.execution_time for extra in extras if extra.execution_time is not None), None),
        defects=defects,
    )


def _end(line: legacy_wire.WireProxyCall) -> float:
    return line.timestamp


def _legacy_step(index: int, step: legacy_wire.WireStep) -> Step:
    message = step.completion.message if step.completion else None
    timestamp = step.extra_info.timestamp if step.extra_info else None
    if message is None:
        return Step(index=index, timestamp_ms=_milliseconds(timestamp))
    return Step(
        index=index,
        think=message.think or "",
        calls=tuple(
            ToolCall(
                name=call.name or "",
                arguments=call.parameters or {},
                call_id=call.tool_call_id or "",
                result=call.result,
            )
            for call in message.tool_call or ()
        ),
        response=message.response or "",
        timestamp_ms=_milliseconds(timestamp),
    )


def _inference(line: legacy_wire.WireProxyCall) -> Inference:
    request = line.json_data
    reply = legacy_wire.reply(line.response) if line.response else None
    message = reply.choices[0].message if reply and reply.choices else None
    usage = reply.usage if reply else None
    cut = bool(line.response_truncated) or line.response_length is not None
    return Inference(
        timestamp_ms=int(line.timestamp),
        duration_ms=line.duration_ms or 0.0,
        model=request.model if request else None,
        content=message.content if message else None,
        native_calls=tuple(
            NativeCall(call.function.name or "", call.function.arguments)
            for call in (message.tool_calls if message else None) or ()
            if call.function
        ),
        dropped=message is None and (cut or line.status_code is not None),
        response_length=line.response_length,
        prompt_tokens=usage.prompt_tokens if usage else None,
        completion_tokens=usage.completion_tokens if usage else None,
        failed=message is None and not cut and line.status_code is None,
        offered_tools=bool(request and request.tools),
    )


def _search(line: legacy_wire.WireProxyCall) -> Search:
    ids = line.result_product_ids
    listed = tuple(str(name) for name in ids) if ids is not None else None
    if listed is None and line.response:
        listed = legacy_wire.listed_ids(line.response)
    return Search(
        path=line.path,
        timestamp_ms=int(line.timestamp),
        duration_ms=line.duration_ms or 0.0,
        params=line.params or {},
        product_ids=listed,
        failed=line.status_code is None,
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


def _milliseconds(timestamp: float | None) -> int | None:
    return None if timestamp is None else int(timestamp)
