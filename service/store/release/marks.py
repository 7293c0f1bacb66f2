"""What has become known of published rows, and up to where each snapshot's status takes it in. Writes no file."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from service.domain.rows.marks import Mark, State, changes
from service.domain.rows.records import trajectory_key
from service.domain.sn15.tombstones import TombstoneReason
from service.domain.trajectory import Judgement
from service.store.corpus import evidence, tombstones
from service.store.corpus.verdicts import current
from service.store.models import (
    Evidence,
    Snapshot,
    SnapshotMark,
    SnapshotRow,
    Trajectory,
)
from service.store.release import clusters, snapshots


def late_known(session: Session) -> int:
    """How much is known of what the source has changed its word on. Only ever grows."""
    return tombstones.known(session) + evidence.late_known(session)


def due(session: Session) -> list[str]:
    """Snapshots whose status does not take in all that is known, in order of id."""
    known, contacts = late_known(session), contacts_known(session)
    statement = (
        select(Snapshot.snapshot_id)
        .join(SnapshotMark, SnapshotMark.snapshot_id == Snapshot.snapshot_id, isouter=True)
        .where(
            SnapshotMark.late_known.is_distinct_from(known) | SnapshotMark.contacts_digest.is_distinct_from(contacts)
        )
        .order_by(Snapshot.snapshot_id)
    )
    return list(session.scalars(statement))


def lock(session: Session, snapshot_id: str) -> None:
    """Keep others from marking the snapshot until this transaction ends."""
    session.execute(select(Snapshot.snapshot_id).where(Snapshot.snapshot_id == snapshot_id).with_for_update())


def record(session: Session, snapshot_id: str, known: int, contacts: str | None) -> None:
    """Note that the snapshot's status takes in so much of what is known, and these contacts with benchmarks."""
    values = {"late_known": known, "contacts_digest": contacts}
    statement = insert(SnapshotMark).values(snapshot_id=snapshot_id, **values)
    session.execute(statement.on_conflict_do_update(index_elements=["snapshot_id"], set_=values))


def contacts_known(session: Session) -> str | None:
    """Digest of what the newest clustering found to touch benchmarks; None before the first."""
    newest = clusters.latest(session)
    return None if newest is None else newest.contacts_digest


def of_snapshot(session: Session, snapshot_id: str) -> list[Mark]:
    """Everything that is known of the rows of a snapshot and was not when it was made."""
    return [*_stones(session, snapshot_id), *_changes(session, snapshot_id)]


def _stones(session: Session, snapshot_id: str) -> Iterator[Mark]:
    published = select(SnapshotRow.trajectory_id).where(SnapshotRow.snapshot_id == snapshot_id)
    dead = tombstones.entombed(among=published)
    rows = session.execute(
        select(dead.c.reason, Trajectory.eval_run_id, Trajectory.problem_id, dead.c.recorded_at)
        .join(Trajectory, Trajectory.trajectory_id == dead.c.trajectory_id)
        .order_by(Trajectory.trajectory_id)
    )
    for reason, eval_run_id, problem_id, since in rows:
        yield Mark(TombstoneReason(reason), trajectory_key(eval_run_id, problem_id), eval_run_id, since)


def _changes(session: Session, snapshot_id: str) -> Iterator[Mark]:
    rows = session.execute(
        select(Trajectory.trajectory_id, Trajectory.eval_run_id, Trajectory.problem_id)
        .join(SnapshotRow, SnapshotRow.trajectory_id == Trajectory.trajectory_id)
        .join(Evidence, Evidence.trajectory_id == Trajectory.trajectory_id)
        .where(SnapshotRow.snapshot_id == snapshot_id, Evidence.is_late)
        .distinct()
        .order_by(Trajectory.trajectory_id)
    ).all()
    ids = [row.trajectory_id for row in rows]
    seq_then = _evidence_then(session, snapshot_id, ids)
    states = _states(session, ids)
    for trajectory_id, eval_run_id, problem_id in rows:
        then = seq_then.get(trajectory_id)
        told = [state for seq, state in states[trajectory_id] if then is not None and seq >= then]
        for reason, since in changes(told[0], told[1:]).items() if told else ():
            yield Mark(reason, trajectory_key(eval_run_id, problem_id), eval_run_id, since)


def _evidence_then(session: Session, snapshot_id: str, trajectory_ids: Sequence[int]) -> dict[int, int]:
    """Which state of the evidence the snapshot was made from, by trajectory."""
    origin = snapshots.origin(session, snapshot_id)
    if origin is None or not trajectory_ids:
        return {}
    verdict = current(session.get_one(Snapshot, snapshot_id).spec["rules_digest"], origin.revision)
    rows = session.execute(
        select(Evidence.trajectory_id, Evidence.seq)
        .join(
            verdict,
            (verdict.c.trajectory_id == Evidence.trajectory_id)
            & (verdict.c.evidence_digest == Evidence.evidence_digest),
        )
        .where(verdict.c.trajectory_id.in_(trajectory_ids))
    )
    return {trajectory_id: seq for trajectory_id, seq in rows}


def _states(session: Session, trajectory_ids: Sequence[int]) -> dict[int, list[tuple[int, State]]]:
    """Every state of the evidence of some trajectories with its number, oldest first."""
    columns = (Evidence.trajectory_id, Evidence.seq, Evidence.body, Evidence.payload_sha256, Evidence.recorded_at)
    rows = session.execute(select(*columns).where(Evidence.trajectory_id.in_(trajectory_ids)).order_by(Evidence.seq))
    states: dict[int, list[tuple[int, State]]] = defaultdict(list)
    for trajectory_id, seq, body, payload_sha256, recorded_at in rows:
        states[trajectory_id].append((seq, State(_judgement(body), payload_sha256, recorded_at)))
    return states


def _judgement(body: dict[str, Any]) -> Judgement:
    return msgspec.convert(body.get("judgement", {}), Judgement)
