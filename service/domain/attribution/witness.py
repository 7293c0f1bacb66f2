"""Compare the requests that a trajectory claims with those that the validator's proxy served. Judges no trajectory.

A line of the proxy's log names no run: it fits a claim by path, arguments, status, size and time. Where others ran at
the same time and could have made the same request, a fit proves less, and is called ambiguous.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

import msgspec

from service.domain import canonical
from service.domain.wire import legacy as legacy_wire

RECORD_VERSION = 1
LATEST_MS = 4_102_444_800_000
"""2100: agents set their clocks as they like, and later is no time."""
NEIGHBOURHOOD_MS = 60_000
"""Claims closer than this are looked up together."""
MOST_NEIGHBOURHOODS = 50


@dataclass(frozen=True, slots=True)
class WitnessRule:
    """How close a line must be to a claim."""

    name: str = "witness-1"
    slack_ms: int = 2_000
    """Two clocks of one machine, and the way from the proxy to the client."""
    smallest_share: float = 1 / 6
    """Of the claimed characters: JSON as logged spends six on a character of two bytes, and spaces."""
    largest_share: float = 2.0
    """Of the claimed characters: a body may come with more white space than is logged of it."""

    @property
    def digest(self) -> str:
        """Sha256 hex of the canonical form."""
        return canonical.digest(self)


WITNESS_1 = WitnessRule()


class Fit(StrEnum):
    """What the proxy's log says of one claimed request."""

    MATCHED = "matched"
    AMBIGUOUS = "ambiguous"
    """A line fits, and it could be that of another run or item of the same time."""
    SIZE_DIFFERS = "size_differs"
    """A line fits but for the size of the reply."""
    UNMATCHED = "unmatched"
    NOT_COVERED = "not_covered"
    """The log that was read begins later or ends earlier."""
    NO_REPLY = "no_reply"
    """The claim itself says that nothing came back: there is nothing to witness."""


class Served(NamedTuple):
    """One request as the proxy logged it."""

    at_ms: int
    """It ended within `resolution_ms` from here."""
    resolution_ms: int
    method: str | None
    path: str
    arguments: Mapping[str, str]
    status: int | None
    body_bytes: int | None
    request_bytes: int | None
    seconds: float | None


class Claim(NamedTuple):
    """One request as the trajectory's own log claims it."""

    is_search: bool
    path: str
    end_ms: int
    arguments: Mapping[str, str]
    status: int | None
    characters: int | None
    """Of the reply, spelled as JSON; None where the log does not say."""
    has_reply: bool


class Span(NamedTuple):
    """A stretch of time, both ends included."""

    start_ms: int
    end_ms: int


class Rival(NamedTuple):
    """Another item of this validator that ran meanwhile."""

    span: Span
    is_same_problem: bool


def claims(payload: bytes) -> list[Claim]:
    """The requests that a legacy payload claims, searches and inferences each in the order `Trajectory` has them."""
    steps = legacy_wire.decode(payload).steps
    lines = [line for step in steps if step.extra_info is not None for line in step.extra_info.proxy_calls or ()]
    lines.sort(key=lambda line: line.timestamp)
    return [_claim(line) for line in lines if legacy_wire.is_inference(line.path) or legacy_wire.is_search(line.path)]


def neighbourhoods(claimed: Iterable[Claim], rule: WitnessRule = WITNESS_1) -> list[Span]:
    """Where to look for lines: the claims' times with some slack, those close together joined."""
    spans: list[Span] = []
    for end_ms in sorted(claim.end_ms for claim in claimed if claim.has_reply and 0 < claim.end_ms < LATEST_MS):
        reach = Span(end_ms - rule.slack_ms - 1_000, end_ms + rule.slack_ms)
        if spans and reach.start_ms - spans[-1].end_ms <= NEIGHBOURHOOD_MS:
            spans[-1] = Span(spans[-1].start_ms, reach.end_ms)
        else:
            spans.append(reach)
    return spans[:MOST_NEIGHBOURHOODS]


