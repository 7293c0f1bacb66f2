"""Which kept trajectories one snapshot holds: ranked, distinct, capped, balanced. Every one left out has a reason.

Not a verdict: a trajectory left out of one snapshot may be chosen by the next. The result does not depend on the
order of the candidates.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from service.domain.canonical import digest
from service.domain.leakage import ProblemFacts
from service.domain.minhash import resemblance, shingles, signature
from service.domain.provenance import Trust
from service.domain.records import Config, Split, row_config
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
    NEAR_DUPLICATE = "near_duplicate"
    """A better ranked trajectory of the problem thinks, says and calls nearly the same."""
    FAMILY_CAP = "family_cap"
    """Better ranked trajectories of the same agent family fill the family's places at this problem."""
    PROBLEM_CAP = "problem_cap"
    """Better ranked trajectories fill the problem's places."""
    BALANCE = "balance"
    """Its category would be more than its share of the training rows."""


_TRUST_ORDER = (Trust.CONTRADICTED, Trust.CLAIMED, Trust.WITNESSED)


@dataclass(frozen=True, slots=True)
class SelectionPolicy:
    """The numbers a selection is made by."""

    name: str = "selection-1"
    version: int = 2
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
    depth_weight: float = 1.0
    reformulation_weight: float = 1.0
    verification_weight: float = 1.0
    regularity_weight: float = 1.0
    near_duplicate: float = 0.9
    """Estimated share of equal shingles from which two trajectories of a problem are near duplicates."""
    shingle_words: int = 3
    permutations: int = 64
    """Numbers in a MinHash signature."""
    largest_share: float = 0.6
    """Most of a configuration's training rows that one category may be, where there are several; 0.5 to 1."""

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
    category: str
    family: str
    config: Config
    """Configurations are never mixed: each is filled by itself."""
    split: Split
    trust: Trust
    query_confirmed: bool
    calls_digest: str
    """Equal for trajectories that make the same calls in the same order, however they spell them."""
    signature: bytes
    """MinHash of what was thought, said and called; empty: nothing was."""
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
    split: Split,
    policy: SelectionPolicy = SELECTION_1,
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
        category=problem.category,
        family=family,
        config=row_config(verdict),
        split=split,
        trust=verdict.trust,
        query_confirmed=problem.query_confirmed,
        calls_digest=digest(spelled),
        signature=_signature(trajectory, spelled, policy),
        distinct_calls=len(set(spelled)),
        repeated_calls=len(spelled) - len(set(spelled)),
        reformulations=max(0, len(searches) - 1),
        verified=_verified(trajectory),
        tombstoned=tombstoned,
    )


def _signature(trajectory: Trajectory, spelled: Iterable[str], policy: SelectionPolicy) -> bytes:
    """Of the agent's own words and calls, not of results: two who search alike are shown alike."""
    said = " ".join(f"{step.think} {step.response}" for step in trajectory.steps)
    words = [*said.casefold().split(), *" ".join(spelled).split()]
    return signature(shingles(words, policy.shingle_words), policy.permutations)


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
    """Worth as an example: the weighted sum of depth, reformulation, verification and regularity, each 0 to 1."""
    depth = min(of.distinct_calls, policy.full_depth) / policy.full_depth
    reformulation = min(of.reformulations, policy.full_reformulations) / policy.full_reformulations
    regularity = of.distinct_calls / max(1, of.distinct_calls + of.repeated_calls)
    return (
        policy.depth_weight * depth
        + policy.reformulation_weight * reformulation
        + policy.verification_weight * of.verified
        + policy.regularity_weight * regularity
    )


def select(candidates: Iterable[Candidate], policy: SelectionPolicy = SELECTION_1) -> Selection:
    """Choose trajectories, best first. Keys must be unique."""
    ranked = sorted(candidates, key=lambda one: (-points(one, policy), one.key))
    dropped: dict[str, SelectionReason] = {}
    chosen: list[Candidate] = []
    places: defaultdict[tuple[Config, str], _Place] = defaultdict(_Place)
    for each in ranked:
        place = places[each.config, each.problem_id]
        reason = _inadmissible(each, policy) or place.refusal(each, policy)
        if reason is not None:
            dropped[each.key] = reason
        else:
            place.take(each)
            chosen.append(each)
    surplus = _surplus(chosen, policy)
    dropped |= dict.fromkeys(surplus, SelectionReason.BALANCE)
    return Selection(tuple(sorted({each.key for each in chosen} - surplus)), dropped)


class _Place:
    """What has been chosen of one problem in one configuration."""

    def __init__(self) -> None:
        self._chosen: list[Candidate] = []

    def take(self, each: Candidate) -> None:
        self._chosen.append(each)

    def refusal(self, each: Candidate, policy: SelectionPolicy) -> SelectionReason | None:
        """Why the next best cannot be chosen too."""
        if any(each.calls_digest == other.calls_digest for other in self._chosen):
            return SelectionReason.DUPLICATE
        if any(resemblance(each.signature, other.signature) >= policy.near_duplicate for other in self._chosen):
            return SelectionReason.NEAR_DUPLICATE
        if sum(each.family == other.family for other in self._chosen) >= policy.per_problem_family:
            return SelectionReason.FAMILY_CAP
        return SelectionReason.PROBLEM_CAP if len(self._chosen) >= policy.per_problem else None


def _surplus(ranked: Iterable[Candidate], policy: SelectionPolicy) -> set[str]:
    """The lowest ranked of a category that is more than its share of a configuration's training rows.

    Evaluation rows stay: figures are stated by category there.
    """
    rows: defaultdict[Config, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for each in ranked:
        if each.split is Split.TRAIN:
            rows[each.config][each.category].append(each.key)
    surplus: set[str] = set()
    for categories in rows.values():
        largest = max(categories.values(), key=len)
        others = sum(map(len, categories.values())) - len(largest)
        if others and policy.largest_share < 1:
            # n / (n + others) <= share: the most rows that are within the share.
            most = int(policy.largest_share * others / (1 - policy.largest_share) + 1e-9)
            surplus.update(largest[max(most, 1) :])
    return surplus


def _inadmissible(each: Candidate, policy: SelectionPolicy) -> SelectionReason | None:
    if each.tombstoned:
        return SelectionReason.TOMBSTONED
    if _TRUST_ORDER.index(each.trust) < _TRUST_ORDER.index(policy.min_trust):
        return SelectionReason.TRUST_TOO_LOW
    if policy.require_confirmed_query and not each.query_confirmed:
        return SelectionReason.QUERY_UNCONFIRMED
    return None
