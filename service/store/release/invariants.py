"""What must hold of everything that was ever published, asked of the whole database and the files. Mends nothing.

Each question is put in SQL or to the bytes, by no code that makes pools or snapshots; examples name ids, never text.
"""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Select, and_, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from service.domain.filter.structure import Outcome
from service.domain.leaks.audit import EXAMPLES, Check
from service.domain.leaks.pools import Pool
from service.domain.rows.manifest import id_of
from service.domain.rows.splits import TRAINED, Split
from service.errors import SluiceError
from service.store.models import (
    Clustering,
    ClusterMember,
    Evidence,
    PoolAssignment,
    PoolMember,
    Release,
    Snapshot,
    SnapshotRow,
    Verdict,
)
from service.store.release.files import FileStore
from service.store.release.shards import sha256_of


def checks(session: Session, files: FileStore, *, bytes_too: bool) -> list[Check]:
    """Ask every question.

    Args:
        session: open transaction.
        files: the published files of this machine.
        bytes_too: read every file and compare its sha256; else sizes alone are compared.
    """
    return [
        _check(session, "trained_and_held_out", _both_sides()),
        _check(session, "component_spans_pools", _spanning()),
        _check(session, "pool_loosened", _loosened()),
        _check(session, "published_outside_its_pool", _misplaced()),
        _check(session, "published_though_not_kept", _unkept()),
        _named("files_as_the_manifest_says", list(_broken_files(session, files, bytes_too))),
    ]


def _check(session: Session, name: str, faults: Select[*tuple[Any, ...]]) -> Check:
    numbered = faults.subquery()
    count = session.scalar(select(func.count()).select_from(numbered)) or 0
    examples = session.execute(select(numbered).order_by(*numbered.c).limit(EXAMPLES)) if count else ()
    return Check(name, not count, count, tuple(" ".join(map(str, row)) for row in examples))


def _named(name: str, faults: list[str]) -> Check:
    return Check(name, not faults, len(faults), tuple(faults[:EXAMPLES]))


def _both_sides() -> Select[*tuple[Any, ...]]:
    """Problems that some snapshot has in train and some, the same or another, in eval."""
    trained, held = aliased(SnapshotRow), aliased(SnapshotRow)
    return (
        select(trained.problem_id)
        .join(held, held.problem_id == trained.problem_id)
        .where(trained.split == Split.TRAIN, held.split == Split.EVAL)
        .distinct()
    )


def _spanning() -> Select[*tuple[Any, ...]]:
    """Leak clusters of an assignment of which not all is in one pool; quarantine goes with any."""
    return (
        select(PoolAssignment.assignment_id, ClusterMember.cluster_id)
        .join(ClusterMember, ClusterMember.clustering_id == PoolAssignment.clustering_id)
        .join(
            PoolMember,
            and_(
                PoolMember.assignment_id == PoolAssignment.assignment_id,
                PoolMember.problem_id == ClusterMember.problem_id,
            ),
        )
        .where(PoolMember.pool != Pool.QUARANTINED)
        .group_by(PoolAssignment.assignment_id, ClusterMember.cluster_id)
        .having(func.count(func.distinct(PoolMember.pool)) > 1)
    )


def _loosened() -> Select[*tuple[Any, ...]]:
    """Problems that an assignment puts where an earlier one had them stricter: reserve, then eval, then train."""
    first, last = func.min(PoolMember.assignment_id), func.max(PoolMember.assignment_id)
    reserved, held = PoolMember.pool == Pool.RESERVE, PoolMember.pool == Pool.EVAL
    return (
        select(PoolMember.problem_id)
        .group_by(PoolMember.problem_id)
        .having(
            or_(
                last.filter(PoolMember.pool.in_((Pool.EVAL, Pool.TRAIN))) > first.filter(reserved),
                last.filter(PoolMember.pool == Pool.TRAIN) > first.filter(held),
            )
        )
    )


def _misplaced() -> Select[*tuple[Any, ...]]:
    """Rows whose problem was in another pool than their split in every assignment their snapshot was released from."""
    fitting = exists().where(
        Release.snapshot_id == SnapshotRow.snapshot_id,
        PoolMember.assignment_id == Release.assignment_id,
        PoolMember.problem_id == SnapshotRow.problem_id,
        PoolMember.pool == SnapshotRow.split,
    )
    return select(SnapshotRow.snapshot_id, SnapshotRow.problem_id).where(~fitting).distinct()


def _unkept() -> Select[*tuple[Any, ...]]:
    """Rows to be followed that no verdict of their snapshot's rule set had kept when it was made."""
    kept = (
        exists()
        .where(
            Release.snapshot_id == SnapshotRow.snapshot_id,
            PoolAssignment.assignment_id == Release.assignment_id,
            Clustering.clustering_id == PoolAssignment.clustering_id,
            Evidence.trajectory_id == SnapshotRow.trajectory_id,
            Verdict.trajectory_id == SnapshotRow.trajectory_id,
            Verdict.evidence_digest == Evidence.evidence_digest,
            Verdict.revision <= Clustering.revision,
            Verdict.outcome == Outcome.KEPT,
            Verdict.rules_digest == Snapshot.spec["rules_digest"].astext,
        )
        .correlate(SnapshotRow, Snapshot)
    )
    return (
        select(SnapshotRow.snapshot_id, SnapshotRow.trajectory_id)
        .join(Snapshot, Snapshot.snapshot_id == SnapshotRow.snapshot_id)
        .where(SnapshotRow.config.in_(TRAINED), ~kept)
    )


def _broken_files(session: Session, files: FileStore, bytes_too: bool) -> Iterator[str]:
    for snapshot_id in session.scalars(select(Snapshot.snapshot_id).order_by(Snapshot.snapshot_id)):
        try:
            manifest = files.manifest(snapshot_id)
        except SluiceError:
            yield f"{snapshot_id}: its files are not on this machine"
            continue
        if not manifest.snapshot_id == snapshot_id == id_of(manifest.spec_digest, manifest.parts, manifest.gold_digest):
            yield f"{snapshot_id}: its manifest does not have the digest it is named by"
        for entry in files.entries(snapshot_id):
            path = files.path(snapshot_id, entry.name)
            if not path.is_file():
                yield f"{snapshot_id}: {entry.name} is missing"
            elif path.stat().st_size != entry.bytes or (bytes_too and sha256_of(path) != entry.sha256):
                yield f"{snapshot_id}: {entry.name} was changed"
