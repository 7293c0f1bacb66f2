"""What was known of the answers when a snapshot was released, for whoever audits it again. Audits nothing itself."""

from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.store.models import ClusterMember, PoolAssignment, Release


class KnownAnswers(NamedTuple):
    """Product ids that give one problem away."""

    gold_ids: frozenset[str]
    winner_ids: frozenset[str]


def known_answers(session: Session, snapshot_id: str) -> dict[str, KnownAnswers]:
    """Answers by problem id, as the newest release of this snapshot knew them; empty when it was never released."""
    clustering = (
        select(PoolAssignment.clustering_id)
        .join(Release, Release.assignment_id == PoolAssignment.assignment_id)
        .where(Release.snapshot_id == snapshot_id)
        .order_by(Release.release_id.desc())
        .limit(1)
        .scalar_subquery()
    )
    rows = session.execute(
        select(ClusterMember.problem_id, ClusterMember.gold_ids, ClusterMember.winner_ids).where(
            ClusterMember.clustering_id == clustering
        )
    )
    return {problem_id: KnownAnswers(frozenset(gold), frozenset(winners)) for problem_id, gold, winners in rows}
