"""What was known of the answers when a snapshot was released, for whoever audits it again. Audits nothing itself."""

from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.domain.leaks.benchmarks import Benchmark
from service.store.models import ClusterMember
from service.store.release import benchmarks, snapshots


class KnownAnswers(NamedTuple):
    """Product ids that give one problem away."""

    gold_ids: frozenset[str]
    winner_ids: frozenset[str]


def known_answers(session: Session, snapshot_id: str) -> dict[str, KnownAnswers]:
    """Answers by problem id, as the newest release of this snapshot knew them; empty when it was never released."""
    origin = snapshots.origin(session, snapshot_id)
    if origin is None:
        return {}
    rows = session.execute(
        select(ClusterMember.problem_id, ClusterMember.gold_ids, ClusterMember.winner_ids).where(
            ClusterMember.clustering_id == origin.clustering_id
        )
    )
    return {problem_id: KnownAnswers(frozenset(gold), frozenset(winners)) for problem_id, gold, winners in rows}


def known_benchmarks(session: Session, snapshot_id: str) -> list[Benchmark]:
    """The benchmarks that stood at the newest release of this snapshot; empty when it was never released."""
    origin = snapshots.origin(session, snapshot_id)
    if origin is None:
        return []
    return benchmarks.load(session, benchmarks.of_clustering(session, origin.clustering_id))
