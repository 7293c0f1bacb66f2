"""Snapshots and release decisions as stored, and the judged rows a snapshot chooses from. Chooses nothing itself."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import zstandard
from sqlalchemy import Select, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from service.domain.attribution.provenance import Trust
from service.store.copying import copy_missing
from service.store.corpus import families
from service.store.corpus.tombstones import entombed
from service.store.corpus.verdicts import current
from service.store.models import (
    IMPORTED,
    AgentVersion,
    Clustering,
    ClusterMember,
    EvaluationRun,
    Payload,
    PoolAssignment,
    PoolMember,
    Problem,
    Release,
    Snapshot,
    SnapshotRow,
    Trajectory,
    Verdict,
)

LOAD_BATCH = 200
"""Rows with their payloads held in memory at once."""


class Scope(NamedTuple):
    """Which verdicts, clusters and pools a snapshot is made from."""

    rules_digest: str
    revision: int
    clustering_id: int
    assignment_id: int
    family_rule_digest: str


class Origin(NamedTuple):
    """What a snapshot was made from, as of its newest release."""

    clustering_id: int
    revision: int
    """Of the corpus, at that clustering."""
    assignment_id: int


class JudgedRow(NamedTuple):
    """One judged trajectory with its payload and all that is known about where it comes from."""

    trajectory_id: int
    eval_run_id: str
    kind: str
    race_id: str | None
    tombstone: str | None
    """Why the trajectory does not count; None when it does."""
    agent_version_id: str
    family: str
    """What its family is called at the scope's revision."""
    miner_hotkey: str | None
    problem_id: str
    category: str
    cluster_id: str
    pool: str
    pool_reason: str
    query: str | None
    query_confirmed: bool
    gold_ids: list[str]
    winner_ids: list[str]
    outcome: str
    reason: str
    structural_class: str
    trust: str
    calls: list[dict[str, Any]]
    signals: dict[str, Any]
    answer: list[str]
    reasoning_score: float | None
    reward: float | None
    """What SN15 paid for an episode, or the score of a problem."""
    completed_at: datetime | None
    """When its run was completed."""
    zstd: bytes

    @property
    def payload(self) -> bytes:
        """The bytes as the source served them."""
        return zstandard.decompress(self.zstd)


class NewRow(NamedTuple):
    """One chosen trajectory in a snapshot that is being recorded."""

    trajectory_id: int
    problem_id: str
    config: str
    split: str


def judged(session: Session, scope: Scope, outcome: str) -> Iterator[JudgedRow]:
    """Trajectories with one outcome, in order of id, read in small batches."""
    statement = _judged(scope).where(Verdict.outcome == outcome).order_by(Trajectory.trajectory_id)
    merged = families.merged(session, scope.family_rule_digest, scope.revision)
    for row in session.execute(statement.execution_options(yield_per=LOAD_BATCH)):
        yield _row(row, merged)


def judged_by_id(session: Session, scope: Scope, trajectory_ids: Sequence[int]) -> Iterator[JudgedRow]:
    """The trajectories named, in the order they are named, read in small batches."""
    merged = families.merged(session, scope.family_rule_digest, scope.revision)
    for start in range(0, len(trajectory_ids), LOAD_BATCH):
        batch = trajectory_ids[start : start + LOAD_BATCH]
        rows = session.execute(_judged(scope).where(Trajectory.trajectory_id.in_(batch)))
        found = {row.trajectory_id: _row(row, merged) for row in rows}
        yield from (found[trajectory_id] for trajectory_id in batch)


def _row(row: Iterable[Any], merged: Mapping[str, str]) -> JudgedRow:
    judged_row = JudgedRow._make(row)
    return judged_row._replace(family=merged.get(judged_row.family, judged_row.family))


def _judged(scope: Scope) -> Select[*tuple[Any, ...]]:
    standing, dead = current(scope.rules_digest, scope.revision), entombed(scope.revision)
    judgement = standing.c.evidence["judgement"]
    return (
        select(
            *(Trajectory.trajectory_id, Trajectory.eval_run_id, Trajectory.kind),
            *(EvaluationRun.race_id, dead.c.reason, EvaluationRun.agent_version_id),
            *(AgentVersion.family, AgentVersion.miner_hotkey),
            *(Trajectory.problem_id, Problem.category, ClusterMember.cluster_id),
            *(PoolMember.pool, PoolMember.reason),
            *(ClusterMember.query, ClusterMember.query_confirmed, ClusterMember.gold_ids, ClusterMember.winner_ids),
            *(Verdict.outcome, Verdict.reason, Verdict.structural_class, Verdict.trust),
            *(Verdict.calls, Verdict.signals, Verdict.answer),
            judgement["reasoning_score"].as_float(),
            func.coalesce(judgement["paid_reward"].as_float(), judgement["score"].as_float()),
            EvaluationRun.completed_at,
            Payload.zstd,
        )
        .join(standing, standing.c.trajectory_id == Trajectory.trajectory_id)
        .join(Verdict, Verdict.verdict_id == standing.c.verdict_id)
        .join(Payload, Payload.payload_sha256 == standing.c.payload_sha256)
        .join(EvaluationRun, EvaluationRun.eval_run_id == Trajectory.eval_run_id)
        .join(AgentVersion, AgentVersion.agent_version_id == EvaluationRun.agent_version_id)
        .join(Problem, Problem.problem_id == Trajectory.problem_id)
        .join(ClusterMember, ClusterMember.problem_id == Trajectory.problem_id)
        .join(PoolMember, PoolMember.problem_id == Trajectory.problem_id)
        .join(dead, dead.c.trajectory_id == Trajectory.trajectory_id, isouter=True)
        .where(ClusterMember.clustering_id == scope.clustering_id, PoolMember.assignment_id == scope.assignment_id)
    )


