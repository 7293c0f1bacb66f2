"""Scans of released code as stored, and the trajectories whose evidence has still to take one in. Scans nothing itself.

Source is read back here to be scanned, and goes nowhere else.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import zstandard
from sqlalchemy import ColumnElement, exists, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from service.domain.agent_code.code_scan import CodeScan
from service.domain.attribution.evidence import Evidence
from service.store.corpus import evidence
from service.store.corpus.evidence import Change
from service.store.models import (
    AgentCode,
    AgentCodeBytes,
    AgentCodeScan,
    EvaluationRun,
    ScannedTrajectory,
    Trajectory,
)


class Unscanned(NamedTuple):
    """A source that has not been scanned."""

    code_sha256: str
    source: bytes


class DueTrajectory(NamedTuple):
    """A trajectory of an agent whose code was scanned, and whose evidence does not say so."""

    trajectory_id: int
    code_sha256: str


def unscanned(session: Session, scanner: str) -> Unscanned | None:
    """The next source that this version of the scanner has not read; None when it has read all."""
    statement = select(AgentCodeBytes.code_sha256, AgentCodeBytes.zstd).where(~_is_scanned(scanner))
    row = session.execute(statement.order_by(AgentCodeBytes.code_sha256).limit(1)).first()
    return None if row is None else Unscanned(row.code_sha256, zstandard.decompress(row.zstd))


def add(session: Session, code_sha256: str, scan: CodeScan, sketch: bytes) -> None:
    """Store what was found; what is there already stands."""
    values = {"code_sha256": code_sha256, "scanner": scan.scanner, "body": msgspec.to_builtins(scan), "sketch": sketch}
    session.execute(insert(AgentCodeScan).values(values).on_conflict_do_nothing())


def due(session: Session, scanner: str, limit: int) -> Sequence[DueTrajectory]:
    """Trajectories whose evidence has not taken in the newest scan of their agent's code."""
    taken_in = exists().where(
        ScannedTrajectory.trajectory_id == Trajectory.trajectory_id,
        ScannedTrajectory.code_sha256 == AgentCode.code_sha256,
        ScannedTrajectory.scanner == scanner,
    )
    rows = session.execute(
        select(Trajectory.trajectory_id, AgentCode.code_sha256)
        .join(EvaluationRun, EvaluationRun.eval_run_id == Trajectory.eval_run_id)
        .join(AgentCode, AgentCode.agent_version_id == EvaluationRun.agent_version_id)
        .join(AgentCodeScan, AgentCodeScan.code_sha256 == AgentCode.code_sha256)
        .where(AgentCodeScan.scanner == scanner, ~taken_in)
        .limit(limit)
    )
    return [DueTrajectory(trajectory_id, str(code_sha256)) for trajectory_id, code_sha256 in rows]


def take_in(session: Session, scanner: str, items: Sequence[DueTrajectory]) -> int:
    """Make what the scans found each trajectory's next state of the evidence; returns how many are new.

    Done again, it changes nothing.
    """
    if not items:
        return 0
    bodies = session.execute(
        select(AgentCodeScan.code_sha256, AgentCodeScan.body).where(
            AgentCodeScan.scanner == scanner, AgentCodeScan.code_sha256.in_({item.code_sha256 for item in items})
        )
    )
    changes = {sha256: _adding(sha256, msgspec.convert(body, CodeScan)) for sha256, body in bodies}
    new = evidence.revise_all(session, {item.trajectory_id: changes[item.code_sha256] for item in items})
    added = insert(ScannedTrajectory).values([{**item._asdict(), "scanner": scanner} for item in items])
    session.execute(
        added.on_conflict_do_update(
            index_elements=["trajectory_id"],
            set_={name: added.excluded[name] for name in ("code_sha256", "scanner")},
        )
    )
    return new


def _adding(code_sha256: str, found: CodeScan) -> Change:
    """What a scan adds to the evidence."""

    def change(present: Evidence) -> Evidence:
        return msgspec.structs.replace(present, agent_code=code_sha256, code=found)

    return change


def anything_due(session: Session, scanner: str) -> bool:
    """Whether a source is unscanned, or a trajectory's evidence without its agent's scan."""
    unread = select(AgentCodeBytes.code_sha256).where(~_is_scanned(scanner)).limit(1)
    return session.scalar(unread) is not None or bool(due(session, scanner, 1))


def _is_scanned(scanner: str) -> ColumnElement[bool]:
    return exists().where(AgentCodeScan.code_sha256 == AgentCodeBytes.code_sha256, AgentCodeScan.scanner == scanner)
