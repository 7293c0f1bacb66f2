"""Which reply holds which executed call. Says nothing of who issued a call that no reply holds.

Content decides: a reply that holds an equal call is paired with it whatever the times say. Times only choose between
equal calls: a reply goes first to a call whose step was built after it came.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from service.domain.actions import NativeCall, Step, ToolCall
from service.domain.attribution.replies import ReplyCalls, call_key
from service.domain.trajectory import Trajectory

SECOND_MS = 1_000


class Match(StrEnum):
    """How a reply's call equals the executed one."""

    EXACT = "exact"
    """The same name and the same arguments."""
    NORMALISED = "normalised"
    """The same once order, white space, escapes and the ways to write a number or a list are set aside."""


class Executed(NamedTuple):
    """One call of a trajectory with its place."""

    step: Step
    place: int
    """Within its step."""
    call: ToolCall


class Held(NamedTuple):
    """The reply that holds a call."""

    inference: int
    match: Match


class Clock:
    """Which replies came early enough to have led to a step."""

    def __init__(self, trajectory: Trajectory) -> None:
        self._trajectory = trajectory
        self._ends = [reply.timestamp_ms for reply in trajectory.inferences]

    def came_before(self, inference: int, step: Step) -> bool:
        """Whether a reply came before a step was built, by the step's own stamp."""
        stamp_ms = _latest_ms(step)
        return stamp_ms is None or self._ends[inference] <= stamp_ms

    def may_have_led(self, inference: int, step: Step) -> bool:
        """The same, but a stamp from before the log began is of another clock and tells nothing."""
        return self.came_before(inference, step) or self._is_of_another_clock(step)

    def replies_before(self, step: Step) -> int | None:
        """How many replies, the first ones of the log, came before a step was built; None: nothing tells."""
        stamp_ms = _latest_ms(step)
        if stamp_ms is None or self._is_of_another_clock(step):
            return None
        return bisect_right(self._ends, stamp_ms)

    @cached_property
    def _start_ms(self) -> float:
        logs = (self._trajectory.inferences, self._trajectory.searches)
        return min((line.timestamp_ms - line.duration_ms for log in logs for line in log), default=0.0)

    def _is_of_another_clock(self, step: Step) -> bool:
        return step.timestamp_ms is not None and step.timestamp_ms < self._start_ms


def _latest_ms(step: Step) -> int | None:
    """The latest time at which a step was built. Agents stamp their steps; whole seconds may have been cut off."""
    stamp = step.timestamp_ms
    return stamp if stamp is None or stamp % SECOND_MS else stamp + SECOND_MS - 1


def executed_calls(trajectory: Trajectory) -> list[Executed]:
    """All calls in order."""
    return [Executed(step, place, call) for step in trajectory.steps for place, call in enumerate(step.calls)]


def pair(executed: Sequence[Executed], replies: Sequence[ReplyCalls], clock: Clock) -> list[Held | None]:
    """For each executed call the reply that holds it: equal calls in order, each call of a reply once."""
    emitted = [(inference, call) for inference, reply in enumerate(replies) for call in reply.calls]
    if not emitted:
        return [None] * len(executed)
    if len(emitted) == len(executed) and all(
        said.name == one.call.name and said.arguments == one.call.arguments
        for (_, said), one in zip(emitted, executed, strict=True)
    ):
        # The usual case, told without spelling anything out: call by call the same, so pairing in order is this.
        return [Held(inference, Match.EXACT) for inference, _ in emitted]
    waiting: dict[str, deque[tuple[int, NativeCall]]] = {}
    for inference, said in emitted:
        waiting.setdefault(call_key(said.name, said.arguments), deque()).append((inference, said))
    held: list[Held | None] = [None] * len(executed)
    late: list[tuple[int, deque[tuple[int, NativeCall]]]] = []
    for number, one in enumerate(executed):
        equal = waiting.get(call_key(one.call.name, one.call.arguments))
        if equal and clock.came_before(equal[0][0], one.step):
            held[number] = _held(*equal.popleft(), one.call)
        elif equal:
            late.append((number, equal))
    for number, equal in late:
        if equal:
            held[number] = _held(*equal.popleft(), executed[number].call)
    return held


def _held(inference: int, said: NativeCall, call: ToolCall) -> Held:
    is_exact = said.name == call.name and said.arguments == call.arguments
    return Held(inference, Match.EXACT if is_exact else Match.NORMALISED)
