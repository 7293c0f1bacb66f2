"""Pools: which problems may be trained on, which are held out. A pure function of content and publication history.

Not the clustering (`leakage`), and never dependent on arrival order, process count or time.
"""

import hmac
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from service.domain.canonical import canonical_json, digest
from service.domain.leaks.leakage import Edge, EdgeKind
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
    BENCHMARK = "benchmark"
    """Its train component holds an item of a benchmark that is kept out of training, or a suspect edge ties them."""


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


class Accepted(NamedTuple):
    """What a person has looked at and let pass."""

    everything: bool = False
    """This very clustering, whatever comes of it."""
    component: int = 0
    """Clusters up to this many problems, accepted with an earlier clustering; a larger one asks again."""


NOTHING_ACCEPTED = Accepted()
POOLS_1 = PoolPlan()
NOTHING_HELD: Mapping[str, Pool] = MappingProxyType({})


def assign(
    problems: Sequence[PoolProblem],
    clusters: Mapping[str, str],
    suspects: Iterable[Edge],
    published_train: frozenset[str],
    plan: PoolPlan,
    former: Mapping[str, Pool] = NOTHING_HELD,
    quarantined_before: frozenset[str] = frozenset(),
    excluded: frozenset[str] = frozenset(),
    accepted: Accepted = NOTHING_ACCEPTED,
) -> list[Assignment]:
    """Give every problem its pool, sorted by problem id. A pool never loosens, though ties may go.

    Args:
        problems: all problems, each once, in any order.
        clusters: problem id -> cluster id, for all of them, and for whatever else `suspects` name.
        suspects: edges that join no clusters; other kinds among them are ignored.
        published_train: problems that any earlier snapshot had in train.
        plan: the key and the numbers.
        former: problem id -> the stricter of `EVAL` and `RESERVE` that any earlier generation gave it.
        quarantined_before: what the last accepted assignment had in quarantine; the limits count fresh ones.
        excluded: clusters that hold an item of a benchmark which must not be trained on. What they put into
            quarantine was asked for, so no limit counts it.
        accepted: what a person has let pass.

    Raises:
        SluiceError: `COMPONENT_TOO_LARGE` or `QUARANTINE_TOO_LARGE`; a person must look before anything is assigned.
    """
    draws = {one.problem_id: draw(one, plan) for one in sorted(problems)}
    _refuse_large_component(Counter(clusters[one] for one in draws), len(draws), plan, accepted)
    strictest = _strictest(draws, clusters, former)
    exposed = {clusters[one] for one in published_train if one in draws}
    suspects = list(suspects)
    tied = _suspected({cluster for cluster, pool in strictest.items() if pool is not Pool.TRAIN}, clusters, suspects)
    public = excluded | _suspected(excluded, clusters, suspects)
    assigned = []
    for one, drawn in draws.items():
        cluster = clusters[one]
        published, held_with = one in published_train, strictest[cluster]
        if held_with is Pool.TRAIN and cluster in public:
            settled = Pool.QUARANTINED, PoolReason.BENCHMARK
        else:
            settled = _settle(drawn, held_with, published=published, exposed=cluster in exposed, tied=cluster in tied)
        assigned.append(Assignment(one, cluster, drawn, *settled))
    if not accepted.everything:
        _refuse_large_quarantine(assigned, quarantined_before, plan)
    return assigned


def may_show(history: Mapping[int, str], newest: int | None, *, is_published: bool) -> bool:
    """Whether content of a trajectory may be shown to anyone.

    Content of a train problem may, and of an eval problem that of the very trajectories that are published: a success
    shows the gold, so nothing beyond the published rows may tell it. What was ever in reserve may return to it, what
    is quarantined is in neither split, and what has no pool yet may still be drawn into reserve.

    Args:
        history: the problem's pool by generation.
        newest: the newest generation there is; None: there is none.
        is_published: whether the trajectory is a row of a published snapshot.
    """
    pool = None if newest is None else history.get(newest)
    if Pool.RESERVE in history.values():
        return False
    return pool == Pool.TRAIN or (pool == Pool.EVAL and is_published)


def draw(problem: PoolProblem, plan: PoolPlan) -> Pool:
    """What a problem draws alone: a keyed hash of its category and id against the category's shares."""
    shares = plan.category_shares.get(problem.category, plan.shares)
    message = canonical_json([problem.category, problem.problem_id])
    lot = int.from_bytes(hmac.digest(plan.key.encode(), message, "sha256")[:8], "big") / 2**64
    if lot < shares.reserve:
        return Pool.RESERVE
    return Pool.EVAL if lot < shares.reserve + shares.eval else Pool.TRAIN


_STRICTNESS = (Pool.TRAIN, Pool.EVAL, Pool.RESERVE)


def _strictest(draws: Mapping[str, Pool], clusters: Mapping[str, str], former: Mapping[str, Pool]) -> dict[str, Pool]:
    """Each cluster's pool: the strictest that any of its problems draws or had before."""
    strictest: dict[str, Pool] = {}
    for problem_id, drawn in draws.items():
        cluster = clusters[problem_id]
        held = strictest.get(cluster, Pool.TRAIN), drawn, former.get(problem_id, Pool.TRAIN)
        strictest[cluster] = max(held, key=_STRICTNESS.index)
    return strictest


def _suspected(held: Collection[str], clusters: Mapping[str, str], suspects: Iterable[Edge]) -> set[str]:
    """Clusters that some suspicion ties to one that is held, themselves not held."""
    tied: dict[str, set[str]] = defaultdict(set)
    for edge in suspects:
        if edge.kind is EdgeKind.SUSPECT:
            tied[edge.shared].update((clusters[edge.a], clusters[edge.b]))
    return {
        cluster
        for together in tied.values()
        if not together.isdisjoint(held)
        for cluster in together
        if cluster not in held
    }


def _settle(drawn: Pool, component: Pool, *, published: bool, exposed: bool, tied: bool) -> tuple[Pool, PoolReason]:
    """Pool and reason of one problem, from its own draw and what is known of its component."""
    if component is Pool.TRAIN:
        return (Pool.QUARANTINED, PoolReason.SUSPECT) if tied else (Pool.TRAIN, PoolReason.DRAW)
    if published:
        return Pool.QUARANTINED, PoolReason.PUBLISHED
    if exposed and component is Pool.EVAL:
        return Pool.QUARANTINED, PoolReason.EXPOSED
    return component, PoolReason.DRAW if drawn is component else PoolReason.COMPONENT


def _refuse_large_component(sizes: Mapping[str, int], total: int, plan: PoolPlan, accepted: Accepted) -> None:
    if total < plan.limits_from_problems or accepted.everything or max(sizes.values()) <= accepted.component:
        return
    cluster, size = max(sizes.items(), key=lambda entry: (entry[1], entry[0]))
    if size > plan.component_limit * total:
        raise SluiceError(
            ErrorCode.COMPONENT_TOO_LARGE,
            f"leak cluster {cluster} holds {size} of {total} problems, over the {plan.component_limit:.0%} allowed",
            cluster_id=cluster,
            problems=size,
            total=total,
        )


def _refuse_large_quarantine(assigned: Sequence[Assignment], before: frozenset[str], plan: PoolPlan) -> None:
    if len(assigned) < plan.limits_from_problems:
        return
    fresh = [
        one
        for one in assigned
        if one.pool is Pool.QUARANTINED and one.reason is not PoolReason.BENCHMARK and one.problem_id not in before
    ]
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
