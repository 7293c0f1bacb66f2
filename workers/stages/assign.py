"""Assign: draw a pool for every problem of the newest clustering. Draws nothing itself."""

from collections.abc import Sequence

import msgspec
from sqlalchemy.orm import Session

from service.domain.leaks import pools as domain_pools
from service.domain.leaks.benchmarks import cluster_of_items, excluded_clusters
from service.domain.leaks.leakage import Edge, EdgeKind
from service.domain.leaks.pools import Accepted, PoolPlan, PoolProblem
from service.errors import ErrorCode, SluiceError
from service.store import policies
from service.store.engine import reading, transaction
from service.store.models import Clustering
from service.store.release import benchmarks, clusters, pools
from service.store.release.pools import PoolRow
from service.store.work import leases
from service.store.work.leases import LeaseName
from workers.context import Context
from workers.leadership import held

ASKS = frozenset({ErrorCode.COMPONENT_TOO_LARGE, ErrorCode.QUARANTINE_TOO_LARGE})
"""Faults that stop the stage until a person has looked; they are stored as the assignment's refusal."""


def run(_ids: Sequence[int], context: Context, _claimant: str) -> list[int]:
    """Assign pools under the plan in force, if the newest clustering has none."""
    plan = context.policies.pools
    with held(context.engine, LeaseName.PUBLICATION) as token:
        if token is None:
            return []
        rows: list[PoolRow] = []
        refusal: str | None = None
        with reading(context.engine) as session:
            due = clusters.unassigned(session, plan.digest)
            if due is None:
                return []
            accepted = Accepted(due.is_accepted, pools.accepted_size(session))
            try:
                rows = _assign(session, due.clustering, plan, accepted)
            except SluiceError as error:
                if error.code not in ASKS:
                    raise
                refusal = str(error)
        with transaction(context.engine) as session:
            leases.require(session, LeaseName.PUBLICATION, token)
            policies.record(session, "pools", plan.name, plan.digest, msgspec.to_builtins(plan))
            pools.save(
                session,
                clustering_id=due.clustering.clustering_id,
                plan_digest=plan.digest,
                members=rows,
                refusal=refusal,
                is_accepted=due.is_accepted,
            )
    return []


def _assign(session: Session, clustering: Clustering, plan: PoolPlan, accepted: Accepted) -> list[PoolRow]:
    members = clusters.members(session, clustering.clustering_id)
    categories = clusters.categories(session)
    suspects = clusters.edges(session, clustering.clustering_id, EdgeKind.SUSPECT)
    history = pools.history(session)
    public = benchmarks.load(session, benchmarks.of_clustering(session, clustering.clustering_id))
    items = cluster_of_items(public, benchmarks.members(session, clustering.clustering_id))
    assigned = domain_pools.assign(
        [PoolProblem(problem_id, categories[problem_id]) for problem_id in members],
        {problem_id: member.cluster_id for problem_id, member in members.items()} | items,
        [
            *(Edge(row.problem_a, row.problem_b, EdgeKind(row.kind), row.evidence) for row in suspects),
            *benchmarks.suspicions(session, clustering.clustering_id),
        ],
        history.published_train,
        plan,
        history.former,
        history.quarantined,
        excluded_clusters(public, items),
        accepted,
    )
    return [PoolRow(one.problem_id, one.draw, one.pool, one.reason) for one in assigned]
