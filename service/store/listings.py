"""What the source lists: races, agent versions, runs, problems. Refreshes only rows that differ; decides nothing."""

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime

from sqlalchemy import exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from service.store.models import AgentVersion, Base, EvaluationRun, Problem, Race

ROWS_PER_STATEMENT = 1_000
"""Postgres takes 65,535 parameters in one statement."""
_FACTS = ("query", "reward", "voucher")
UNLISTED = "UNLISTED"
"""Status of a race that is known from runs alone."""


def save_races(session: Session, races: Collection[Race]) -> None:
    """Insert or refresh races; `walked_at` is kept."""
    _upsert(session, Race, races, key="race_id", keep=("walked_at",))


def save_agents(session: Session, agents: Collection[AgentVersion]) -> None:
    """Insert or refresh agent versions."""
    _upsert(session, AgentVersion, agents, key="agent_version_id")


def save_runs(session: Session, runs: Collection[EvaluationRun]) -> None:
    """Insert or refresh evaluation runs; `listed_at` is kept, and whose run it is never changes."""
    _upsert(session, EvaluationRun, runs, key="eval_run_id", keep=("listed_at", "agent_version_id"))


def save_problems(session: Session, problems: Collection[Problem]) -> None:
    """Insert problems, or fill in facts that were unknown. A fact once given is never taken back."""
    for values in _batches(problems, "problem_id"):
        statement = insert(Problem).values(values)
        new = statement.excluded
        filled = [getattr(Problem, fact).is_(None) & getattr(new, fact).is_not(None) for fact in ("suite_id", *_FACTS)]
        session.execute(
            statement.on_conflict_do_update(
                index_elements=["problem_id"],
                set_={fact: func.coalesce(getattr(Problem, fact), new[fact]) for fact in ("suite_id", *_FACTS)},
                where=or_(*filled),
            )
        )


def save_unlisted_races(session: Session, races: Collection[tuple[str, int | None]]) -> set[str]:
    """Give every (race id, suite id) that runs refer to a row, listed by the source or not.

    Returns:
        Those of the races that are complete.
    """
    if not races:
        return set()
    rows = [
        Race(race_id=race_id, suite_id=suite_id, status=UNLISTED, is_complete=False, source={})
        for race_id, suite_id in races
    ]
    session.execute(
        insert(Race).values([_values(row) for row in rows]).on_conflict_do_nothing(index_elements=["race_id"])
    )
    ids = [race_id for race_id, _ in races]
    return set(session.scalars(select(Race.race_id).where(Race.race_id.in_(ids), Race.is_complete)))


def walked_races(session: Session) -> set[str]:
    """Races of which every run has been listed: nothing new will come of them."""
    return set(session.scalars(select(Race.race_id).where(Race.walked_at.is_not(None))))


def listed_runs(session: Session, agent_version_id: str) -> set[str]:
    """Runs of one agent version whose items are all in the ledger."""
    return set(
        session.scalars(
            select(EvaluationRun.eval_run_id).where(
                EvaluationRun.agent_version_id == agent_version_id, EvaluationRun.listed_at.is_not(None)
            )
        )
    )


_MAY_BRING_MORE = ~EvaluationRun.is_over | (EvaluationRun.counts & EvaluationRun.listed_at.is_(None))
"""A run that is still going on, or that counts and is not wholly in the ledger."""


def settled_agents(session: Session) -> set[str]:
    """Agent versions with runs, none of which may bring more."""
    by_agent = select(EvaluationRun.agent_version_id).group_by(EvaluationRun.agent_version_id)
    return set(session.scalars(by_agent.having(func.bool_and(~_MAY_BRING_MORE))))


def mark_races_walked(session: Session, race_ids: Collection[str], at: datetime) -> None:
    """Note of completed races that every run has been listed, unless one of their runs may bring more."""
    may_bring_more = exists().where(EvaluationRun.race_id == Race.race_id, _MAY_BRING_MORE)
    session.execute(
        update(Race).where(Race.race_id.in_(race_ids), Race.walked_at.is_(None), ~may_bring_more).values(walked_at=at)
    )


def mark_run_listed(session: Session, eval_run_id: str, at: datetime) -> None:
    """Note that every item of a finished run is in the ledger."""
    session.execute(
        update(EvaluationRun)
        .where(EvaluationRun.eval_run_id == eval_run_id, EvaluationRun.listed_at.is_(None))
        .values(listed_at=at)
    )


def _upsert(session: Session, model: type[Base], rows: Iterable[Base], *, key: str, keep: Collection[str] = ()) -> None:
    changing = [column.name for column in model.__table__.columns if column.name not in {key, *keep}]
    for values in _batches(rows, key):
        statement = insert(model).values(values)
        session.execute(
            statement.on_conflict_do_update(
                index_elements=[key],
                set_={name: statement.excluded[name] for name in changing},
                where=or_(*(getattr(model, name).is_distinct_from(statement.excluded[name]) for name in changing)),
            )
        )


def _batches(rows: Iterable[Base], key: str) -> Iterator[list[dict[str, object]]]:
    """Rows ready to be inserted, each key once: one statement cannot touch a row twice."""
    distinct: dict[str, dict[str, object]] = {}
    for row in rows:
        distinct.setdefault(getattr(row, key), _values(row))
    values = list(distinct.values())
    for start in range(0, len(values), ROWS_PER_STATEMENT):
        yield values[start : start + ROWS_PER_STATEMENT]


def _values(row: Base) -> dict[str, object]:
    return {
        column.name: getattr(row, column.name)
        for column in row.__table__.columns
        if column.server_default is None and column.identity is None
    }
