"""Which released items can be compared with what is local, with what, and until when that is kept. Grades nothing."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import zstandard
from sqlalchemy import and_, delete, func, or_, select, tuple_, update
from sqlalchemy.dialects.postgresql import distinct_on, insert
from sqlalchemy.orm import Session, aliased

from service.store.models import Evidence, LocalEnvelope, LocalGrading, Trajectory, WitnessLine
from service.store.validator.local import NewLine

BYTES_KEPT = timedelta(days=30)
"""After it was graded, a line is kept this long: until then released bytes may change, or lines of the proxy's log come
late, and the item is graded again. The source's own corrections come within days."""
ROWS_KEPT = timedelta(days=90)
"""What was never released after so long will not be, and what was graded so long ago is of no further use."""
WITNESS_KEPT = timedelta(days=30)
"""Requests are compared when their item is released, which is days after they were read at most."""
MOST_ENVELOPES = 8
"""Lines about one item that are compared, of the first ones and of the last ones: an honest run writes one."""
MOST_LINES = 20_000
"""Lines that are compared with one item: a proxy that serves 30 requests a second fills eleven minutes with so many."""


class DueItem(NamedTuple):
    """A released item that can be compared."""

    trajectory_id: int
    eval_run_id: str
    item_key: str
    kind: str


class EnvelopeRow(NamedTuple):
    """A stored line about one item."""

    envelope_id: int
    kind: str
    content: bytes
    size_bytes: int
    defects: tuple[str, ...]


class Lines(NamedTuple):
    """The stored lines about one item: some of the first and of the last where there are many."""

    rows: list[EnvelopeRow]
    through: int
    """Lines with higher ids came later."""


class RivalRow(NamedTuple):
    """Another item that ran at the time."""

    started_at: datetime
    ended_at: datetime
    is_same_problem: bool


Stretch = tuple[datetime, datetime]


def waiting(session: Session) -> int:
    """Lines whose item the source has not released: the one figure there is before release, for operators alone."""
    return session.scalar(select(func.count()).where(LocalEnvelope.graded_at.is_(None))) or 0


def due(session: Session, limit: int) -> list[DueItem]:
    """Items that were released and have lines to compare, or more to compare with than before."""
    columns = [getattr(Trajectory, name) for name in DueItem._fields]
    mine = and_(LocalEnvelope.eval_run_id == Trajectory.eval_run_id, LocalEnvelope.problem_id == Trajectory.item_key)
    dropped = aliased(LocalEnvelope)
    whole = ~(
        select(dropped.envelope_id)
        .where(
            dropped.eval_run_id == Trajectory.eval_run_id,
            dropped.problem_id == Trajectory.item_key,
            dropped.zstd.is_(None),
        )
        .exists()
    )
    new = select(*columns).join(LocalEnvelope, mine).where(LocalEnvelope.graded_at.is_(None), whole).distinct()
    again = (
        select(*columns)
        .join(LocalGrading, LocalGrading.trajectory_id == Trajectory.trajectory_id)
        .where(LocalGrading.is_due)
    )
    return [DueItem(*row) for row in session.execute(new.union(again).limit(limit))]


def envelopes(session: Session, item: DueItem) -> Lines:
    """The lines about one item in the order they were written; one that came first and last is given twice."""
    about = and_(LocalEnvelope.eval_run_id == item.eval_run_id, LocalEnvelope.problem_id == item.item_key)
    through = session.scalar(select(func.max(LocalEnvelope.envelope_id)).where(about)) or 0
    here = select(LocalEnvelope).where(about, LocalEnvelope.envelope_id <= through, LocalEnvelope.zstd.is_not(None))
    firsts = session.scalars(here.order_by(LocalEnvelope.ordinal).limit(MOST_ENVELOPES)).all()
    lasts = session.scalars(here.order_by(LocalEnvelope.last_ordinal.desc()).limit(MOST_ENVELOPES)).all()
    places = sorted({place: row for row in (*firsts, *lasts) for place in (row.ordinal, row.last_ordinal)}.items())
    found: list[EnvelopeRow] = []
    for _, row in places:
        content = zstandard.decompress(row.zstd or b"")
        line = EnvelopeRow(row.envelope_id, row.kind, content, row.size_bytes, tuple(row.defects))
        if not found or found[-1] != line:
            found.append(line)
    return Lines(found, through)


