"""Items of the ledger that are not asked for because SN15 does not count their run, and their return. Decides nothing.

An item that was never fetched rests as `gone`, one that was fetched and is listed otherwise since as `fetched`; the
reason tells both from items that are so for good.
"""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Subquery, case, func, select, update
from sqlalchemy.orm import Session

from service.domain.sn15.tombstones import NOT_ASKED_FOR, RACE_CANCELLED, Subject
from service.store.corpus.tombstones import standing
from service.store.harvest.ledger import OPEN_STATES
from service.store.models import EvaluationRun, LedgerItem, LedgerState, Race


def follow(session: Session, eval_run_ids: Collection[str], now: datetime) -> None:
    """Let the open items of runs that do not count rest, and open those of runs that count again."""
    if not eval_run_ids:
        return
    runs = _reasons(eval_run_ids)
    of_run = LedgerItem.eval_run_id == runs.c.eval_run_id
    session.execute(
        update(LedgerItem)
        .where(of_run, runs.c.reason.is_not(None), LedgerItem.state.in_(OPEN_STATES))
        .values(
            state=case((LedgerItem.state == LedgerState.CHANGED, LedgerState.FETCHED), else_=LedgerState.GONE),
            reason=runs.c.reason,
            claimed_by=None,
        )
    )
    session.execute(
        update(LedgerItem)
        .where(of_run, runs.c.reason.is_(None), LedgerItem.reason.in_(NOT_ASKED_FOR))
        .values(
            state=case((LedgerItem.state == LedgerState.FETCHED, LedgerState.CHANGED), else_=LedgerState.EXPECTED),
            reason=None,
            attempts=0,
            next_try_at=now,
        )
    )


def _reasons(eval_run_ids: Collection[str]) -> Subquery:
    """Each run with the reason why its items are not asked for; None where they are."""
    runs, agents = standing(Subject.RUN), standing(Subject.AGENT_VERSION)
    reason = func.coalesce(runs.c.reason, agents.c.reason, case((Race.is_cancelled, RACE_CANCELLED)))
    return (
        select(EvaluationRun.eval_run_id, reason.label("reason"))
        .join(runs, runs.c.subject_id == EvaluationRun.eval_run_id, isouter=True)
        .join(agents, agents.c.subject_id == EvaluationRun.agent_version_id, isouter=True)
        .join(Race, Race.race_id == EvaluationRun.race_id, isouter=True)
        .where(EvaluationRun.eval_run_id.in_(eval_run_ids))
        .subquery()
    )
