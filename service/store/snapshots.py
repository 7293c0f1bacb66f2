"""Snapshots and release decisions as stored, and the judged rows a snapshot chooses from. Chooses nothing itself."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import zstandard
from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from service.store.copying import copy_missing
from service.store.models import (
    AgentVersion,
    ClusterMember,
    EvaluationRun,
    Payload,
    PoolMember,
    Problem,
    Release,
    Snapshot,
    SnapshotRow,
    Trajectory,
)
from service.store.verdicts import current

LOAD_BATCH = 200
"""Payloads held in memory at once while rows are built."""


class JudgedRow(NamedTuple):
    """One judged trajectory with all that is known about where it comes from."""

    trajectory_id: int
    eval_run_id: str
    item_key: str
    kind: str
    phase: str
    race_id: str | None
    agent_version_id: str
    agent_name: str
    family: str
    miner_hotkey: str | None
    validator_hotkey: str | None
    problem_id: str
    category: str
    payload_sha256: str
    cluster_id: str
    pool: str
    query: str | None
    query_confirmed: bool
    gold_kind: str
    gold_ids: list[str]
    winner_ids: list[str]
    outcome: str
    reason: str
    structural_class: str
    trust: str
    calls: list[dict[str, Any]]
    signals: dict[str, Any]
    answer: list[str]
    evidence: dict[str, Any]


class NewRow(NamedTuple):
    """One chosen trajectory in a snapshot that is being recorded."""

    trajectory_id: int
    problem_id: str
    config: str
    split: str


def judged(
    session: Session, *, rules_digest: str, revision: int, clustering_id: int, assignment_id: int, outcome: str
) -> Iterator[JudgedRow]:
    """Trajectories with one outcome at a sealed revision, in order of (run, item); invalidated runs are left out."""
    verdict = current(rules_digest, revision)
    statement = (
        select(
            Trajectory.trajectory_id,
            Trajectory.eval_run_id,
            Trajectory.item_key,
            Trajectory.kind,
            EvaluationRun.phase,
            EvaluationRun.race_id,
            EvaluationRun.agent_version_id,
            AgentVersion.agent_name,
            AgentVersion.family,
            AgentVersion.miner_hotkey,
            EvaluationRun.validator_hotkey,
            Trajectory.problem_id,
            Problem.category,
            Trajectory.payload_sha256,
            ClusterMember.cluster_id,
            PoolMember.pool,
            *(ClusterMember.query, ClusterMember.query_confirmed, ClusterMember.gold_kind),
            *(ClusterMember.gold_ids, ClusterMember.winner_ids),
            *(verdict.c.outcome, verdict.c.reason, verdict.c.structural_class, verdict.c.trust),
            *(verdict.c.calls, verdict.c.signals, verdict.c.answer, verdict.c.evidence),
        )
        .join(verdict, verdict.c.trajectory_id == Trajectory.trajectory_id)
        .join(EvaluationRun, EvaluationRun.eval_run_id == Trajectory.eval_run_id)
        .join(AgentVersion, AgentVersion.agent_version_id == EvaluationRun.agent_version_id)
        .join(Problem, Problem.problem_id == Trajectory.problem_id)
        .join(
            ClusterMember,
            (ClusterMember.problem_id == Trajectory.problem_id) & (ClusterMember.clustering_id == clustering_id),
        )
        .join(
            PoolMember,
            (PoolMember.problem_id == Trajectory.problem_id) & (PoolMember.assignment_id == assignment_id),
        )
        .where(verdict.c.outcome == outcome, EvaluationRun.invalidated_at.is_(None))
        .order_by(Trajectory.eval_run_id, Trajectory.item_key, Trajectory.payload_sha256)
        .execution_options(yield_per=1000)
    )
    for row in session.execute(statement):
        yield JudgedRow._make(row)


def solve_rates(session: Session, rules_digest: str, revision: int) -> dict[str, float]:
    """Share of each problem's trajectories that SN15 scored a success; contradicted ones are left out."""
    verdict = current(rules_digest, revision)
    success = func.coalesce(verdict.c.evidence["judgement"]["success"].as_boolean(), False)
    rows = session.execute(
        select(Trajectory.problem_id, func.count().filter(success), func.count())
        .join(verdict, verdict.c.trajectory_id == Trajectory.trajectory_id)
        .where(verdict.c.trust != "contradicted")
        .group_by(Trajectory.problem_id)
    )
    return {problem_id: solved / tries for problem_id, solved, tries in rows}