def solve_rates(session: Session, rules_digest: str, revision: int) -> dict[str, float]:
    """Share of each problem's scored trajectories that SN15 calls a success.

    Contradicted ones, those under a tombstone and imported ones are left out; a problem without a scored one has no
    entry.
    """
    verdict, dead = current(rules_digest, revision), entombed(revision)
    success = verdict.c.evidence["judgement"]["success"].as_boolean()
    rows = session.execute(
        select(Trajectory.problem_id, func.count().filter(success), func.count())
        .join(verdict, verdict.c.trajectory_id == Trajectory.trajectory_id)
        .join(EvaluationRun, EvaluationRun.eval_run_id == Trajectory.eval_run_id)
        .join(dead, dead.c.trajectory_id == Trajectory.trajectory_id, isouter=True)
        .where(verdict.c.trust != Trust.CONTRADICTED, success.is_not(None), dead.c.trajectory_id.is_(None))
        .where(EvaluationRun.phase != IMPORTED)
        .group_by(Trajectory.problem_id)
    )
    return {problem_id: solved / tries for problem_id, solved, tries in rows}


def disputed(session: Session, rules_digest: str, revision: int) -> frozenset[tuple[str, str]]:
    """Agent version and problem, where runs of the one at the other differ in what SN15 says of their success."""
    verdict = current(rules_digest, revision)
    success = verdict.c.evidence["judgement"]["success"].as_boolean()
    rows = session.execute(
        select(EvaluationRun.agent_version_id, Trajectory.problem_id)
        .join(verdict, verdict.c.trajectory_id == Trajectory.trajectory_id)
        .join(EvaluationRun, EvaluationRun.eval_run_id == Trajectory.eval_run_id)
        .group_by(EvaluationRun.agent_version_id, Trajectory.problem_id)
        .having(func.count(func.distinct(success)) > 1)
    )
    return frozenset((version, problem_id) for version, problem_id in rows)


def funnel(session: Session, rules_digest: str, revision: int) -> dict[str, int]:
    """Trajectories by verdict reason at one revision; `kept` counts the kept ones."""
    verdict = current(rules_digest, revision)
    rows = session.execute(select(verdict.c.reason, func.count()).group_by(verdict.c.reason))
    return {reason: trajectories for reason, trajectories in rows}


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
    session: Session,
    assignment_id: int,
    spec_digest: str,
    *,
    snapshot_id: str | None,
    refusal: dict[str, Any] | None,
    is_standing: bool = True,
) -> int:
    """Note what became of one assignment under one spec: a snapshot or a refusal, never both; the release's id."""
    session.execute(
        insert(Release)
        .values(
            assignment_id=assignment_id,
            spec_digest=spec_digest,
            snapshot_id=snapshot_id,
            refusal=refusal,
            is_standing=is_standing,
        )
        .on_conflict_do_nothing(index_elements=["assignment_id", "spec_digest"])
    )
    decided = decision(session, assignment_id, spec_digest)
    assert decided is not None
    return decided.release_id


def decision(session: Session, assignment_id: int, spec_digest: str) -> Release | None:
    """What became of one assignment under one spec; None while that is open."""
    return session.scalar(
        select(Release).where(Release.assignment_id == assignment_id, Release.spec_digest == spec_digest)
    )


def listing(session: Session) -> list[Snapshot]:
    """All snapshots, newest first."""
    return list(session.scalars(select(Snapshot).order_by(Snapshot.published_at.desc(), Snapshot.snapshot_id)))


def get(session: Session, snapshot_id: str) -> Snapshot | None:
    """One snapshot; None when there is none under this id."""
    return session.get(Snapshot, snapshot_id)


def seconds_since_release(session: Session) -> float | None:
    """Time since the last snapshot was published that nobody asked for; None when none has been."""
    since = session.scalar(
        select(func.extract("epoch", func.now() - func.max(Snapshot.published_at)))
        .join(Release, Release.snapshot_id == Snapshot.snapshot_id)
        .where(Release.is_standing)
    )
    return None if since is None else float(since)


def latest_release(session: Session) -> Release | None:
    """The newest decision on a snapshot that nobody asked for; None before the first."""
    return session.scalar(select(Release).where(Release.is_standing).order_by(Release.release_id.desc()).limit(1))


def members(session: Session, snapshot_id: str) -> Collection[NewRow]:
    """The rows of one snapshot, in a fixed order."""
    columns = [getattr(SnapshotRow, name) for name in NewRow._fields]
    statement = select(*columns).where(SnapshotRow.snapshot_id == snapshot_id).order_by(SnapshotRow.trajectory_id)
    return [NewRow(*row) for row in session.execute(statement)]


def origin(session: Session, snapshot_id: str) -> Origin | None:
    """What a snapshot was made from; None when it was never released here."""
    row = session.execute(
        select(Clustering.clustering_id, Clustering.revision, PoolAssignment.assignment_id)
        .join(PoolAssignment, PoolAssignment.clustering_id == Clustering.clustering_id)
        .join(Release, Release.assignment_id == PoolAssignment.assignment_id)
        .where(Release.snapshot_id == snapshot_id)
        .order_by(Release.release_id.desc())
        .limit(1)
    ).one_or_none()
    return None if row is None else Origin(*row)
