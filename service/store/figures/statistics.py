"""The corpus counted by any dimension. Read-only; shows no single trajectory."""

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, Subquery, func, select
from sqlalchemy.orm import Session

from service.store.corpus.verdicts import current
from service.store.figures import registration
from service.store.models import AgentVersion, EvaluationRun, Problem, Trajectory


class Dimension(StrEnum):
    """What the corpus can be counted by."""

    AGENT = "agent"
    CLASS = "class"
    VERDICT = "verdict"
    REASON = "reason"
    CATEGORY = "category"
    RACE = "race"
    KIND = "kind"
    STAKE = "stake"
    """Band of the validator's stake at the race's close; None where no metagraph tells."""
    INCENTIVE = "incentive"
    """Band of the miner's incentive at the race's close; None where no metagraph tells."""


ON_CHAIN = frozenset({Dimension.STAKE, Dimension.INCENTIVE})
"""Dimensions that cost a look at the race's metagraph."""


class Count(NamedTuple):
    """One row of a count: the value of each dimension asked for, in order, and the number of trajectories."""

    values: tuple[str | None, ...]
    trajectories: int


def column(dimension: Dimension, verdict: Subquery) -> ColumnElement[Any]:
    """The value of a dimension in a statement that `joined` made."""
    columns: dict[Dimension, ColumnElement[Any]] = {
        Dimension.AGENT: AgentVersion.agent_name.expression,
        Dimension.CLASS: verdict.c.structural_class,
        Dimension.VERDICT: verdict.c.outcome,
        Dimension.REASON: verdict.c.reason,
        Dimension.CATEGORY: Problem.category.expression,
        Dimension.RACE: EvaluationRun.race_id.expression,
        Dimension.KIND: Trajectory.kind.expression,
        Dimension.STAKE: registration.STAKE,
        Dimension.INCENTIVE: registration.INCENTIVE,
    }
    return columns[dimension]


def joined(statement: Select[Any], verdict: Subquery, dimensions: Collection[Dimension]) -> Select[Any]:
    """Every trajectory with what the dimensions need of it."""
    statement = (
        statement.select_from(Trajectory)
        .join(EvaluationRun, EvaluationRun.eval_run_id == Trajectory.eval_run_id)
        .join(AgentVersion, AgentVersion.agent_version_id == EvaluationRun.agent_version_id)
        .join(Problem, Problem.problem_id == Trajectory.problem_id)
        .join(verdict, verdict.c.trajectory_id == Trajectory.trajectory_id, isouter=True)
    )
    return statement if ON_CHAIN.isdisjoint(dimensions) else registration.joined(statement)


def counts(session: Session, rules_digest: str, by: Sequence[Dimension]) -> list[Count]:
    """Count trajectories by any dimensions, in order of their values. Unjudged ones have None for verdict fields."""
    verdict = current(rules_digest)
    columns = [column(dimension, verdict) for dimension in by]
    statement = joined(select(*columns, func.count()), verdict, by)
    rows = session.execute(statement.group_by(*columns).order_by(*columns))
    return [Count(tuple(row[:-1]), row[-1]) for row in rows]
