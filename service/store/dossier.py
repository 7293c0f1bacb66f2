"""One trajectory with its verdict, and whether its content may be shown. Parses no payload.

Content (steps, queries, answers) of a problem is shown only while the newest pools have it in train or eval and no
pools ever held it in reserve. A problem without a pool may still be drawn into reserve, so it stays closed too.
"""

from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.domain.pools import Pool
from service.store import statistics
from service.store.models import PoolAssignment, PoolMember
from service.store.statistics import TrajectoryRow
from service.store.verdicts import current

OPEN_POOLS = frozenset({Pool.TRAIN, Pool.EVAL})


class VerdictRow(NamedTuple):
    """The verdict that stands for a trajectory."""

    outcome: str
    reason: str
    structural_class: str
    trust: str
    calls: list[dict[str, Any]]
    signals: dict[str, Any]
    answer: list[str]
    reported_query: str | None
    evidence: dict[str, Any]


class Dossier(NamedTuple):
    """All that is stored of one trajectory but its payload. `verdict` is None while it is unjudged."""

    row: TrajectoryRow
    verdict: VerdictRow | None
    is_open: bool
    """Whether the content may be shown to anyone."""


def dossier(session: Session, rules_digest: str, trajectory_id: int) -> Dossier | None:
    """Everything stored of one trajectory; None when there is none under this id."""
    row = statistics.trajectory(session, rules_digest, trajectory_id)
    if row is None:
        return None
    verdict = current(rules_digest)
    columns = [verdict.c[name] for name in VerdictRow._fields]
    found = session.execute(select(*columns).where(verdict.c.trajectory_id == trajectory_id)).one_or_none()
    return Dossier(row, VerdictRow(*found) if found else None, is_open(session, row.problem_id))


def is_open(session: Session, problem_id: str) -> bool:
    """Whether content of a problem may be shown to anyone."""
    newest = session.scalar(select(func.max(PoolAssignment.assignment_id)).where(PoolAssignment.refusal.is_(None)))
    pools = select(PoolMember.assignment_id, PoolMember.pool).where(PoolMember.problem_id == problem_id)
    history = {assignment_id: Pool(pool) for assignment_id, pool in session.execute(pools)}
    return newest in history and history[newest] in OPEN_POOLS and Pool.RESERVE not in history.values()
