"""Which problems, races and published rows touch benchmarks, as the newest clustering sees it. Ties nothing itself."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from sqlalchemy import Select, and_, distinct, func, select
from sqlalchemy.orm import Session

from service.domain.leaks.benchmarks import BenchmarkPolicy
from service.domain.leaks.leakage import EdgeKind
from service.domain.rows.marks import ContactRow
from service.domain.rows.records import trajectory_key
from service.domain.rows.splits import Split
from service.store.models import (
    BenchmarkContact,
    BenchmarkMember,
    BenchmarkRegistration,
    ClusteringBenchmark,
    ClusterMember,
    EvaluationRun,
    PoolAssignment,
    Release,
    SnapshotRow,
    Trajectory,
)
from service.store.release import benchmarks, clusters


class Touched(NamedTuple):
    """How many problems of one race touch a benchmark, and their trajectories."""

    race_id: str | None
    """None: runs outside any race."""
    problems: int
    direct: int
    """Problems that touch an item themselves, not just one they are clustered with."""
    trajectories: int


class Published(NamedTuple):
    """How many rows of one split of one snapshot touch a benchmark."""

    snapshot_id: str
    split: str
    rows: int
    direct: int


def kinds(session: Session, clustering_id: int, name: str) -> dict[str, int]:
    """Problems by the kind of their contact with a benchmark; `suspect` ties nothing."""
    rows = session.execute(
        select(BenchmarkContact.kind, func.count(distinct(BenchmarkContact.problem_id)))
        .where(BenchmarkContact.clustering_id == clustering_id, BenchmarkContact.name == name)
        .group_by(BenchmarkContact.kind)
        .order_by(BenchmarkContact.kind)
    )
    return {kind: problems for kind, problems in rows}


def items_touched(session: Session, clustering_id: int, name: str) -> int:
    """Items of a benchmark that are in a leak cluster with a problem."""
    statement = select(func.count()).where(BenchmarkMember.clustering_id == clustering_id, BenchmarkMember.name == name)
    return session.scalar(statement) or 0


def by_race(session: Session, clustering_id: int, name: str) -> list[Touched]:
    """What touches a benchmark, race by race."""
    touching = _touching(clustering_id).where(BenchmarkMember.name == name).subquery()
    direct = _direct(clustering_id).where(BenchmarkContact.name == name).subquery()
    rows = session.execute(
        select(
            EvaluationRun.race_id,
            func.count(distinct(Trajectory.problem_id)),
            func.count(distinct(direct.c.problem_id)),
            func.count(distinct(Trajectory.trajectory_id)),
        )
        .join(EvaluationRun, EvaluationRun.eval_run_id == Trajectory.eval_run_id)
        .join(touching, touching.c.problem_id == Trajectory.problem_id)
        .join(direct, direct.c.problem_id == Trajectory.problem_id, isouter=True)
        .group_by(EvaluationRun.race_id)
        .order_by(EvaluationRun.race_id)
    )
    return [Touched(*row) for row in rows]


def by_snapshot(session: Session, clustering_id: int, name: str) -> list[Published]:
    """What touches a benchmark, snapshot by snapshot and split by split."""
    touching = _touching(clustering_id).where(BenchmarkMember.name == name).subquery()
    direct = _direct(clustering_id).where(BenchmarkContact.name == name).subquery()
    rows = session.execute(
        select(
            SnapshotRow.snapshot_id,
            SnapshotRow.split,
            func.count(),
            func.count().filter(direct.c.problem_id.is_not(None)),
        )
        .join(touching, touching.c.problem_id == SnapshotRow.problem_id)
        .join(direct, direct.c.problem_id == SnapshotRow.problem_id, isouter=True)
        .group_by(SnapshotRow.snapshot_id, SnapshotRow.split)
        .order_by(SnapshotRow.snapshot_id, SnapshotRow.split)
    )
    return [Published(*row) for row in rows]


def of_snapshot(session: Session, snapshot_id: str) -> Iterator[ContactRow]:
    """Rows of a snapshot that touch a benchmark it was not made under.

    One it was made under counts too where its policy keeps it out of training and rows of train have come to touch it
    since.
    """
    newest = clusters.latest(session)
    if newest is None:
        return
    known = _known_then(session, snapshot_id)
    for registration in benchmarks.of_clustering(session, newest.clustering_id):
        was_known = registration.registration_id in known
        if was_known and registration.policy != BenchmarkPolicy.EXCLUDE:
            continue
        for split, eval_run_id, problem_id, is_direct in _rows(
            session, snapshot_id, newest.clustering_id, registration
        ):
            if not was_known or split == Split.TRAIN:
                yield ContactRow(
                    benchmark=registration.name,
                    policy=registration.policy,
                    since=registration.registered_at,
                    split=split,
                    trajectory_key=trajectory_key(eval_run_id, problem_id),
                    is_direct=is_direct,
                )


def _known_then(session: Session, snapshot_id: str) -> frozenset[int]:
    """The registrations that stood whenever this snapshot was released."""
    statement = (
        select(ClusteringBenchmark.registration_id)
        .join(PoolAssignment, PoolAssignment.clustering_id == ClusteringBenchmark.clustering_id)
        .join(Release, Release.assignment_id == PoolAssignment.assignment_id)
        .where(Release.snapshot_id == snapshot_id)
    )
    return frozenset(session.scalars(statement))


def _rows(session: Session, snapshot_id: str, clustering_id: int, registration: BenchmarkRegistration) -> Iterable[Any]:
    """Split, run, problem, and whether the contact is direct."""
    touching = _touching(clustering_id).where(BenchmarkMember.name == registration.name).subquery()
    direct = _direct(clustering_id).where(BenchmarkContact.name == registration.name).subquery()
    return session.execute(
        select(SnapshotRow.split, Trajectory.eval_run_id, Trajectory.problem_id, direct.c.problem_id.is_not(None))
        .join(Trajectory, Trajectory.trajectory_id == SnapshotRow.trajectory_id)
        .join(touching, touching.c.problem_id == SnapshotRow.problem_id)
        .join(direct, direct.c.problem_id == SnapshotRow.problem_id, isouter=True)
        .where(SnapshotRow.snapshot_id == snapshot_id)
        .order_by(SnapshotRow.trajectory_id)
    )


def _touching(clustering_id: int) -> Select[str]:
    """Problems that share a leak cluster with an item, each once; to be narrowed to one benchmark."""
    same = and_(
        BenchmarkMember.clustering_id == ClusterMember.clustering_id,
        BenchmarkMember.cluster_id == ClusterMember.cluster_id,
    )
    return (
        select(ClusterMember.problem_id)
        .join(BenchmarkMember, same)
        .where(ClusterMember.clustering_id == clustering_id)
        .distinct()
    )


def _direct(clustering_id: int) -> Select[str]:
    """Problems that touch an item themselves, each once; to be narrowed to one benchmark."""
    return (
        select(BenchmarkContact.problem_id)
        .where(BenchmarkContact.clustering_id == clustering_id, BenchmarkContact.kind != EdgeKind.SUSPECT)
        .distinct()
    )
