"""Which harness-made calls carry out what a model had said: marks for a later re-attribution. Rewrites nothing.

A call can be lifted where a reply that ended before it states every value that the call was made of. What the prompt
asked is not logged, so a mark says that the plan is in the reply, never that the model knew it was planning a call.
"""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from service.domain.actions import Inference, Step, ToolCall
from service.domain.attribution.provenance import CallProvenance, Issuer
from service.domain.tools import TERMINATE
from service.domain.trajectory import TOOLS, Trajectory, product_ids

SHORTEST = 3
"""Characters a value must have to say anything: a page number stands in many replies."""
MOST_VALUES = 2_000
"""Values read of one reply; what a client logs of one holds no more."""
MOST_STARTS = 64
"""Places of one reply that are tried as the beginning of JSON."""

_START = re.compile(r"[{\[]")
_INDEX = re.compile(r"/\d+(?=/|$)")
_TOLERANT = json.JSONDecoder(strict=False)


class Lift(StrEnum):
    """How much of a trajectory could be re-attributed to its model."""

    WHOLE = "whole"
    """Every call that searches, views or answers is the model's, or states what a reply chose."""
    PART = "part"
    NONE = "none"


class Match(NamedTuple):
    """One value of a call, and where a reply states it."""

    argument: str
    inference: int
    pointer: str
    """JSON pointer into the reply's JSON."""
    is_listed: bool
    """The reply gives more values in this place than were carried out: code chose among them."""


class LiftedCall(NamedTuple):
    """A harness-made call whose every value an earlier reply states."""

    step: int
    call: int
    matches: tuple[Match, ...]

    @property
    def is_chosen(self) -> bool:
        """The reply says these values and no others; otherwise it only listed them."""
        return not any(match.is_listed for match in self.matches)


class Lifting(NamedTuple):
    """What could be lifted of one trajectory."""

    extent: Lift
    calls: tuple[LiftedCall, ...]


class _Stated(NamedTuple):
    text: str
    inference: int
    pointer: str
    end_ms: int

    @property
    def place(self) -> tuple[int, str]:
        """The same for all entries of one list."""
        return self.inference, _INDEX.sub("/*", self.pointer)


def lifting(trajectory: Trajectory, calls: Sequence[CallProvenance]) -> Lifting:
    """Find the harness-made calls that state what an earlier reply said.

    Args:
        trajectory: what happened.
        calls: the attribution of its calls, in their order.

    Returns:
        The calls found. `WHOLE` and `PART` count only calls whose values the reply chose, not just listed.
    """
    stated: defaultdict[str, list[_Stated]] = defaultdict(list)
    places: defaultdict[tuple[int, str], set[str]] = defaultdict(set)
    for index, reply in enumerate(trajectory.inferences):
        for one in _stated(index, reply):
            stated[one.text].append(one)
            places[one.place].add(one.text)
    acting = TOOLS[trajectory.kind].search | TOOLS[trajectory.kind].view | TOOLS[trajectory.kind].answer
    found: dict[tuple[int, int], dict[str, _Stated]] = {}
    others = 0
    for of in calls:
        call = trajectory.steps[of.step].calls[of.call]
        sources = _sources(call, trajectory.steps[of.step], stated) if of.issuer is Issuer.HARNESS else {}
        if sources and call.name in acting:
            found[of.step, of.call] = sources
        else:
            others += of.issuer is not Issuer.MODEL and call.name != TERMINATE
    carried = {(one.place, one.text) for sources in found.values() for one in sources.values()}
    chosen = {place for place, texts in places.items() if all((place, text) in carried for text in texts)}
    lifted = tuple(
        LiftedCall(step, call, tuple(_match(value, one, chosen) for value, one in sources.items()))
        for (step, call), sources in found.items()
    )
    return Lifting(_extent(lifted, others), lifted)


def _match(value: str, one: _Stated, chosen: Collection[tuple[int, str]]) -> Match:
    return Match(value.partition(" ")[0], one.inference, one.pointer, one.place not in chosen)


def _extent(lifted: Sequence[LiftedCall], others: int) -> Lift:
    chosen = sum(each.is_chosen for each in lifted)
    if not chosen:
        return Lift.NONE
    return Lift.PART if others or chosen < len(lifted) else Lift.WHOLE


def _sources(call: ToolCall, step: Step, stated: Mapping[str, Sequence[_Stated]]) -> dict[str, _Stated]:
    """The last place before the call that states each of its values; empty where one is nowhere, or it has none."""
    sources: dict[str, _Stated] = {}
    for name, text in _values(call):
        earlier = [one for one in stated.get(text, ()) if step.timestamp_ms is None or one.end_ms <= step.timestamp_ms]
        if not earlier:
            return {}
        sources[f"{name} {text}"] = earlier[-1]
    return sources


def _values(call: ToolCall) -> Iterator[tuple[str, str]]:
    """The values that make a call what it is: product ids one by one, and texts."""
    if not isinstance(call.arguments, dict):
        return
    ids = product_ids(call.arguments)
    for name in ids:
        yield "product_ids", _plain(name)
    for name, value in call.arguments.items():
        if name in ("product_id", "product_ids") or not isinstance(value, str | int | float):
            continue
        text = _plain(str(value))
        if len(text) >= SHORTEST:
            yield name, text


def _stated(index: int, reply: Inference) -> Iterator[_Stated]:
    """Every text and number in the JSON that a reply holds."""
    if not reply.content:
        return
    left = MOST_VALUES
    for value in _json_in(reply.content):
        for pointer, text in _leaves(value, "", 12):
            if left == 0:
                return
            left -= 1
            yield _Stated(text, index, pointer, reply.timestamp_ms)


def _json_in(content: str) -> Iterator[Any]:
    at = 0
    for _ in range(MOST_STARTS):
        start = _START.search(content, at)
        if start is None:
            return
        try:
            value, at = _TOLERANT.raw_decode(content, start.start())
            yield value
        except (ValueError, RecursionError):
            at = start.start() + 1


def _leaves(value: Any, pointer: str, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict | list):
        if depth:
            inner = value.items() if isinstance(value, dict) else enumerate(value)
            for name, item in inner:
                yield from _leaves(item, f"{pointer}/{_escaped(str(name))}", depth - 1)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        text = _plain(str(value))
        if len(text) >= SHORTEST:
            yield pointer, text


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
