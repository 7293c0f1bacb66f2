"""Items that are listed again: what SN15 says of them now, against what the ledger has. Asks the source for nothing.

A judgement that has changed becomes a new state of the evidence. An item whose object may have changed is to be asked
for again. The ledger holds what was listed last.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import msgspec
from sqlalchemy import DateTime, Text, and_, bindparam, case, column, func, or_, select, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Session

from service.domain.sn15.tombstones import NOT_ASKED_FOR
from service.domain.trajectory import Judgement
from service.store.corpus import evidence
from service.store.harvest.ledger import ExpectedItem
from service.store.models import LedgerItem, LedgerState, Trajectory


def relist(session: Session, items: Sequence[ExpectedItem], now: datetime) -> None:
    """Take in items of one run that are in the ledger already, as they are listed now."""
    if not items:
        return
    listed = _listed(items)
    of_item = (LedgerItem.eval_run_id == items[0].eval_run_id) & (LedgerItem.item_key == listed.c.item_key)
    judged_anew = LedgerItem.judgement.is_distinct_from(listed.c.judgement)
    given_id = listed.c.episode_result_id
    other_object = or_(
        given_id.is_not(None) & LedgerItem.episode_result_id.is_distinct_from(given_id),
        LedgerItem.updated_at != listed.c.updated_at,
    )
    dated = LedgerItem.updated_at.is_(None) & listed.c.updated_at.is_not(None)
    # Stored, not given any more when it was last asked for, and named all the same: it may be there again.
    returned = (LedgerItem.state == LedgerState.FETCHED) & LedgerItem.reason.is_not(None)
    asked_for = or_(func.coalesce(other_object, False), returned)
    rows = session.execute(
        select(LedgerItem.ledger_id, judged_anew)
        .join(listed, of_item)
        .where(or_(judged_anew, asked_for, dated))
        .order_by(LedgerItem.ledger_id)
        .with_for_update(of=LedgerItem)
    ).all()
    if not rows:
        return
    session.execute(
        update(LedgerItem)
        .where(of_item, LedgerItem.ledger_id.in_([ledger_id for ledger_id, _ in rows]))
        .values(
            judgement=listed.c.judgement,
            episode_result_id=func.coalesce(given_id, LedgerItem.episode_result_id),
            updated_at=func.coalesce(listed.c.updated_at, LedgerItem.updated_at),
            **_asked_again(asked_for, now),
        )
    )
    _revise(session, [ledger_id for ledger_id, is_judged_anew in rows if is_judged_anew])


def ask_for_unlisted(session: Session, eval_run_id: str, listed_keys: Collection[str], now: datetime) -> None:
    """Ask again for fetched items of a run that a whole listing of it no longer names: they may have been withdrawn.

    Those that were found withdrawn already are left alone.
    """
    unlisted = LedgerItem.item_key.not_in(listed_keys)
    fetched = (LedgerItem.state == LedgerState.FETCHED) & LedgerItem.reason.is_(None)
    session.execute(
        update(LedgerItem)
        .where(LedgerItem.eval_run_id == eval_run_id, unlisted, fetched)
        .values(state=LedgerState.CHANGED, reason=None, attempts=0, next_try_at=now)
    )


def _listed(items: Sequence[ExpectedItem]) -> Any:
    rows = [
        {
            "item_key": item.item_key,
            "episode_result_id": item.episode_result_id,
            "judgement": item.judgement,
            "updated_at": item.updated_at.isoformat() if item.updated_at else None,
        }
        for item in items
    ]
    columns = (
        *(column("item_key", Text), column("episode_result_id", Text)),
        *(column("judgement", JSONB), column("updated_at", DateTime(timezone=True))),
    )
    records = func.jsonb_to_recordset(bindparam("listed", rows, JSONB))
    return records.table_valued(*columns, name="listed").render_derived(with_types=True)


def _asked_again(asked_for: Any, now: datetime) -> dict[str, Any]:
    """What becomes of an item that is to be asked for: one that is closed is opened, one that waits goes on."""
    again = and_(
        asked_for,
        or_(
            LedgerItem.state == LedgerState.FETCHED,
            (LedgerItem.state == LedgerState.GONE) & LedgerItem.reason.not_in(NOT_ASKED_FOR),
        ),
    )
    opened = case((LedgerItem.state == LedgerState.FETCHED, LedgerState.CHANGED), else_=LedgerState.EXPECTED)
    return {
        "state": case((again, opened), else_=LedgerItem.state),
        "reason": case((again, None), else_=LedgerItem.reason),
        "attempts": case((again, 0), else_=LedgerItem.attempts),
        "next_try_at": case((again, now), else_=LedgerItem.next_try_at),
    }


def _revise(session: Session, ledger_ids: Sequence[int]) -> None:
    """Let the judgements that the ledger has now be the present evidence of what is stored."""
    rows = session.execute(
        select(Trajectory.trajectory_id, LedgerItem.judgement)
        .join(LedgerItem, LedgerItem.ledger_id == Trajectory.ledger_id)
        .where(LedgerItem.ledger_id.in_(ledger_ids))
        .order_by(Trajectory.trajectory_id)
    ).all()
    for trajectory_id, told in rows:
        judgement = msgspec.convert(told, Judgement)
        evidence.revise(session, trajectory_id, partial(msgspec.structs.replace, judgement=judgement))
