"""Pools as stored, and the publication history they must respect. Draws nothing itself."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.store.copying import copy_missing
from service.store.models import Clustering, PoolAssignment, PoolMember, Release, SnapshotRow


class PoolRow(NamedTuple):
    """The pool of one problem and why."""

    problem_id: str
    draw: str
    pool: str
    reason: str


class Published(NamedTuple):
    """Problems that have been in the train, or in the eval, split of any snapshot."""

    train: frozenset[str]
    eval: frozenset[str]


def published(session: Session) -> Published:
    """The publication history of all snapshots."""
    rows = session.execute(select(SnapshotRow.split, SnapshotRow.problem_id).distinct()).all()
    train = frozenset(problem_id for split, problem_id in rows if split == "train")
    return Published(train=train, eval=frozenset(problem_id for split, problem_id in rows if split == "eval"))


def held_out(session: Session) -> frozenset[str]:
    """Problems that any earlier assignment kept for eval or reserve: they stay out of train for ever."""
    return frozenset(
        session.scalars(select(PoolMember.problem_id).where(PoolMember.pool.in_(("eval", "reserve"))).distinct())
    )


def save(
    session: Session, *, clustering_id: int, plan_digest: str, members: Sequence[PoolRow], refusal: str | None = None
) -> int:
    """Store the pools of one clustering, or why none were assigned; returns the assignment's id."""
    assignment = PoolAssignment(clustering_id=clustering_id, plan_digest=plan_digest, refusal=refusal)
    session.add(assignment)
    session.flush()
    copy_missing(
        session,
        PoolMember.__table__,  # type: ignore[arg-type]
        ("assignment_id", *PoolRow._fields),
        ((assignment.assignment_id, *member) for member in members),
    )
    return assignment.assignment_id


def latest(session: Session) -> PoolAssignment | None:
    """The newest assignment, refused ones included; None before the first."""
    return session.scalar(select(PoolAssignment).order_by(PoolAssignment.assignment_id.desc()).limit(1))


def members(session: Session, assignment_id: int) -> dict[str, PoolRow]:
    """The pools of one assignment by problem id."""
    columns = [getattr(PoolMember, name) for name in PoolRow._fields]
    rows = session.execute(select(*columns).where(PoolMember.assignment_id == assignment_id))
    return {row[0]: PoolRow(*row) for row in rows}


class Undecided(NamedTuple):
    """An assignment that has neither been released under a spec nor refused."""

    assignment_id: int
    clustering_id: int
    revision: int


def undecided(session: Session, spec_digest: str) -> Undecided | None:
    """The newest assignment, when there is no release decision on it under this spec; None when nothing is to do."""
    newest = latest(session)
    if newest is None or newest.refusal is not None:
        return None
    decided = session.scalar(
        select(Release.release_id).where(
            Release.assignment_id == newest.assignment_id, Release.spec_digest == spec_digest
        )
    )
    clustering = session.get_one(Clustering, newest.clustering_id)
    if decided is not None:
        return None
    return Undecided(newest.assignment_id, newest.clustering_id, clustering.revision)
