"""What was known of the answers when a snapshot was released, for whoever audits it again. Audits nothing itself."""

from typing import NamedTuple

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from service.domain.leaks.benchmarks import Benchmark
from service.store.models import ClusterMember, PoolAssignment, Release
from service.store.release import benchmarks


class KnownAnswers(NamedTuple):
    """Product ids that give one problem away."""

    gold_ids: frozenset[str]
    winner_ids: frozenset[str]


def known_answers(session: Session, snapshot_id: str) -> dict[str, KnownAnswers]:
    """Answers by problem id, as the newest release of this snapshot knew them; empty when it was never released."""
    rows = session.execute(
        select(ClusterMember.problem_id, ClusterMember.gold_ids, ClusterMember.winner_ids).where(
            ClusterMember.clustering_id == _clustering(snapshot_id).scalar_subquery()
        )
    )
    return {problem_id: KnownAnswers(frozenset(gold), frozenset(winners)) for problem_id, gold, winners in rows}


def known_benchmarks(session: Session, snapshot_id: str) -> list[Benchmark]:
    """The benchmarks that stood at the newest release of this snapshot; empty when it was never released."""
    clustering = session.scalar(_clustering(snapshot_id))
    return [] if clustering is None else benchmarks.load(session, benchmarks.of_clustering(session, clustering))


def _clustering(snapshot_id: str) -> Select[int]:
    """The clustering behind the newest release of a snapshot."""
    return (
        select(PoolAssignment.clustering_id)
        .join(Release, Release.assignment_id == PoolAssignment.assignment_id)
        .where(Release.snapshot_id == snapshot_id)
        .order_by(Release.release_id.desc())
        .limit(1)
    )
