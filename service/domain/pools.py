"""Pools: which problems may be trained on, which are held out. A pure function of content and publication history.

Not the clustering (`leakage`), and never dependent on arrival order, process count or time.
"""

import hmac
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from service.domain.canonical import canonical_json, digest
from service.domain.leakage import Edge, EdgeKind
from service.errors import ErrorCode, SluiceError


class Pool(StrEnum):
    """Where a problem's rows may go. Only `TRAIN` and `EVAL` are served as splits."""

    TRAIN = "train"
    EVAL = "eval"
    RESERVE = "reserve"
    """Held for future evaluation; content never served."""
    QUARANTINED = "quarantined"
    """In no split."""


class PoolReason(StrEnum):
    """Why a problem is in its pool."""

    DRAW = "draw"
    """Its own draw is also its component's strictest."""
    COMPONENT = "component"
    """A problem it is clustered with drew a stricter pool, or one of them was held out in an earlier generation."""
    PUBLISHED = "published"
    """It was published in train and its component is now held out."""
    EXPOSED = "exposed"
    """Its component is held out, but a member was published in train, so a model may know the answer."""
    SUSPECT = "suspect"
    """A suspect edge ties its train component to a held-out one."""


class PoolProblem(NamedTuple):
    """A problem as far as drawing is concerned."""

    problem_id: str
    category: str


class Assignment(NamedTuple):
    """One problem's pool."""

    problem_id: str
    cluster_id: str
    draw: Pool
    """What it drew alone: train, eval or reserve."""
    pool: Pool
    reason: PoolReason


class Shares(NamedTuple):
    """Expected shares of the draws; train takes the rest."""

    eval: float = 0.20
    reserve: float = 0.10


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """The key and the numbers pools are drawn by."""

    name: str = "pools-1"
    version: int = 1
    key: str = "sluice-1"
    shares: Shares = field(default_factory=Shares)
    category_shares: Mapping[str, Shares] = field(default_factory=dict)
    """Shares of categories that differ from the default."""
    component_limit: float = 0.05
    quarantine_limit: float = 0.01
    suspect_limit: float = 0.10
    limits_from_problems: int = 200

    @property
    def digest(self) -> str:
        """sha256 of everything that can change a pool."""
        return digest(self)


POOLS_1 = PoolPlan()


def assign(
    problems: Sequence[PoolProblem],
    clusters: Mapping[str, str],
    suspects: Iterable[Edge],
    published_train: frozenset[str],
    plan: PoolPlan,
    published_eval: frozenset[str] = frozenset(),
    quarantined_before: frozenset[str] = frozenset(),
) -> list[Assignment]:
    """Give every problem its pool, sorted by problem id.

    Args:
        problems: all problems, each once, in any order.
        clusters: problem id -> cluster id, for all of them.
        suspects: edges that join no clusters; other kinds among them are ignored.
        published_train: problems that any earlier snapshot had in train.
        plan: the key and the numbers.
        published_eval: problems held out by any earlier generation; they never go to train.
        quarantined_before: problems a person already accepted in quarantine; they do not count towards the limits.

    Raises:
        SluiceError: `COMPONENT_TOO_LARGE` or `QUARANTINE_TOO_LARGE`; a person must look before anything is assigned.
    """
    members: dict[str, list[str]] = defaultdict(list)
    draws: dict[str, Pool] = {}
    for problem in sorted(problems):
        members[clusters[problem.problem_id]].append(problem.problem_id)
        draws[problem.problem_id] = draw(problem, plan)
    _refuse_large_component(members, len(draws), plan)
    strictest = {
        cluster: max((_held(draws[one], one in published_eval) for one in ids), key=_STRICTNESS.index)
        for cluster, ids in members.items()
    }
    exposed = {clusters[one] for one in published_train if one in draws}
    suspected = _suspected(strictest, clusters, suspects)
    assigned = []
    for problem_id, drawn in sorted(draws.items()):
        cluster = clusters[problem_id]
        pool, reason = _settle(
            drawn,
            strictest[cluster],
            published=problem_id in published_train,
            exposed=cluster in exposed,
            suspected=cluster in suspected,
        )
        assigned.append(Assignment(problem_id, cluster, drawn, pool, reason))
    _refuse_large_quarantine(assigned, quarantined_before, plan)
    return assigned


