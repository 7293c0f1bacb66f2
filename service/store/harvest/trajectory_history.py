"""SN15's own count of trajectories, reading by reading, and ours to hold beside it. Decides nothing by it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.store.models import IMPORTED, EvaluationRun, LedgerItem, Trajectory, TrajectoryHistory


class History(NamedTuple):
    """Distinct (agent version, problem) pairs, as SN15 counts them and as they are here."""

    total: int | None
    """SN15's; None while it has not counted them, or was not asked."""
    read_at: datetime | None
    """When that was last read; None before the first time."""
    listed: int
    """Ours that stand in the ledger."""
    stored: int
    """Ours of which a trajectory is stored."""

    @property
    def difference(self) -> int | None:
        """SN15's less what is stored. No error by itself: it counts what is withheld, and runs that do not count."""
        return None if self.total is None else self.total - self.stored


def note(session: Session, total: int | None, series: Sequence[dict[str, Any]], now: datetime) -> None:
    """Keep a reading; one that says what the last one said only moves its time."""
    last = newest(session)
    if last is not None and (last.total, last.series) == (total, list(series)):
        last.read_at = now
    else:
        session.add(TrajectoryHistory(total=total, series=list(series), read_at=now))


def newest(session: Session) -> TrajectoryHistory | None:
    """The last reading; None before the first."""
    return session.scalar(select(TrajectoryHistory).order_by(TrajectoryHistory.history_id.desc()).limit(1))


def compared(session: Session) -> History:
    """The last reading beside what is here; rows of imported files are no part of either."""
    last = newest(session)
    pair = (EvaluationRun.agent_version_id, LedgerItem.problem_id)
    of_source = (
        select(*pair)
        .join(LedgerItem, LedgerItem.eval_run_id == EvaluationRun.eval_run_id)
        .where(EvaluationRun.phase != IMPORTED)
        .distinct()
    )
    stored = of_source.join(Trajectory, Trajectory.ledger_id == LedgerItem.ledger_id)
    listed_pairs, stored_pairs = (
        session.scalar(select(func.count()).select_from(pairs.subquery())) or 0 for pairs in (of_source, stored)
    )
    return History(
        last.total if last else None, last.read_at if last else None, listed=listed_pairs, stored=stored_pairs
    )
