"""The harvest ledger: which items are expected, fetched, waiting, failed or gone. Plans and fetches nothing."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import orjson
from psycopg.types.json import Jsonb
from sqlalchemy import BigInteger, Text, any_, bindparam, case, cast, exists, func, select, update
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Session

from service.store.copying import copy_missing
from service.store.models import EvaluationRun, LedgerItem, LedgerState, Trajectory

OPEN_STATES = (LedgerState.EXPECTED, LedgerState.CHANGED, LedgerState.EMBARGOED, LedgerState.FAILED)


SOON = timedelta(seconds=90)
"""An item that failed and is due again within this time is still being worked on."""


class ExpectedItem(NamedTuple):
    """One item the source has announced."""

    eval_run_id: str
    item_key: str
    problem_id: str
    episode_result_id: str | None
    judgement: dict[str, object]
    updated_at: datetime | None = None


class Target(NamedTuple):
    """All that is needed to fetch one item and to store what comes back."""

    ledger_id: int
    eval_run_id: str
    item_key: str
    problem_id: str
    agent_version_id: str
    episode_result_id: str | None
    kind: str
    reason: str | None
    """Why it was refused last."""
    attempts: int
    """Refusals of that kind."""
    etag: str | None
    updated_at: datetime | None
    trajectory_id: int | None
    """What is stored of it already; None while nothing is."""


class Locked(NamedTuple):
    """One item at the moment at which its bytes are stored."""

    is_open: bool
    judgement: dict[str, object]
    episode_result_id: str | None
    updated_at: datetime | None

    def overtakes(self, target: Target) -> bool:
        """Whether another object has been listed for the item since it was claimed."""
        dates = (target.updated_at, self.updated_at)
        return self.episode_result_id != target.episode_result_id or (None not in dates and dates[0] != dates[1])


class Note(NamedTuple):
    """What becomes of an item that was refused."""

    state: LedgerState
    reason: str
    next_try_at: datetime
    """Of no meaning for `gone`."""
    attempts: int
    """Refusals so far of the kind of this one."""


class LedgerCount(NamedTuple):
    """How many items stand in one state for one reason (None: no reason)."""

    state: LedgerState
    reason: str | None
    items: int


def expect(session: Session, items: Iterable[ExpectedItem], now: datetime) -> int:
    """Add items that are not in the ledger yet, due at once. Returns how many were new."""
    return copy_missing(
        session,
        LedgerItem.__table__,  # type: ignore[arg-type]
        (
            *("eval_run_id", "item_key", "problem_id", "episode_result_id", "judgement", "updated_at"),
            *("state", "next_try_at", "attempts"),
        ),
        ((*i[:4], Jsonb(i.judgement, orjson.dumps), i.updated_at, "expected", now, 0) for i in items),
    )


def known_runs(session: Session, eval_run_ids: Collection[str]) -> set[str]:
    """Those of the runs that have items in the ledger."""
    return set(
        session.scalars(
            select(EvaluationRun.eval_run_id).where(
                EvaluationRun.eval_run_id.in_(eval_run_ids),
                exists().where(LedgerItem.eval_run_id == EvaluationRun.eval_run_id),
            )
        )
    )


def due(session: Session, now: datetime, limit: int) -> Sequence[int]:
    """Ledger ids whose next try has come, oldest first."""
    return session.scalars(
        select(LedgerItem.ledger_id)
        .where(LedgerItem.state.in_(OPEN_STATES), LedgerItem.next_try_at <= now)
        .order_by(LedgerItem.next_try_at, LedgerItem.ledger_id)
        .limit(limit)
    ).all()


def pending(session: Session, now: datetime) -> int:
    """How many items are still being worked on.

    Those that are expected, that changed and were not refused since, that were refused and are tried again soon,
    whose embargo has passed, or that are being fetched.
    """
    state, due_at = LedgerItem.state, LedgerItem.next_try_at
    counted = select(func.count()).where(
        (state == LedgerState.EXPECTED)
        | ((state == LedgerState.CHANGED) & (LedgerItem.attempts == 0))
        | (state.in_((LedgerState.FAILED, LedgerState.CHANGED)) & (due_at <= now + SOON))
        | ((state == LedgerState.EMBARGOED) & (due_at <= now))
        | (state.in_(OPEN_STATES) & LedgerItem.claimed_by.is_not(None))
    )
    return session.scalar(counted) or 0


def claim(session: Session, ledger_ids: Collection[int], claimant: str, now: datetime, seconds: float) -> list[Target]:
    """Take open items that are due, so that no one else asks the source for them meanwhile.

    Args:
        session: open transaction.
        ledger_ids: the items wanted.
        claimant: id of the message being handled. A claim ends after `seconds`, or at once for its own claimant:
            a message that comes back from a killed worker goes on where it was.
        now: present time.
        seconds: length of the claim.

    Returns:
        What to fetch; items that are closed, not due or claimed by another message are left out.
    """
    taken = session.scalars(
        update(LedgerItem)
        .where(
            _is_among(ledger_ids),
            LedgerItem.state.in_(OPEN_STATES),
            (LedgerItem.next_try_at <= now) | (LedgerItem.claimed_by == claimant),
        )
        .values(claimed_by=claimant, next_try_at=now + timedelta(seconds=seconds))
        .returning(LedgerItem.ledger_id)
    ).all()
    rows = session.execute(
        select(
            LedgerItem.ledger_id,
            LedgerItem.eval_run_id,
            LedgerItem.item_key,
            LedgerItem.problem_id,
            EvaluationRun.agent_version_id,
            LedgerItem.episode_result_id,
            EvaluationRun.kind,
            LedgerItem.reason,
            LedgerItem.attempts,
            LedgerItem.etag,
            LedgerItem.updated_at,
            Trajectory.trajectory_id,
        )
        .join(EvaluationRun, EvaluationRun.eval_run_id == LedgerItem.eval_run_id)
        .join(Trajectory, Trajectory.ledger_id == LedgerItem.ledger_id, isouter=True)
        .where(_is_among(taken))
        .order_by(LedgerItem.ledger_id)
    )
    return [Target._make(row) for row in rows]


def lock(session: Session, ledger_ids: Collection[int]) -> dict[int, Locked]:
    """Keep items as they are until the transaction ends: a judgement that is listed meanwhile finds them stored."""
    rows = session.execute(
        select(
            *(LedgerItem.ledger_id, LedgerItem.state, LedgerItem.judgement),
            *(LedgerItem.episode_result_id, LedgerItem.updated_at),
        )
        .where(_is_among(ledger_ids))
        .order_by(LedgerItem.ledger_id)
        .with_for_update()
    )
    return {row.ledger_id: Locked(row.state in OPEN_STATES, *row[2:]) for row in rows}


def mark_fetched(
    session: Session, ledger_ids: Collection[int], now: datetime, etags: Mapping[int, str | None] | None = None
) -> None:
    """Close items whose trajectory is stored in this same transaction, whoever claims them meanwhile.

    Args:
        session: open transaction.
        ledger_ids: the items.
        now: present time.
        etags: the entity tag that the bytes of each came with. An item that is closed already keeps its own: the
            bytes that were stored first stand.
    """
    session.execute(
        update(LedgerItem)
        .where(_is_among(ledger_ids))
        .values(
            state=LedgerState.FETCHED,
            reason=None,
            fetched_at=now,
            claimed_by=None,
            attempts=0,
            etag=_etag_of(etags or {}),
        )
    )


def _is_among(ledger_ids: Collection[int]) -> Any:
    """One parameter, however many: the statement is the same every time."""
    return LedgerItem.ledger_id == any_(bindparam("ledger_ids", list(ledger_ids), ARRAY(BigInteger)))


def _etag_of(etags: Mapping[int, str | None]) -> Any:
    if not etags:
        return LedgerItem.etag
    given = bindparam("etags", {str(ledger_id): etag for ledger_id, etag in etags.items()}, JSONB)
    came_with = given[cast(LedgerItem.ledger_id, Text)].astext
    return case((LedgerItem.state == LedgerState.FETCHED, LedgerItem.etag), else_=came_with)


def mark_refused(session: Session, ledger_id: int, claimant: str, note: Note) -> bool:
    """Note why an item was not given; of no effect when someone else has claimed it meanwhile.

    Returns:
        Whether it was of effect.
    """
    noted = session.scalars(
        update(LedgerItem)
        .where(
            LedgerItem.ledger_id == ledger_id,
            LedgerItem.claimed_by == claimant,
            LedgerItem.state.in_(OPEN_STATES),
        )
        .values(**_noted(note))
        .returning(LedgerItem.ledger_id)
    ).all()
    return bool(noted)


def embargo_run(session: Session, eval_run_id: str, note: Note) -> None:
    """Put off every open item of a run that the source withholds as a whole: one refusal speaks for all."""
    session.execute(
        update(LedgerItem)
        .where(LedgerItem.eval_run_id == eval_run_id, LedgerItem.state.in_(OPEN_STATES))
        .values(**_noted(note))
    )


def _noted(note: Note) -> dict[str, Any]:
    """What a refusal makes of an item. One that is stored stays so: it merely was not given again."""
    stored = LedgerState.FETCHED if note.state is LedgerState.GONE else LedgerState.CHANGED
    state = case((LedgerItem.state == LedgerState.CHANGED, stored), else_=note.state)
    return {**note._asdict(), "state": state, "claimed_by": None}


def ask_again(session: Session, ledger_ids: Collection[int], now: datetime) -> None:
    """Open items of which another object has been listed than the one that was asked for: due at once."""
    stored = exists().where(Trajectory.ledger_id == LedgerItem.ledger_id)
    session.execute(
        update(LedgerItem)
        .where(_is_among(ledger_ids))
        .values(
            state=case((stored, LedgerState.CHANGED), else_=LedgerState.EXPECTED),
            reason=None,
            attempts=0,
            etag=None,
            next_try_at=now,
            claimed_by=None,
        )
    )


def give_back(session: Session, ledger_ids: Collection[int], claimant: str, now: datetime) -> None:
    """Give back items that were claimed and not asked for."""
    session.execute(
        update(LedgerItem)
        .where(_is_among(ledger_ids), LedgerItem.claimed_by == claimant)
        .values(claimed_by=None, next_try_at=now)
    )


def counts(session: Session) -> list[LedgerCount]:
    """The ledger in figures, by state and reason."""
    rows = session.execute(
        select(LedgerItem.state, LedgerItem.reason, func.count())
        .group_by(LedgerItem.state, LedgerItem.reason)
        .order_by(LedgerItem.state, LedgerItem.reason)
    )
    return [LedgerCount(*row) for row in rows]
