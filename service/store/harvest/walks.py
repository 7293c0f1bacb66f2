"""The subscriber's passes over the source, so that others can tell when one is complete. Walks nothing itself."""

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


def finish(session: Session, walk_id: int, *, races: int, runs: int, items: int, oddities: Mapping[str, int]) -> None:
    """Note what a completed walk saw."""
    session.execute(
        update(Walk)
        .where(Walk.walk_id == walk_id)
        .values(finished_at=func.now(), races=races, runs=runs, items=items, oddities=dict(oddities))
    )


def break_off(session: Session, walk_id: int, error: str) -> None:
    """Note why a walk ended before its end."""
    session.execute(update(Walk).where(Walk.walk_id == walk_id).values(finished_at=func.now(), error=error))


def last_begun(session: Session) -> int:
    """Number of the newest walk, finished or not; 0 before the first."""
    return session.scalar(select(func.max(Walk.walk_id))) or 0


def incomplete(session: Session) -> bool:
    """Whether the newest walk has not been completed: it goes on, was broken off, or its subscriber was killed."""
    newest = session.scalar(select(Walk).order_by(Walk.walk_id.desc()).limit(1))
    return newest is not None and (newest.finished_at is None or newest.error is not None)


def seconds_since_last(session: Session) -> float | None:
    """Time since a walk last ended, however it ended; None when none has."""
    ended = session.scalar(select(func.extract("epoch", func.now() - func.max(Walk.finished_at))))
    return None if ended is None else float(ended)


def completed_after(session: Session, walk_id: int) -> bool:
    """Whether a walk begun after walk `walk_id` has been completed."""
    newer = select(Walk.walk_id).where(Walk.walk_id > walk_id, Walk.finished_at.is_not(None), Walk.error.is_(None))
    return session.scalar(newer.limit(1)) is not None


def errors_after(session: Session, walk_id: int) -> list[str]:
    """Why walks begun after walk `walk_id` were broken off, oldest first."""
    errors = select(Walk.error).where(Walk.walk_id > walk_id, Walk.error.is_not(None)).order_by(Walk.walk_id)
    return [error for error in session.scalars(errors) if error is not None]


def latest(session: Session) -> Walk | None:
    """The last completed walk; None before the first."""
    completed = select(Walk).where(Walk.finished_at.is_not(None), Walk.error.is_(None))
    return session.scalar(completed.order_by(Walk.walk_id.desc()).limit(1))
