"""Pools as stored, and the publication history they must respect. Draws nothing itself."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from service.domain.leaks.pools import Pool
from service.errors import ErrorCode, SluiceError
from service.store.copying import copy_missing
from service.store.models import Clustering, ClusterMember, PoolAcceptance, PoolAssignment, PoolMember, SnapshotRow


class PoolRow(NamedTuple):
    """The pool of one problem and why."""

    problem_id: str
    draw: str
    pool: str
    reason: str


class History(NamedTuple):
    """What earlier generations did with problems."""

    published_train: frozenset[str]
    """Problems that have been in the train split of any snapshot."""
    former: dict[str, Pool]
    """The strictest pool a problem was ever kept back in: reserve before eval. Others are not named."""
    quarantined: frozenset[str]
    """Problems the last assignment that was not refused had in quarantine."""


def history(session: Session) -> History:
    """The history of all assignments and snapshots."""
    trained = select(SnapshotRow.problem_id).where(SnapshotRow.split == Pool.TRAIN).distinct()
    kept_back = select(PoolMember.problem_id, PoolMember.pool).where(PoolMember.pool.in_((Pool.EVAL, Pool.RESERVE)))
    former: dict[str, Pool] = {}
    for problem_id, pool in session.execute(kept_back.distinct()):
        if former.get(problem_id) is not Pool.RESERVE:
            former[problem_id] = Pool(pool)
    accepted = select(func.max(PoolAssignment.assignment_id)).where(PoolAssignment.refusal.is_(None)).scalar_subquery()
    quarantined = select(PoolMember.problem_id).where(
        PoolMember.assignment_id == accepted, PoolMember.pool == Pool.QUARANTINED
    )
    return History(
        published_train=frozenset(session.scalars(trained)),
        former=former,
        quarantined=frozenset(session.scalars(quarantined)),
    )


def save(
    session: Session,
    *,
    clustering_id: int,
    plan_digest: str,
    members: Sequence[PoolRow],
    refusal: str | None = None,
    is_accepted: bool = False,
) -> int:
    """Store the pools of one clustering, or why none were assigned; returns the assignment's id."""
    assignment = PoolAssignment(
        clustering_id=clustering_id, plan_digest=plan_digest, refusal=refusal, is_accepted=is_accepted
    )
    session.add(assignment)
    session.flush()
    copy_missing(
        session,
        PoolMember.__table__,  # type: ignore[arg-type]
        ("assignment_id", *PoolRow._fields),
        ((assignment.assignment_id, *member) for member in members),
    )
    return assignment.assignment_id


def accept(session: Session, assignment_id: int, reason: str) -> None:
    """Let the refused assignment be made all the same; the first word stands.

    Raises:
        SluiceError: NOT_FOUND when there is no such assignment; BAD_INPUT when it asks nothing, or is not the newest.
    """
    newest = latest(session)
    if session.get(PoolAssignment, assignment_id) is None or newest is None:
        raise SluiceError(ErrorCode.NOT_FOUND, f"there is no assignment {assignment_id}")
    if newest.assignment_id != assignment_id or newest.refusal is None:
        told = "was not refused" if newest.assignment_id == assignment_id else "is not the newest one"
        raise SluiceError(ErrorCode.BAD_INPUT, f"assignment {assignment_id} {told}: there is nothing to accept")
    session.execute(
        insert(PoolAcceptance)
        .values(assignment_id=assignment_id, reason=reason)
        .on_conflict_do_nothing(index_elements=["assignment_id"])
    )


def accepted_size(session: Session) -> int:
    """Problems of the largest leak cluster that a person has ever accepted; 0: none."""
    sizes = (
        select(func.count().label("size"))
        .select_from(ClusterMember)
        .join(PoolAssignment, PoolAssignment.clustering_id == ClusterMember.clustering_id)
        .where(PoolAssignment.is_accepted)
        .group_by(PoolAssignment.assignment_id, ClusterMember.cluster_id)
        .subquery()
    )
    return session.scalar(select(func.max(sizes.c.size))) or 0


def latest(session: Session) -> PoolAssignment | None:
    """The newest assignment, refused ones included; None before the first."""
    return session.scalar(select(PoolAssignment).order_by(PoolAssignment.assignment_id.desc()).limit(1))


def members(session: Session, assignment_id: int) -> dict[str, PoolRow]:
    """The pools of one assignment by problem id."""
    columns = [getattr(PoolMember, name) for name in PoolRow._fields]
    rows = session.execute(select(*columns).where(PoolMember.assignment_id == assignment_id))
    return {row[0]: PoolRow(*row) for row in rows}


class Releasable(NamedTuple):
    """An assignment that snapshots can be made from."""

    revision: int
    clustering_id: int
    assignment_id: int
    benchmarks_digest: str
    """Of the benchmarks that stood."""


def releasable(session: Session) -> Releasable | None:
    """The newest assignment, if snapshots can be made from it; None when there is none, or when it was refused."""
    newest = latest(session)
    if newest is None or newest.refusal is not None:
        return None
    clustering = session.get_one(Clustering, newest.clustering_id)
    return Releasable(clustering.revision, newest.clustering_id, newest.assignment_id, clustering.benchmarks_digest)