def covered(session: Session) -> Stretch | None:
    """From the first to the last line of the proxy's log; None where there is none."""
    first, last = session.execute(select(func.min(WitnessLine.at), func.max(WitnessLine.at))).one()
    return None if first is None else (first, last)


def lines_within(session: Session, stretches: Sequence[Stretch]) -> list[NewLine]:
    """Lines of the proxy's log in these stretches of time, in order of time."""
    if not stretches:
        return []
    columns = [getattr(WitnessLine, name) for name in NewLine._fields]
    within = or_(*(WitnessLine.at.between(start, end) for start, end in stretches))
    rows = session.execute(
        select(*columns).where(within).order_by(WitnessLine.at, WitnessLine.line_id).limit(MOST_LINES)
    )
    return [NewLine(*row) for row in rows]


def rivals(session: Session, item: DueItem, stretches: Sequence[Stretch]) -> list[RivalRow]:
    """Other items of this validator that ran within these stretches."""
    if not stretches:
        return []
    here = tuple_(LocalEnvelope.eval_run_id, LocalEnvelope.problem_id)
    overlap = or_(*(and_(LocalEnvelope.ended_at >= start, LocalEnvelope.started_at <= end) for start, end in stretches))
    rows = session.execute(
        select(LocalEnvelope.started_at, LocalEnvelope.ended_at, LocalEnvelope.problem_id == item.item_key)
        .where(overlap, LocalEnvelope.problem_id.is_not(None), here != (item.eval_run_id, item.item_key))
        .limit(MOST_LINES)
    )
    return [RivalRow(*row) for row in rows]


def mark_graded(
    session: Session,
    item: DueItem,
    through: int,
    payload_sha256: str,
    span: Stretch | None,
    now: datetime,
) -> None:
    """Note that an item was compared, with what, and over which time its requests spread."""
    session.execute(
        update(LocalEnvelope)
        .where(LocalEnvelope.eval_run_id == item.eval_run_id, LocalEnvelope.problem_id == item.item_key)
        .where(LocalEnvelope.envelope_id <= through)
        .values(graded_at=now)
    )
    values = {
        "payload_sha256": payload_sha256,
        "window_start": span[0] if span else None,
        "window_end": span[1] if span else None,
        "is_due": False,
        "graded_at": now,
    }
    session.execute(
        insert(LocalGrading)
        .values(trajectory_id=item.trajectory_id, **values)
        .on_conflict_do_update(index_elements=["trajectory_id"], set_=values)
    )


def mark_revised(session: Session) -> None:
    """Make due what was compared with other bytes than are released now."""
    present = (
        select(Evidence.trajectory_id, Evidence.payload_sha256)
        .where(Evidence.trajectory_id.in_(select(LocalGrading.trajectory_id)))
        .ext(distinct_on(Evidence.trajectory_id))
        .order_by(Evidence.trajectory_id, Evidence.seq.desc())
        .subquery()
    )
    session.execute(
        update(LocalGrading)
        .where(
            LocalGrading.trajectory_id == present.c.trajectory_id,
            LocalGrading.payload_sha256 != present.c.payload_sha256,
        )
        .values(is_due=True)
    )


def forget(session: Session, now: datetime) -> None:
    """Drop what has been kept long enough."""
    old = and_(LocalEnvelope.graded_at < now - BYTES_KEPT, LocalEnvelope.zstd.is_not(None))
    mine = and_(LocalEnvelope.eval_run_id == Trajectory.eval_run_id, LocalEnvelope.problem_id == Trajectory.item_key)
    graded = select(Trajectory.trajectory_id).join(LocalEnvelope, mine).where(old)
    session.execute(delete(LocalGrading).where(LocalGrading.trajectory_id.in_(graded)))
    session.execute(update(LocalEnvelope).where(old).values(zstd=None))
    last_use = func.coalesce(LocalEnvelope.graded_at, LocalEnvelope.seen_at)
    session.execute(delete(LocalEnvelope).where(last_use < now - ROWS_KEPT))
    session.execute(delete(WitnessLine).where(WitnessLine.seen_at < now - WITNESS_KEPT))