def funnel(session: Session, rules_digest: str, revision: int) -> dict[str, int]:
    """Trajectories by verdict reason at one revision; `kept` counts the kept ones."""
    verdict = current(rules_digest, revision)
    rows = session.execute(select(verdict.c.reason, func.count()).group_by(verdict.c.reason))
    return {reason: trajectories for reason, trajectories in rows}


def payloads(session: Session, trajectory_ids: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Payload bytes in the order of `trajectory_ids`, read in small batches."""
    for start in range(0, len(trajectory_ids), LOAD_BATCH):
        batch = trajectory_ids[start : start + LOAD_BATCH]
        rows = session.execute(
            select(Trajectory.trajectory_id, Payload.zstd)
            .join(Payload, Payload.payload_sha256 == Trajectory.payload_sha256)
            .where(Trajectory.trajectory_id.in_(batch))
        )
        compressed = {trajectory_id: data for trajectory_id, data in rows}
        for trajectory_id in batch:
            yield trajectory_id, zstandard.decompress(compressed[trajectory_id])


def record(session: Session, snapshot: Snapshot, rows: Iterable[NewRow]) -> bool:
    """Record a snapshot whose files are in place. The same one again changes nothing; returns whether it was new."""
    columns = ("snapshot_id", "spec", "manifest", "audit", "train_rows", "eval_rows")
    new = session.scalar(
        insert(Snapshot)
        .values({name: getattr(snapshot, name) for name in columns})
        .on_conflict_do_nothing(index_elements=["snapshot_id"])
        .returning(Snapshot.snapshot_id)
    )
    if new is None:
        return False
    copy_missing(
        session,
        SnapshotRow.__table__,  # type: ignore[arg-type]
        ("snapshot_id", *NewRow._fields),
        ((snapshot.snapshot_id, *row) for row in rows),
    )
    return True


def decide(
    session: Session, assignment_id: int, spec_digest: str, *, snapshot_id: str | None, refusal: dict[str, Any] | None
) -> None:
    """Note what became of one assignment under one spec: a snapshot or a refusal, never both."""
    session.execute(
        insert(Release)
        .values(assignment_id=assignment_id, spec_digest=spec_digest, snapshot_id=snapshot_id, refusal=refusal)
        .on_conflict_do_nothing(index_elements=["assignment_id", "spec_digest"])
    )


def listing(session: Session) -> list[Snapshot]:
    """All snapshots, newest first."""
    return list(session.scalars(select(Snapshot).order_by(Snapshot.published_at.desc(), Snapshot.snapshot_id)))


def get(session: Session, snapshot_id: str) -> Snapshot | None:
    """One snapshot; None when there is none under this id."""
    return session.get(Snapshot, snapshot_id)


def latest_release(session: Session) -> Release | None:
    """The newest release decision; None before the first."""
    return session.scalar(select(Release).order_by(Release.release_id.desc()).limit(1))


def members(session: Session, snapshot_id: str) -> Collection[NewRow]:
    """The rows of one snapshot, in a fixed order."""
    columns = [getattr(SnapshotRow, name) for name in NewRow._fields]
    statement = select(*columns).where(SnapshotRow.snapshot_id == snapshot_id).order_by(SnapshotRow.trajectory_id)
    return [NewRow(*row) for row in session.execute(statement)]
