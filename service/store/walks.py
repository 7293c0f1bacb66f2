"""The subscriber's passes over the source, so that others can tell when one has been completed."""

from collections.abc import Mapping

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from service.store.models import Walk


def begin(session: Session) -> int:
    """Note that a walk has begun; returns its number."""
    walk = Walk()
    session.add(walk)
    session.flush()
    return walk.walk_id


def finish(session: Session, walk_id: int, *, races: int, runs: int, items: int, faults: Mapping[str, int]) -> None:
    """Note what a completed walk saw."""
    session.execute(
        update(Walk)
        .where(Walk.walk_id == walk_id)
        .values(finished_at=func.now(), races=races, runs=runs, items=items, faults=dict(faults))
    )


def last_begun(session: Session) -> int:
    """Number of the newest walk, finished or not; 0 before the first."""
    return session.scalar(select(func.max(Walk.walk_id))) or 0


def completed_after(session: Session, walk_id: int) -> bool:
    """Whether a walk begun after walk `walk_id` has been completed."""
    newer = select(Walk.walk_id).where(Walk.walk_id > walk_id, Walk.finished_at.is_not(None)).limit(1)
    return session.scalar(newer) is not None


def latest(session: Session) -> Walk | None:
    """The last completed walk; None before the first."""
    return session.scalar(select(Walk).where(Walk.finished_at.is_not(None)).order_by(Walk.walk_id.desc()).limit(1))
