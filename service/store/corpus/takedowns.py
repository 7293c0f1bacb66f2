"""Takedowns: who is meant by a name, and the bytes that then have to go. Rewrites no published file."""

from collections.abc import Sequence

import zstandard
from sqlalchemy import select, update
from sqlalchemy.orm import Session, aliased

from service.domain.sn15.tombstones import Subject, TombstoneReason
from service.store.corpus import tombstones
from service.store.corpus.tombstones import Word, redacted
from service.store.models import AgentVersion, EvaluationRun, Evidence, Payload, Trajectory

LISTING = "redact"
"""Which listing says so, as tombstones have it: none of SN15's, so that none of SN15's can lift it."""
NOTHING = zstandard.ZstdCompressor().compress(b"")


def trajectory(session: Session, eval_run_id: str, problem_id: str) -> str | None:
    """The subject of one trajectory; None where there is none."""
    statement = select(Trajectory.trajectory_id).where(
        Trajectory.eval_run_id == eval_run_id, Trajectory.problem_id == problem_id
    )
    number = session.scalar(statement)
    return None if number is None else str(number)


def run(session: Session, eval_run_id: str) -> str | None:
    """The subject of one run; None where there is none."""
    return session.scalar(select(EvaluationRun.eval_run_id).where(EvaluationRun.eval_run_id == eval_run_id))


def agent_versions(session: Session, hotkey: str) -> Sequence[str]:
    """The subjects of everything that one miner has entered."""
    statement = select(AgentVersion.agent_version_id).where(AgentVersion.miner_hotkey == hotkey)
    return session.scalars(statement.order_by(AgentVersion.agent_version_id)).all()


def take_down(session: Session, subjects: Sequence[tuple[Subject, str]], reason: str) -> int:
    """Raise tombstones that nothing lifts, and remove the bytes; again it changes nothing.

    Returns:
        Trajectories that are redacted by now, those of earlier takedowns included.
    """
    for subject in Subject:
        words = [
            Word(subject_id, TombstoneReason.REDACTED, LISTING, {"reason": reason})
            for kind, subject_id in subjects
            if kind is subject
        ]
        tombstones.settle(session, subject, words)
    _erase(session)
    return len(session.scalars(redacted()).all())


def _erase(session: Session) -> None:
    """Remove the bytes of redacted trajectories; those that another one has too stay, for they are its own."""
    other = aliased(Evidence)
    gone = (
        select(Evidence.payload_sha256)
        .where(Evidence.trajectory_id.in_(redacted()))
        .where(
            ~select(other.trajectory_id)
            .where(other.payload_sha256 == Evidence.payload_sha256, other.trajectory_id.not_in(redacted()))
            .exists()
        )
    )
    session.execute(
        update(Payload).where(Payload.payload_sha256.in_(gone), Payload.zstd != NOTHING).values(zstd=NOTHING)
    )
