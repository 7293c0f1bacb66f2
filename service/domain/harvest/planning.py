"""The harvest plan: which open items to ask the source for next, so that the corpus gains most per request, and why.

Not the ledger, which says what is open, and not a verdict: what is fetched is judged alike in whatever order it came.
The plan is a greedy choice over gains that only fall as more is asked for, so a heap of stale gains finds exactly what
a full search would. It does not depend on the order of what it is given; ties go to the lower ledger id.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from service.domain.harvest.chances import Chance, Knowledge
from service.domain.harvest.gains import Candidate, Gains, Parts, PlanPolicy, Standing


class PlanReason(StrEnum):
    """Why an item is asked for: the largest part of its gain, or what puts it outside the order of gains."""

    FIRST_KEPT = "first_kept"
    """It may give its problem the first kept trajectory."""
    VERSION_UNSAMPLED = "version_unsampled"
    """Its agent version has been seen on too few problems."""
    FAMILY_UNSEEN = "family_unseen"
    """Little of its agent family has been seen."""
    DEPTH = "depth"
    """One more kept trajectory of a problem that has some."""
    CLEAN_FAILURE = "clean_failure"
    """It may be usable as an undesirable example."""
    COMPLETENESS = "completeness"
    """Hardly anything is expected of it; everything is fetched in the end."""
    DUE_AGAIN = "due_again"
    """A try that failed is repeated."""
    LISTED_OTHERWISE = "listed_otherwise"
    """It is stored, and what is stored may be out of date."""
    LONGEST_DUE = "longest_due"
    """Its turn has come whatever it promises: nothing waits for ever."""


_OF_PART = (
    PlanReason.FIRST_KEPT,
    PlanReason.VERSION_UNSAMPLED,
    PlanReason.FAMILY_UNSEEN,
    PlanReason.DEPTH,
    PlanReason.CLEAN_FAILURE,
    PlanReason.COMPLETENESS,
)
"""The reason that each of `Parts` stands for."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One item to ask for, and the numbers behind it as they were when it was chosen."""

    item: Candidate
    reason: PlanReason
    gain: float
    """Per request."""
    chance: Chance
    parts: Parts
    problem_kept: int
    problem_expected: float
    """Kept trajectories expected of what is under way of the problem."""
    version_sampled: int
    """Problems on which the version has been seen or is about to be."""
    version_in_flight: int


class _Cells:
    """Open items in groups that promise the same: only the lowest id of each is looked at."""

    def __init__(self, items: Iterable[Candidate]) -> None:
        groups: defaultdict[tuple[object, ...], list[Candidate]] = defaultdict(list)
        last_first = sorted(items, reverse=True)
        for item in last_first:
            groups[item[1:]].append(item)
        self._waiting = sorted(last_first, key=lambda item: (item.attempts, item.ledger_id), reverse=True)
        self._groups = groups
        self._taken: set[int] = set()

    def heads(self) -> Iterator[Candidate]:
        return (group[-1] for group in self._groups.values())

    def is_taken(self, item: Candidate) -> bool:
        return item.ledger_id in self._taken

    def take(self, item: Candidate) -> Candidate | None:
        """Take the head of a group; returns the next one."""
        self._taken.add(item.ledger_id)
        group = self._groups[item[1:]]
        while group and group[-1].ledger_id in self._taken:
            group.pop()
        return group[-1] if group else None

    def longest_due(self) -> Candidate | None:
        """The open item with the lowest id, of those refused least often: it was listed first."""
        while self._waiting and self._waiting[-1].ledger_id in self._taken:
            self._waiting.pop()
        return self._waiting[-1] if self._waiting else None


def plan(
    candidates: Iterable[Candidate],
    in_flight: Iterable[Candidate],
    knowledge: Knowledge,
    policy: PlanPolicy,
    requests: float,
) -> list[Choice]:
    """Choose what to ask for next.

    Args:
        candidates: open items that are due, none of them under way.
        in_flight: items that are under way: sent, being fetched, or waiting for their verdict.
        knowledge: what verdicts have said.
        policy: the numbers to choose by.
        requests: what may be spent; the last choice may go beyond it by less than its cost.

    Returns:
        Choices, best first; everything when `requests` allows it.
    """
    gains = Gains(knowledge, policy)
    asked_before = sum(tally.judged for tally in knowledge.overall.values())
    for asked in sorted(in_flight):
        gains.underway.add(asked)
        asked_before += 1
    cells = _Cells(candidates)
    heap = [(-gains.gain(first), first) for first in cells.heads()]
    heapq.heapify(heap)
    chosen: list[Choice] = []
    spent = 0
    while spent < requests:
        is_turn = (asked_before + len(chosen) + 1) % policy.longest_due_every == 0
        item = cells.longest_due() if is_turn else _best(heap, gains, cells)
        if item is None:
            break
        chosen.append(_choice(item, gains, PlanReason.LONGEST_DUE if is_turn else None))
        spent += item.cost
        gains.underway.add(item)
        following = cells.take(item)
        if following is not None:
            heapq.heappush(heap, (-gains.gain(following), following))
    return chosen


def _best(heap: list[tuple[float, Candidate]], gains: Gains, cells: _Cells) -> Candidate | None:
    """Take the item with the largest gain off the heap, whose gains are those of an earlier time: none has risen."""
    while heap:
        _, item = heapq.heappop(heap)
        if cells.is_taken(item):
            continue
        fresh = (-gains.gain(item), item)
        if not heap or fresh <= heap[0]:
            return item
        heapq.heappush(heap, fresh)
    return None


def _choice(item: Candidate, gains: Gains, reason: PlanReason | None) -> Choice:
    parts = gains.parts(item)
    underway, version = gains.underway, item.agent_version_id
    return Choice(
        item=item,
        reason=reason or _reason(item, parts),
        gain=gains.gain(item),
        chance=gains.chance(item),
        parts=parts,
        problem_kept=gains.problem(item).kept,
        problem_expected=underway.expected[item.problem_id],
        version_sampled=len(underway.sampled.get(version, ())),
        version_in_flight=underway.of_version[version, item.hint],
    )


def _reason(item: Candidate, parts: Parts) -> PlanReason:
    if item.standing is Standing.REREAD:
        return PlanReason.LISTED_OTHERWISE
    if item.standing is Standing.RETRY:
        return PlanReason.DUE_AGAIN
    return _OF_PART[parts.index(max(parts))]
