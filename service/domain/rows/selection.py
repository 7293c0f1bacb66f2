"""Which kept trajectories one snapshot holds: ranked, distinct, capped, balanced. Every one left out has a reason.

Not a verdict: a trajectory left out of one snapshot may be chosen by the next. The result does not depend on the
order of the candidates.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from service.domain.attribution.provenance import Trust
from service.domain.rows.candidates import SELECTION_1, Candidate, SelectionPolicy
from service.domain.rows.minhash import resemblance
from service.domain.rows.splits import Config, Split


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
    SECRET_FOUND = "secret_found"
    """Its text holds what looks like a key or a token; found when rows are written, after all others."""


_TRUST_ORDER = (Trust.CONTRADICTED, Trust.CLAIMED, Trust.WITNESSED)


class Selection(NamedTuple):
    """The outcome: keys chosen, sorted, and the reason of every other."""

    chosen: tuple[str, ...]
    dropped: dict[str, SelectionReason]

    @property
    def counts(self) -> dict[str, int]:
        """Trajectories per reason."""
        return dict(sorted(Counter(reason.value for reason in self.dropped.values()).items()))


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
        reason = _inadmissible(each, policy) or (None if policy.keep_all else place.refusal(each, policy))
        if reason is not None:
            dropped[each.key] = reason
        else:
            place.take(each)
            chosen.append(each)
    surplus = set() if policy.keep_all else _surplus(chosen, policy)
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
