"""The code of agent versions: which is still to be asked for, and the bytes once they came. Evidence, never given away.

Nothing here reads the bytes back: `corpus.code_scans` does, for the scan alone.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import zstandard
from sqlalchemy import exists, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from service.store.harvest.ledger import OPEN_STATES, Note
from service.store.models import (
    IMPORTED,
    AgentCode,
    AgentCodeBytes,
    AgentVersion,
    EvaluationRun,
    LedgerItem,
    LedgerState,
)

ZSTD_LEVEL = 9


class CodeTarget(NamedTuple):
    """An agent version whose code may be asked for."""

    agent_version_id: str
    reason: str | None
    """Why it was refused last."""
    attempts: int
    """Refusals of that kind."""


def due(session: Session, now: datetime, limit: int) -> Sequence[CodeTarget]:
    """Agent versions with items in the ledger whose code was never asked for, then those whose next try has come."""
    in_ledger = exists().where(
        EvaluationRun.agent_version_id == AgentVersion.agent_version_id,
        LedgerItem.eval_run_id == EvaluationRun.eval_run_id,
        EvaluationRun.phase != IMPORTED,
    )
    is_due = AgentCode.state.in_(OPEN_STATES) & (AgentCode.next_try_at <= now)
    rows = session.execute(
        select(AgentVersion.agent_version_id, AgentCode.reason, AgentCode.attempts)
        .join(AgentCode, AgentCode.agent_version_id == AgentVersion.agent_version_id, isouter=True)
        .where(AgentCode.agent_version_id.is_(None) | is_due, in_ledger)
        .order_by(AgentCode.next_try_at.nulls_first(), AgentVersion.agent_version_id)
        .limit(limit)
    )
    return [CodeTarget(agent_version_id, reason, attempts or 0) for agent_version_id, reason, attempts in rows]


def add(session: Session, target: CodeTarget, code: bytes, now: datetime) -> None:
    """Store the code of an agent version; equal bytes are stored once."""
    code_sha256 = hashlib.sha256(code).hexdigest()
    packed = zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(code)
    session.execute(
        insert(AgentCodeBytes)
        .values(code_sha256=code_sha256, zstd=packed, size_bytes=len(code))
        .on_conflict_do_nothing(index_elements=["code_sha256"])
    )
    _set(
        session,
        target,
        state=LedgerState.FETCHED,
        reason=None,
        attempts=target.attempts,
        next_try_at=now,
        code_sha256=code_sha256,
        fetched_at=now,
    )


def note_refusal(session: Session, target: CodeTarget, note: Note) -> None:
    """Note why the code was not given; of no effect where it has come meanwhile."""
    _set(session, target, **note._asdict(), code_sha256=None, fetched_at=None)


def _set(session: Session, target: CodeTarget, **values: Any) -> None:
    statement = insert(AgentCode).values(agent_version_id=target.agent_version_id, **values)
    session.execute(
        statement.on_conflict_do_update(
            index_elements=["agent_version_id"], set_=values, where=AgentCode.state != LedgerState.FETCHED
        )
    )