def draw(problem: PoolProblem, plan: PoolPlan) -> Pool:
    """What a problem draws alone: a keyed hash of its category and id against the category's shares."""
    shares = plan.category_shares.get(problem.category, plan.shares)
    message = canonical_json([problem.category, problem.problem_id])
    lot = int.from_bytes(hmac.digest(plan.key.encode(), message, "sha256")[:8], "big") / 2**64
    if lot < shares.reserve:
        return Pool.RESERVE
    return Pool.EVAL if lot < shares.reserve + shares.eval else Pool.TRAIN


_STRICTNESS = (Pool.TRAIN, Pool.EVAL, Pool.RESERVE)


def _held(drawn: Pool, held_out_before: bool) -> Pool:
    return Pool.EVAL if held_out_before and drawn is Pool.TRAIN else drawn


def _suspected(strictest: Mapping[str, Pool], clusters: Mapping[str, str], suspects: Iterable[Edge]) -> set[str]:
    """Train clusters that share the evidence of a suspicion with a held-out cluster."""
    tied: dict[str, set[str]] = defaultdict(set)
    for edge in suspects:
        if edge.kind is EdgeKind.SUSPECT:
            tied[edge.evidence].update((clusters[edge.a], clusters[edge.b]))
    return {
        cluster
        for together in tied.values()
        if any(strictest[cluster] is not Pool.TRAIN for cluster in together)
        for cluster in together
        if strictest[cluster] is Pool.TRAIN
    }


def _settle(
    drawn: Pool, component: Pool, *, published: bool, exposed: bool, suspected: bool
) -> tuple[Pool, PoolReason]:
    """Pool and reason of one problem, from its own draw and what is known of its component."""
    if component is Pool.TRAIN:
        return (Pool.QUARANTINED, PoolReason.SUSPECT) if suspected else (Pool.TRAIN, PoolReason.DRAW)
    if published:
        return Pool.QUARANTINED, PoolReason.PUBLISHED
    if exposed and component is Pool.EVAL:
        return Pool.QUARANTINED, PoolReason.EXPOSED
    return component, PoolReason.DRAW if drawn is component else PoolReason.COMPONENT


def _refuse_large_component(members: Mapping[str, list[str]], total: int, plan: PoolPlan) -> None:
    if total < plan.limits_from_problems:
        return
    cluster, ids = max(members.items(), key=lambda entry: (len(entry[1]), entry[0]))
    if len(ids) > plan.component_limit * total:
        raise SluiceError(
            ErrorCode.COMPONENT_TOO_LARGE,
            f"leak cluster {cluster} holds {len(ids)} of {total} problems, over the {plan.component_limit:.0%} allowed",
            cluster_id=cluster,
            problems=len(ids),
            total=total,
        )


def _refuse_large_quarantine(assigned: Sequence[Assignment], before: frozenset[str], plan: PoolPlan) -> None:
    if len(assigned) < plan.limits_from_problems:
        return
    fresh = [one for one in assigned if one.pool is Pool.QUARANTINED and one.problem_id not in before]
    suspect = sum(one.reason is PoolReason.SUSPECT for one in fresh)
    for count, limit, cause in (
        (len(fresh) - suspect, plan.quarantine_limit, "contact with held-out problems after publication"),
        (suspect, plan.suspect_limit, "suspicion that one agent family alone raised"),
    ):
        if count > limit * len(assigned):
            raise SluiceError(
                ErrorCode.QUARANTINE_TOO_LARGE,
                f"{cause} would quarantine {count} of {len(assigned)} problems, over the {limit:.0%} allowed",
                problems=count,
                total=len(assigned),
            )