def compare(
    claimed: Sequence[Claim],
    served: Sequence[Served],
    covered: Span,
    rivals: Sequence[Rival],
    rule: WitnessRule = WITNESS_1,
) -> dict[str, Any]:
    """Say of each claimed request whether the proxy served it. A line stands for one claim at most.

    Claims are paired with lines in order of time, which is exact where a claim's lines differ in time alone.

    Args:
        claimed: as `claims` gives them.
        served: all lines in the claims' neighbourhoods, in order of time.
        covered: from the first to the last line of the log that was read.
        rivals: what else ran on this validator in that time.
        rule: how close is close.

    Returns:
        A record for `Evidence.witness`: a `Fit` for each search and each inference, and no text.
    """
    by_path: dict[str, list[Served]] = {}
    for line in served:
        by_path.setdefault(line.path, []).append(line)
    taken: set[int] = set()
    fits = [_fit(claim, by_path.get(claim.path, []), taken, covered, rivals, rule) for claim in claimed]
    pairs = list(zip(claimed, fits, strict=True))
    return {
        "kind": "proxy",
        "version": RECORD_VERSION,
        "rule": rule.name,
        "rule_digest": rule.digest,
        "searches": [fit.value for claim, fit in pairs if claim.is_search],
        "inferences": [fit.value for claim, fit in pairs if not claim.is_search],
    }


def _fit(
    claim: Claim,
    lines: Sequence[Served],
    taken: set[int],
    covered: Span,
    rivals: Sequence[Rival],
    rule: WitnessRule,
) -> Fit:
    if not claim.has_reply:
        return Fit.NO_REPLY
    if not covered.start_ms - rule.slack_ms <= claim.end_ms <= covered.end_ms + rule.slack_ms:
        return Fit.NOT_COVERED
    first = bisect_left(lines, claim.end_ms - rule.slack_ms - 1_000, key=_at)
    is_near = False
    for line in lines[first:]:
        if line.at_ms - rule.slack_ms > claim.end_ms:
            break
        if id(line) in taken or not _fits(claim, line, rule):
            continue
        if _size_fits(claim, line, rule):
            taken.add(id(line))
            return Fit.AMBIGUOUS if _is_contended(claim, rivals) else Fit.MATCHED
        is_near = True
    return Fit.SIZE_DIFFERS if is_near else Fit.UNMATCHED


def _at(line: Served) -> int:
    return line.at_ms


def _fits(claim: Claim, line: Served, rule: WitnessRule) -> bool:
    return (
        line.at_ms - rule.slack_ms <= claim.end_ms <= line.at_ms + line.resolution_ms + rule.slack_ms
        and (line.status is None or claim.status is None or line.status == claim.status)
        and (not claim.is_search or _asked(line.arguments) == _asked(claim.arguments))
    )


def _size_fits(claim: Claim, line: Served, rule: WitnessRule) -> bool:
    if claim.characters is None or line.body_bytes is None:
        return True
    return rule.smallest_share * claim.characters <= line.body_bytes <= rule.largest_share * claim.characters + 2


def _is_contended(claim: Claim, rivals: Sequence[Rival]) -> bool:
    """Searches are told apart by what they ask, unless others shop for the same; inferences by nothing."""
    return any(
        rival.span.start_ms <= claim.end_ms <= rival.span.end_ms and (not claim.is_search or rival.is_same_problem)
        for rival in rivals
    )


def _asked(arguments: Mapping[str, str]) -> dict[str, str]:
    """Arguments as the shopper meant them: clients quote a search's words once or twice."""
    return {name: unquote_plus(unquote_plus(value)) for name, value in arguments.items() if value}


def _claim(line: legacy_wire.Line) -> Claim:
    characters = line.response_length
    if characters is None and line.response:
        characters = _characters(line.response)
    return Claim(
        is_search=legacy_wire.is_search(line.path),
        path=line.path,
        end_ms=int(line.timestamp),
        arguments={name: _spelled(value) for name, value in (line.params or {}).items() if value is not None},
        status=line.status_code,
        characters=characters,
        has_reply=line.status_code is not None,
    )


def _spelled(value: Any) -> str:
    """An argument as a client puts it into a URL; what no tool would put there fits no line."""
    if isinstance(value, str):
        return value
    is_number = isinstance(value, int | float) and abs(value) <= legacy_wire.LARGEST
    return str(value) if is_number else "\0"


def _characters(response: msgspec.Raw) -> int | None:
    """Length of a logged reply; one that is spelled otherwise than the executor spells it differs a little."""
    return len(bytes(response)) or None
