"""Trajectories as listings show them, a page or one at a time. Read-only; holds no payload."""

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Subquery, select
from sqlalchemy.orm import Session

from service.store.corpus.verdicts import current
from service.store.figures.statistics import Dimension, column, joined
from service.store.models import AgentVersion, EvaluationRun, Payload, Problem, Trajectory


class TrajectoryRow(NamedTuple):
    """One trajectory as listings show it; verdict fields are None while it is unjudged."""

    trajectory_id: int
    eval_run_id: str
    item_key: str
    problem_id: str
    kind: str
    category: str
    agent: str
    race_id: str | None
    size_bytes: int
    harvested_at: datetime
    outcome: str | None
    reason: str | None
    structural_class: str | None
    trust: str | None


def page(
    session: Session,
    rules_digest: str,
    *,
    after: int = 0,
    limit: int = 100,
    filters: dict[Dimension, str] | None = None,
) -> list[TrajectoryRow]:
    """One page of trajectories in order of id.

    Args:
        session: open transaction.
        rules_digest: rule set whose verdicts are shown.
        after: only ids above this one (keyset paging).
        limit: rows at most.
        filters: exact value wanted of each dimension named.
    """
    verdict = current(rules_digest)
    wanted = filters or {}
    statement = joined(select(*_row_columns(verdict)), verdict, wanted).join(
        Payload, Payload.payload_sha256 == Trajectory.payload_sha256
    )
    for dimension, value in wanted.items():
        statement = statement.where(column(dimension, verdict) == value)
    statement = statement.where(Trajectory.trajectory_id > after).order_by(Trajectory.trajectory_id).limit(limit)
    return [TrajectoryRow(*row) for row in session.execute(statement)]


def one(session: Session, rules_digest: str, trajectory_id: int) -> TrajectoryRow | None:
    """One trajectory; None when there is none under this id."""
    rows = page(session, rules_digest, after=trajectory_id - 1, limit=1)
    return rows[0] if rows and rows[0].trajectory_id == trajectory_id else None


def _row_columns(verdict: Subquery) -> tuple[ColumnElement[Any], ...]:
    return (
        Trajectory.trajectory_id.expression,
        Trajectory.eval_run_id.expression,
        Trajectory.item_key.expression,
        Trajectory.problem_id.expression,
        Trajectory.kind.expression,
        Problem.category.expression,
        AgentVersion.agent_name.expression,
        EvaluationRun.race_id.expression,
        Payload.size_bytes.expression,
        Trajectory.harvested_at.expression,
        verdict.c.outcome,
        verdict.c.reason,
        verdict.c.structural_class,
        verdict.c.trust,
    )
