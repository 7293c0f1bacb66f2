"""Leak clusters as stored, and the facts about problems they are made from. Draws no edge itself."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.domain.attribution.provenance import Trust
from service.store.copying import copy_missing
from service.store.corpus.verdicts import current
from service.store.models import (
    IMPORTED,
    AgentVersion,
    Clustering,
    ClusterMember,
    EvaluationRun,
    LeakEdge,
    PoolAcceptance,
    PoolAssignment,
    Problem,
    Trajectory,
)


class ProblemRow(NamedTuple):
    """One problem as the source describes it."""

    problem_id: str
    kind: str
    category: str
    query: str | None
    reward: list[dict[str, Any]] | None


class Report(NamedTuple):
    """What the trajectories of one agent family say of one problem."""

    problem_id: str
    family: str
    query: str | None
    answer: tuple[str, ...]
    success: bool
    is_hearsay: bool
    """Out of a file, of an agent whom nobody but the file names."""


class MemberRow(NamedTuple):
    """One problem's cluster, with the facts that put it there."""

    problem_id: str
    cluster_id: str
    query: str | None
    query_confirmed: bool
    gold_kind: str
    winner_ids: list[str]
    gold_ids: list[str]


class EdgeRow(NamedTuple):
    """One edge of the leak graph; `problem_a < problem_b`."""

    problem_a: str
    problem_b: str
    kind: str
    evidence: str


def problems(session: Session) -> list[ProblemRow]:
    """Every problem the source has named, in order of id."""
    columns = (Problem.problem_id, Problem.kind, Problem.category, Problem.query, Problem.reward)
    return [ProblemRow(*row) for row in session.execute(select(*columns).order_by(Problem.problem_id))]


def facts_known(session: Session) -> int:
    """Number of facts the source has given about problems so far. Facts are only ever added."""
    facts = (Problem.problem_id, Problem.suite_id, Problem.query, Problem.reward, Problem.voucher)
    return session.scalar(select(sum(map(func.count, facts[1:]), func.count(facts[0])))) or 0


def reports(
    session: Session, rules_digest: str, revision: int, merged: Mapping[str, str] | None = None
) -> Iterable[Report]:
    """Distinct (query, answer) that each family reports of each problem, contradicted trajectories left out.

    `merged` says what families are called that are one with others; those share their reports.

    What SN15 no longer counts is still known: a tombstone must not undo a tie between problems.
    """
    verdict = current(rules_digest, revision)
    success = func.coalesce(verdict.c.evidence["judgement"]["success"].as_boolean(), False)
    vouched = func.coalesce(AgentVersion.source["is_vouched"].as_boolean(), False)
    hearsay = (EvaluationRun.phase == IMPORTED) & ~vouched
    rows = session.execute(
        select(Trajectory.problem_id, AgentVersion.family, verdict.c.reported_query, verdict.c.answer, success, hearsay)
        .join(Trajectory, Trajectory.trajectory_id == verdict.c.trajectory_id)
        .join(EvaluationRun, EvaluationRun.eval_run_id == Trajectory.eval_run_id)
        .join(AgentVersion, AgentVersion.agent_version_id == EvaluationRun.agent_version_id)
        .where(verdict.c.trust != Trust.CONTRADICTED)
        .distinct()
        .order_by(Trajectory.problem_id, AgentVersion.family)
    )
    for problem_id, family, query, answer, won, is_hearsay in rows:
        yield Report(problem_id, (merged or {}).get(family, family), query, tuple(answer), won, is_hearsay)


def save(
    session: Session,
    *,
    revision: int,
    plan_digest: str,
    rules_digest: str,
    facts_known: int,
    benchmarks_digest: str,
    contacts_digest: str,
    members: Sequence[MemberRow],
    edges: Sequence[EdgeRow],
) -> int:
    """Store one whole clustering; returns its id."""
    clustering = Clustering(
        revision=revision,
        plan_digest=plan_digest,
        rules_digest=rules_digest,
        facts_known=facts_known,
        benchmarks_digest=benchmarks_digest,
        contacts_digest=contacts_digest,
        clusters=len({member.cluster_id for member in members}),
    )
    session.add(clustering)
    session.flush()
    number = clustering.clustering_id
    copy_missing(
        session,
        ClusterMember.__table__,  # type: ignore[arg-type]
        ("clustering_id", *MemberRow._fields),
        ((number, *member) for member in members),
    )
    copy_missing(
        session,
        LeakEdge.__table__,  # type: ignore[arg-type]
        ("clustering_id", *EdgeRow._fields),
        ((number, *edge) for edge in edges),
    )
    return number


def latest(session: Session) -> Clustering | None:
    """The newest clustering; None before the first."""
    return session.scalar(select(Clustering).order_by(Clustering.clustering_id.desc()).limit(1))


def members(session: Session, clustering_id: int) -> dict[str, MemberRow]:
    """The members of one clustering by problem id."""
    columns = [getattr(ClusterMember, name) for name in MemberRow._fields]
    rows = session.execute(select(*columns).where(ClusterMember.clustering_id == clustering_id))
    return {row[0]: MemberRow(*row) for row in rows}


def edges(session: Session, clustering_id: int, kind: str | None = None) -> list[EdgeRow]:
    """The edges of one clustering in a fixed order, of one kind or of all (None)."""
    columns = [getattr(LeakEdge, name) for name in EdgeRow._fields]
    statement = select(*columns).where(LeakEdge.clustering_id == clustering_id).order_by(*columns)
    if kind is not None:
        statement = statement.where(LeakEdge.kind == kind)
    return [EdgeRow(*row) for row in session.execute(statement)]


def categories(session: Session) -> Mapping[str, str]:
    """Category by problem id."""
    return {row[0]: row[1] for row in session.execute(select(Problem.problem_id, Problem.category))}


class Unassigned(NamedTuple):
    """A clustering that pools are to be drawn for."""

    clustering: Clustering
    is_accepted: bool
    """A person has looked at what was asked about it, so no limit stops it."""


def unassigned(session: Session, pool_plan_digest: str) -> Unassigned | None:
    """The newest clustering, when it has no pools under this plan yet, or when its refusal has been accepted since.

    None when there is nothing to do.
    """
    newest = latest(session)
    if newest is None:
        return None
    made = session.execute(
        select(PoolAssignment.refusal, PoolAcceptance.assignment_id)
        .join(PoolAcceptance, PoolAcceptance.assignment_id == PoolAssignment.assignment_id, isouter=True)
        .where(PoolAssignment.clustering_id == newest.clustering_id, PoolAssignment.plan_digest == pool_plan_digest)
    ).all()
    if not made:
        return Unassigned(newest, is_accepted=False)
    is_open = all(refusal is not None for refusal, _ in made) and any(accepted for _, accepted in made)
    return Unassigned(newest, is_accepted=True) if is_open else None
