"""Which kept trajectories one snapshot holds: ranked, without duplicates, capped. Every one left out has a reason.

Not a verdict: a trajectory left out of one snapshot may be chosen by the next. The result does not depend on the
order of the candidates.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from service.domain.canonical import digest
from service.domain.leakage import ProblemFacts
from service.domain.provenance import Trust
from service.domain.replies import call_key
from service.domain.structure import Verdict
from service.domain.trajectory import TOOLS, Trajectory, product_ids
from service.domain.trust import result_ids


class SelectionReason(StrEnum):
    """Why a kept trajectory is not in the snapshot."""

    TOMBSTONED = "tombstoned"
    """SN15 no longer counts the run, the agent version or the item."""
    TRUST_TOO_LOW = "trust_too_low"
    QUERY_UNCONFIRMED = "query_unconfirmed"
    """The query text is what one agent family says it was, so nothing shows that it is clean."""
    DUPLICATE = "duplicate"
    """A better ranked trajectory of the problem makes the same calls."""
    FAMILY_CAP = "family_cap"
    """Better ranked trajectories of the same agent family fill the family's places at this problem."""
    PROBLEM_CAP = "problem_cap"
    """Better ranked trajectories fill the problem's places."""


_TRUST_ORDER = (Trust.CONTRADICTED, Trust.CLAIMED, Trust.WITNESSED)


@dataclass(frozen=True, slots=True)
class SelectionPolicy:
    """The numbers a selection is made by."""

    name: str = "selection-1"
    version: int = 1
    per_problem: int = 8
    """Most trajectories of one problem."""
    per_problem_family: int = 2
    """Most trajectories of one problem by one agent family: copies of an agent are not independent examples."""
    min_trust: Trust = Trust.CLAIMED
    require_confirmed_query: bool = True
    full_depth: int = 8
    """Distinct calls from which a trajectory gets all points for depth."""
    full_reformulations: int = 3
    """Distinct searches after the first from which it gets all points for reformulation."""

    @property
    def digest(self) -> str:
        """Sha256 hex of the policy."""
        return digest(self)


SELECTION_1 = SelectionPolicy()


@dataclass(frozen=True, slots=True)
class Candidate:
    """What selection needs of one kept trajectory."""

    key: str
    """The trajectory's key; breaks ties."""
    problem_id: str
    family: str
    trust: Trust
    query_confirmed: bool
    calls_digest: str
    """Equal for trajectories that make the same calls in the same order, however they spell them."""
    distinct_calls: int
    repeated_calls: int
    reformulations: int
    verified: bool
    """A product that was settled on had been looked at again before."""
    tombstoned: bool = False
    """SN15 no longer counts it."""


class Selection(NamedTuple):
    """The outcome: keys chosen, sorted, and the reason of every other."""

    chosen: tuple[str, ...]
    dropped: dict[str, SelectionReason]

    @property
    def counts(self) -> dict[str, int]:
        """Trajectories per reason."""
        return dict(sorted(Counter(reason.value for reason in self.dropped.values()).items()))


def candidate(
    key: str,
    family: str,
    problem: ProblemFacts,
    trajectory: Trajectory,
    verdict: Verdict,
    *,
    tombstoned: bool = False,
) -> Candidate:
    """Boil a kept trajectory down to what selection needs; `tombstoned`: SN15 no longer counts it."""
    searching = TOOLS[trajectory.kind].search
    calls = trajectory.tool_calls
    spelled = [call_key(call.name, call.arguments) for call in calls]
    searches = {spelling for spelling, call in zip(spelled, calls, strict=True) if call.name in searching}
    return Candidate(
        key=key,
        problem_id=problem.problem_id,
        family=family,
        trust=verdict.trust,
        query_confirmed=problem.query_confirmed,
        calls_digest=digest(spelled),
        distinct_calls=len(set(spelled)),
        repeated_calls=len(spelled) - len(set(spelled)),
        reformulations=max(0, len(searches) - 1),
        verified=_verified(trajectory),
        tombstoned=tombstoned,
    )


def _verified(trajectory: Trajectory) -> bool:
    tools = TOOLS[trajectory.kind]
    looked_at: set[str] = set()
    for call in trajectory.tool_calls:
        if call.name in tools.view:
            looked_at.update(product_ids(call.arguments), _shown_ids(call.result))
        elif call.name in tools.answer and call.error_code is None:
            return not looked_at.isdisjoint(product_ids(call.arguments))
    return False


def _shown_ids(result: Any) -> set[str]:
    """Product ids of a result: a list of products, or an object that holds such lists."""
    lists = result.values() if isinstance(result, dict) else (result,)
    return {product_id for listed in lists for product_id in result_ids(listed)}


def points(of: Candidate, policy: SelectionPolicy) -> float:
    """Worth as an example, 0 to 4: up to a point each for depth, reformulation, verification and regularity."""
    depth = min(of.distinct_calls, policy.full_depth) / policy.full_depth
    reformulation = min(of.reformulations, policy.full_reformulations) / policy.full_reformulations
    regularity = of.distinct_calls / max(1, of.distinct_calls + of.repeated_calls)
    return depth + reformulation + float(of.verified) + regularity


def select(candidates: Iterable[Candidate], policy: SelectionPolicy = SELECTION_1) -> Selection:
    """Choose trajectories, best first. Keys must be unique."""
    chosen: list[str] = []
    dropped: dict[str, SelectionReason] = {}
    seen: set[tuple[str, str]] = set()
    of_problem: Counter[str] = Counter()
    of_family: Counter[tuple[str, str]] = Counter()
    for each in sorted(candidates, key=lambda one: (-points(one, policy), one.key)):
        calls, place = (each.problem_id, each.calls_digest), (each.problem_id, each.family)
        if (reason := _inadmissible(each, policy)) is not None:
            dropped[each.key] = reason
        elif calls in seen:
            dropped[each.key] = SelectionReason.DUPLICATE
        elif of_family[place] >= policy.per_problem_family:
            dropped[each.key] = SelectionReason.FAMILY_CAP
        elif of_problem[each.problem_id] >= policy.per_problem:
            dropped[each.key] = SelectionReason.PROBLEM_CAP
        else:
            chosen.append(each.key)
            seen.add(calls)
            of_problem[each.problem_id] += 1
            of_family[place] += 1
    return Selection(tuple(sorted(chosen)), dropped)


def _inadmissible(each: Candidate, policy: SelectionPolicy) -> SelectionReason | None:
    if each.tombstoned:
        return SelectionReason.TOMBSTONED
    if _TRUST_ORDER.index(each.trust) < _TRUST_ORDER.index(policy.min_trust):
        return SelectionReason.TRUST_TOO_LOW
    if policy.require_confirmed_query and not each.query_confirmed:
        return SelectionReason.QUERY_UNCONFIRMED
    return None
