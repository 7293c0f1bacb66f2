"""The turns of a conversation as steps: who spoke, what was called, which result answers which call.

Not a wire format: `atif` and `messages` read theirs and say the turns to a `Turns`.
"""

from typing import Any, NamedTuple

from service.domain.actions import Step, ToolCall
from service.domain.wire.lenient import Defect, storable

ENOUGH_PARTS = 4_001
"""So many turns, calls and results together are more than any agent makes: two for each step or call that
`trajectory` allows. A conversation with as many is oversized, and is not read."""


class Told(NamedTuple):
    """What could be read of a conversation. `query` is None where no user spoke before the agent did."""

    query: str | None
    steps: tuple[Step, ...]
    defects: tuple[Defect, ...]


class Said(NamedTuple):
    """One call as an agent's turn names it."""

    name: str
    arguments: dict[str, Any] | str
    call_id: str = ""


class _Turn:
    def __init__(self, think: str, response: str, calls: list[Said], timestamp_ms: int | None) -> None:
        self.think = think
        self.response = response
        self.calls = calls
        self.results: list[Any] = [None] * len(calls)
        self.timestamp_ms = timestamp_ms
        self.shopper: list[str] = []


class Turns:
    """Collects a conversation, turn by turn. What the first user says before the agent speaks is the query."""

    def __init__(self, defects: tuple[Defect, ...] = ()) -> None:
        self._query: list[str] = []
        self._turns: list[_Turn] = []
        self._defects = dict.fromkeys(defects)
        self._parts = 0

    @property
    def full(self) -> bool:
        """More has been said than any agent says; the rest need not be read."""
        return self._parts >= ENOUGH_PARTS

    def flaw(self, defect: Defect) -> None:
        """Note that a part had to be left out; it counts as one."""
        self._parts += 1
        self._defects[defect] = None

    def user(self, text: str) -> None:
        """The user speaks."""
        self._parts += 1
        if text:
            (self._turns[-1].shopper if self._turns else self._query).append(text)

    def agent(self, *, think: str, response: str, calls: list[Said], timestamp_ms: int | None = None) -> None:
        """The agent speaks, calls tools, or both."""
        kept = calls[: ENOUGH_PARTS - self._parts]
        self._parts += 1 + len(kept)
        self._turns.append(_Turn(think, response, kept, timestamp_ms))

    def result(self, call_id: str, value: Any) -> None:
        """A tool answers the first waiting call of the last turn that has this id, or, without one, that waits."""
        self._parts += 1
        turn = self._turns[-1] if self._turns else None
        for place, call in enumerate(turn.calls if turn else ()):
            assert turn is not None
            if turn.results[place] is None and call_id in ("", call.call_id):
                turn.results[place] = "" if value is None else value
                return
        self.flaw(Defect.BAD_STEP)

    def told(self) -> Told:
        """All of it; nothing of a conversation that is oversized."""
        if self.full:
            return Told(None, (), (*self._defects, Defect.OVERSIZED))
        query = storable("\n\n".join(self._query)) if self._query else None
        return Told(query, tuple(_step(place, turn) for place, turn in enumerate(self._turns)), tuple(self._defects))


def _step(place: int, turn: _Turn) -> Step:
    return Step(
        index=place,
        think=turn.think,
        calls=tuple(
            ToolCall(name=call.name, arguments=call.arguments, call_id=call.call_id, result=result)
            for call, result in zip(turn.calls, turn.results, strict=True)
        ),
        response=turn.response,
        timestamp_ms=turn.timestamp_ms,
        shopper_message="\n\n".join(turn.shopper) or None,
    )
