"""What selection needs of a kept trajectory, and the policy it is chosen by. Chooses nothing: `selection` does."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from service.domain.attribution.provenance import Trust
from service.domain.attribution.replies import call_key
from service.domain.canonical import digest
from service.domain.filter.structure import Verdict
from service.domain.leaks.leakage import ProblemFacts
from service.domain.rows.minhash import shingles, signature
from service.domain.rows.splits import Config, Split, row_config
from service.domain.tools import result_ids
from service.domain.trajectory import TOOLS, Trajectory, product_ids


@dataclass(frozen=True, slots=True)
class SelectionPolicy:
    """The numbers a selection is made by."""

    name: str = "selection-1"
    version: int = 3
    keep_all: bool = False
    """Neither duplicates nor caps nor balance drop anything."""
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
