"""Rows of imported files as the corpus keeps them, and the log of imports. Reads no file and no format.

Only adds: what is there already, harvested or imported, stays as it is.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
import zstandard
from psycopg.types.json import Jsonb
from sqlalchemy import Table, select, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from service.domain.attribution.evidence import Evidence
from service.domain.canonical import digest
from service.domain.imports.rows import Imported
from service.domain.wire.lenient import salvage
from service.store.copying import copy_missing
from service.store.corpus import trajectories
from service.store.corpus.trajectories import NewTrajectory
from service.store.engine import is_about_values
from service.store.models import (
    IMPORTED,
    AgentVersion,
    EvaluationRun,
    Import,
    LedgerItem,
    LedgerState,
    LocalEnvelope,
    Problem,
)

ITEM_KEY = "row"
"""An imported run has one item: no format says which rows are of one run, and a run holds a problem once."""
CATEGORY = "imported"
"""Of a problem that only imports have named; the source's own word replaces it."""


class Added(NamedTuple):
    """How many rows were new, and how many were there before or came twice."""

    stored: int
    present: int
    local: frozenset[str] = frozenset()
    """Runs of rows that are not stored, since they stand in the validator's own logs."""


class Unstorable(Exception):
    """The database takes a value of some row not; the transaction is lost, and the other rows may be tried again."""


def add(session: Session, rows: Sequence[Imported], now: datetime) -> Added:
    """Store rows as fetched items with their trajectories. Rows that are stored already add nothing.

    Everything is written in order of its key, so that two imports at once wait for each other and never for ever.

    Raises:
        Unstorable: a row holds what the database does not take.
    """
    try:
        return _add(session, rows, now)
    except DBAPIError as fault:
        if not is_about_values(fault):
            raise
        raise Unstorable from fault


def _add(session: Session, rows: Sequence[Imported], now: datetime) -> Added:
    local = _local(session, rows)
    rows = [row for row in rows if row.eval_run_id not in local]
    distinct = {row.eval_run_id: row for row in rows}
    known = set(
        session.scalars(select(LedgerItem.eval_run_id).where(LedgerItem.eval_run_id.in_(distinct), _has_item_key()))
    )
    new = [distinct[key] for key in sorted(distinct.keys() - known)]
    if not new:
        return Added(0, len(rows), local)
    _copy(session, AgentVersion, ("agent_version_id", "agent_name", "family", "source"), _agents(new))
    columns = ("eval_run_id", "agent_version_id", "phase", "kind", "status", "is_over", "counts", "source", "listed_at")
    _copy(session, EvaluationRun, columns, [_run(row, now) for row in new])
    problems = sorted({(row.problem_id, row.kind.value, CATEGORY) for row in new})
    _copy(session, Problem, ("problem_id", "kind", "category"), problems)
    item_columns = ("eval_run_id", "item_key", "problem_id", "judgement", "state", "next_try_at", "fetched_at")
    stored = _copy(session, LedgerItem, (*item_columns, "attempts"), [_item(row, now) for row in new])
    ledger_ids = {
        eval_run_id: ledger_id
        for eval_run_id, ledger_id in session.execute(
            select(LedgerItem.eval_run_id, LedgerItem.ledger_id).where(
                LedgerItem.eval_run_id.in_([row.eval_run_id for row in new]), _has_item_key()
            )
        )
    }
    trajectories.add(session, [_trajectory(row, ledger_ids[row.eval_run_id]) for row in new])
    return Added(stored, len(rows) - stored, local)


def _local(session: Session, rows: Sequence[Imported]) -> frozenset[str]:
    """Runs of rows that stand in the validator's own logs: as the same line, or as the same dialogue spelled anew."""
    lines = {row.line_sha256: row.eval_run_id for row in rows}
    known = session.scalars(select(LocalEnvelope.line_sha256).where(LocalEnvelope.line_sha256.in_(lines)))
    found = {lines[line_sha256] for line_sha256 in known}
    about = LocalEnvelope.problem_id.in_({row.problem_id for row in rows}) & LocalEnvelope.zstd.is_not(None)
    local = {
        (problem_id, said)
        for problem_id, packed in session.execute(select(LocalEnvelope.problem_id, LocalEnvelope.zstd).where(about))
        if packed and (said := _dialogue_digest(zstandard.decompress(packed), in_envelope=True)) is not None
    }
    if local:
        found |= {row.eval_run_id for row in rows if (row.problem_id, _dialogue_digest(row.payload)) in local}
    return frozenset(found)


def _dialogue_digest(line: bytes, *, in_envelope: bool = False) -> str | None:
    """Of a dialogue however it is spelled; None where there is none that can be told apart."""
    value = salvage(line).value
    if in_envelope:
        value = value.get("dialogue") if isinstance(value, dict) else None
    try:
        return digest(value) if isinstance(value, list) and value else None
    except (RecursionError, ValueError, TypeError):
        return None


def _has_item_key() -> Any:
    return LedgerItem.item_key == ITEM_KEY


def _copy(session: Session, model: Any, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
    table: Table = model.__table__
    return copy_missing(session, table, columns, rows)


def _agents(rows: Sequence[Imported]) -> list[tuple[Any, ...]]:
    agents = sorted({row.agent for row in rows})
    return [(one.agent_version_id, one.name, one.family, Jsonb({"is_vouched": one.is_vouched})) for one in agents]


def _run(row: Imported, now: datetime) -> tuple[Any, ...]:
    told = {"format": row.format.value, "row_sha256": row.row_sha256, "schema_version": row.schema_version}
    agent_version_id = row.agent.agent_version_id
    return (row.eval_run_id, agent_version_id, IMPORTED, row.kind.value, IMPORTED, True, True, Jsonb(told), now)


def _item(row: Imported, now: datetime) -> tuple[Any, ...]:
    told = Jsonb(msgspec.to_builtins(row.judgement))
    return (row.eval_run_id, ITEM_KEY, row.problem_id, told, LedgerState.FETCHED.value, now, now, 0)


def _trajectory(row: Imported, ledger_id: int) -> NewTrajectory:
    evidence = Evidence(judgement=row.judgement)
    return NewTrajectory(
        ledger_id=ledger_id,
        eval_run_id=row.eval_run_id,
        item_key=ITEM_KEY,
        problem_id=row.problem_id,
        kind=row.kind.value,
        payload=row.payload,
        evidence_digest=evidence.digest,
        evidence=msgspec.to_builtins(evidence),
    )


def begin(session: Session, name: str) -> int:
    """Note that a file is being imported; returns the import's number."""
    row = Import(name=name, counts={})
    session.add(row)
    session.flush()
    return row.import_id


def finish(
    session: Session,
    import_id: int,
    *,
    file_sha256: str | None,
    format_name: str | None,
    counts: Mapping[str, int],
    fault: str | None,
    at: datetime,
) -> None:
    """Note what became of an import."""
    session.execute(
        update(Import)
        .where(Import.import_id == import_id)
        .values(file_sha256=file_sha256, format=format_name, counts=dict(counts), fault=fault, finished_at=at)
    )
