"""The corpus in figures: counts by any dimension, races, one trajectory at a time. Read-only."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, Subquery, func, select
from sqlalchemy.orm import Session

from service.store.models import AgentVersion, EvaluationRun, LedgerItem, Payload, Problem, Race, Trajectory
from service.store.verdicts import current


class Dimension(StrEnum):
    """What the corpus can be counted by."""

    AGENT = "agent"
    CLASS = "class"
    VERDICT = "verdict"
    REASON = "reason"
    CATEGORY = "category"
    RACE = "race"
    KIND = "kind"


class Count(NamedTuple):
    """One row of a count: the value of each dimension asked for, in order, and the number of trajectories."""

    values: tuple[str | None, ...]
    trajectories: int


class RaceFigures(NamedTuple):
    """One race and how far its harvest has come. `ledger` counts items by state."""

    race_id: str
    race_number: int | None
    status: str
    suite_id: int | None
    started_at: datetime | None
    completed_at: datetime | None
    agents: int
    ledger: dict[str, int]


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


def _dimension(dimension: Dimension, verdict: Subquery) -> ColumnElement[Any]:
    columns: dict[Dimension, ColumnElement[Any]] = {
        Dimension.AGENT: AgentVersion.agent_name.expression,
        Dimension.CLASS: verdict.c.structural_class,
        Dimension.VERDICT: verdict.c.outcome,
        Dimension.REASON: verdict.c.reason,
        Dimension.CATEGORY: Problem.category.expression,
        Dimension.RACE: EvaluationRun.race_id.expression,
        Dimension.KIND: Trajectory.kind.expression,
    }
    return columns[dimension]


def _joined(statement: Select[Any], verdict: Subquery) -> Select[Any]:
    return (
        statement.select_from(Trajectory)
        .join(EvaluationRun, EvaluationRun.eval_run_id == Trajectory.eval_run_id)
        .join(AgentVersion, AgentVersion.agent_version_id == EvaluationRun.agent_version_id)
        .join(Problem, Problem.problem_id == Trajectory.problem_id)
        .join(verdict, verdict.c.trajectory_id == Trajectory.trajectory_id, isouter=True)
    )


def counts(session: Session, rules_digest: str, by: Sequence[Dimension]) -> list[Count]:
    """Count trajectories by any dimensions, in order of their values. Unjudged ones have None for verdict fields."""
    verdict = current(rules_digest)
    columns = [_dimension(dimension, verdict) for dimension in by]
    rows = session.execute(_joined(select(*columns, func.count()), verdict).group_by(*columns).order_by(*columns))
    return [Count(tuple(row[:-1]), row[-1]) for row in rows]


def races(session: Session) -> list[RaceFigures]:
    """Every race, newest first, with its ledger; qualifying runs belong to no race and are not counted here."""
    ledger: dict[str, dict[str, int]] = {}
    by_state = (
        select(EvaluationRun.race_id, LedgerItem.state, func.count())
        .join(LedgerItem, LedgerItem.eval_run_id == EvaluationRun.eval_run_id)
        .where(EvaluationRun.race_id.is_not(None))
        .group_by(EvaluationRun.race_id, LedgerItem.state)
    )
    for race_id, state, items in session.execute(by_state):
        ledger.setdefault(race_id or "", {})[state.value] = items
    by_race = select(EvaluationRun.race_id, func.count(EvaluationRun.agent_version_id.distinct())).group_by(
        EvaluationRun.race_id
    )
    agents = {race_id: count for race_id, count in session.execute(by_race)}
    order = (Race.completed_at.desc().nulls_first(), Race.started_at.desc(), Race.race_id)
    return [
        RaceFigures(
            *(race.race_id, race.race_number, race.status, race.suite_id, race.started_at, race.completed_at),
            agents=agents.get(race.race_id, 0),
            ledger=ledger.get(race.race_id, {}),
        )
        for race in session.scalars(select(Race).order_by(*order))
    ]


def race_count(session: Session) -> int:
    """Number of races known."""
    return session.scalar(select(func.count()).select_from(Race)) or 0


def trajectories(
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
    statement = _joined(select(*_row_columns(verdict)), verdict).join(
        Payload, Payload.payload_sha256 == Trajectory.payload_sha256
    )
    for dimension, value in (filters or {}).items():
        statement = statement.where(_dimension(dimension, verdict) == value)
    statement = statement.where(Trajectory.trajectory_id > after).order_by(Trajectory.trajectory_id).limit(limit)
    return [TrajectoryRow(*row) for row in session.execute(statement)]


def trajectory(session: Session, rules_digest: str, trajectory_id: int) -> TrajectoryRow | None:
    """One trajectory; None when there is none under this id."""
    rows = trajectories(session, rules_digest, after=trajectory_id - 1, limit=1)
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
