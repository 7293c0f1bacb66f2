"""What was read of the validator's own logs, and how far. Parses nothing; what is compared, `gradings` says.

No module but these two reads these tables. A position moves in the transaction that stores what was read up to it, so
that whatever is killed between two commits is read again, and nothing is stored twice.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

import zstandard
from psycopg.types.json import Jsonb
from sqlalchemy import and_, delete, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from service.errors import ErrorCode, SluiceError
from service.store.copying import copy_missing
from service.store.models import LocalEnvelope, LocalGrading, TailPosition, WitnessLine

ZSTD_LEVEL = 9


class PositionRow(NamedTuple):
    """How far a file was read; the fields of `source.validator.tail.Position`."""

    path: str
    device: int
    inode: int
    offset_bytes: int
    lines: int
    head_sha256: str
    head_bytes: int
    tail_sha256: str


class NewEnvelope(NamedTuple):
    """One line of a run's log, ready to be stored."""

    eval_run_id: str
    problem_id: str | None
    kind: str
    ordinal: int
    line_sha256: str
    content: bytes
    size_bytes: int
    status: str | None
    defects: tuple[str, ...]
    started_at: datetime
    ended_at: datetime


class NewLine(NamedTuple):
    """One line of the proxy's log, ready to be stored."""

    line_sha256: str
    at: datetime
    resolution_ms: int
    method: str | None
    path: str
    arguments: dict[str, str]
    status: int | None
    body_bytes: int | None
    request_bytes: int | None
    seconds: float | None


def positions(session: Session, source: str) -> list[PositionRow]:
    """How far each file of one source was read."""
    columns = [getattr(TailPosition, name) for name in PositionRow._fields]
    return [PositionRow(*row) for row in session.execute(select(*columns).where(TailPosition.source == source))]


def move(
    session: Session,
    source: str,
    before: PositionRow | None,
    after: PositionRow | None,
    now: datetime,
    garbage_lines: int = 0,
) -> None:
    """Put `after` in the place of `before`; None stands for no position.

    Raises:
        SluiceError: LEASE_LOST when another process has moved it meanwhile; nothing of this transaction may stand.
    """
    if before is None:
        values = after._asdict() if after is not None else None
        if values is not None and not _begin(session, {**values, "source": source, "updated_at": now}, garbage_lines):
            raise _overtaken()
        return
    at = and_(*(getattr(TailPosition, name) == value for name, value in before._asdict().items()))
    where = and_(TailPosition.source == source, at)
    if after is None:
        moved = session.scalar(delete(TailPosition).where(where).returning(TailPosition.position_id))
    else:
        garbage = TailPosition.garbage_lines + garbage_lines
        values = {**after._asdict(), "updated_at": now, "garbage_lines": garbage}
        moved = session.scalar(update(TailPosition).where(where).values(**values).returning(TailPosition.position_id))
    if moved is None:
        raise _overtaken()


def _begin(session: Session, values: dict[str, object], garbage_lines: int) -> bool:
    statement = insert(TailPosition).values(**values, garbage_lines=garbage_lines).on_conflict_do_nothing()
    return session.scalar(statement.returning(TailPosition.position_id)) is not None


def _overtaken() -> SluiceError:
    return SluiceError(ErrorCode.LEASE_LOST, "another worker reads the validator's logs")


def add_envelopes(session: Session, rows: Iterable[NewEnvelope], now: datetime) -> None:
    """Store lines; one that is stored already is only noted where it came last."""
    compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL)
    merged: dict[tuple[str | None, ...], dict[str, object]] = {}
    for row in rows:
        key = (row.eval_run_id, row.problem_id, row.kind, row.line_sha256)
        known = merged.get(key)
        if known is not None:
            known["last_ordinal"] = row.ordinal
            continue
        values = row._asdict()
        zstd = compressor.compress(values.pop("content"))
        values["defects"] = list(row.defects)
        merged[key] = {**values, "last_ordinal": row.ordinal, "zstd": zstd, "seen_at": now}
    if not merged:
        return
    statement = insert(LocalEnvelope).values(list(merged.values()))
    came_later = statement.excluded.last_ordinal > LocalEnvelope.last_ordinal
    session.execute(
        statement.on_conflict_do_update(
            constraint="uq_local_envelopes_eval_run_id_problem_id_kind_line_sha256",
            set_={"last_ordinal": statement.excluded.last_ordinal, "graded_at": None},
            where=came_later,
        )
    )


def add_lines(session: Session, rows: Sequence[NewLine], now: datetime) -> int:
    """Store lines of the proxy's log; gradings they may bear on become due. Returns how many were new."""
    if not rows:
        return 0
    added = copy_missing(
        session,
        WitnessLine.__table__,  # type: ignore[arg-type]
        (*NewLine._fields, "seen_at"),
        ((*row[:5], Jsonb(row.arguments), *row[6:], now) for row in rows),
    )
    if added:
        times = [row.at for row in rows]
        session.execute(
            update(LocalGrading)
            .where(LocalGrading.window_end >= min(times), LocalGrading.window_start <= max(times))
            .values(is_due=True)
        )
    return added
