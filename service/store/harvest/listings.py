"""What the source lists: races, agent versions, runs, problems. Refreshes only rows that differ; decides nothing."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, case, column, func, literal, or_, select, update
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TEXT, Insert, insert
from sqlalchemy.orm import Session

from service.store.harvest import imports
from service.store.models import AgentVersion, Base, EvaluationRun, Problem, Race

ROWS_PER_STATEMENT = 1_000
"""They are one parameter, which is held in memory several times over."""
_FACTS = ("query", "reward", "voucher")
UNLISTED = "UNLISTED"
"""Status of a race that is known from runs alone."""


def save_races(session: Session, races: Collection[Race]) -> None:
    """Insert or refresh races; when they were read is kept, and `complete_since` once it is set."""

    def first(statement: Insert) -> dict[str, Any]:
        return {"complete_since": func.coalesce(Race.complete_since, statement.excluded.complete_since)}

    _upsert(session, Race, races, key="race_id", keep=("walked_at", "read_at", "complete_since"), also=first)


def save_agents(session: Session, agents: Collection[AgentVersion]) -> None:
    """Insert or refresh agent versions; `read_at` is kept."""
    _upsert(session, AgentVersion, agents, key="agent_version_id", keep=("read_at",))


def save_runs(session: Session, runs: Collection[EvaluationRun], volatile: Collection[str] = ()) -> None:
    """Insert or refresh evaluation runs, and lock them; whose run it is never changes.

    A run that is listed otherwise than before is to have its items listed again.

    Args:
        session: open transaction.
        runs: as they are listed now.
        volatile: fields of a listing that change without meaning anything.
    """

    def relisted(statement: Insert) -> dict[str, Any]:
        passing = literal(sorted(volatile), ARRAY(TEXT))
        before, now = EvaluationRun.source.op("-")(passing), statement.excluded.source.op("-")(passing)
        differs = before.is_distinct_from(now)
        columns = (EvaluationRun.listed_at, EvaluationRun.next_listing_at)
        return {column.key: case((differs, None), else_=column) for column in columns}

    kept = ("agent_version_id", "listed_at", "next_listing_at", "listing_attempts")
    _upsert(session, EvaluationRun, runs, key="eval_run_id", keep=kept, also=relisted)


def save_problems(session: Session, problems: Collection[Problem]) -> None:
    """Insert problems, or fill in facts that were unknown. A fact once given is never taken back.

    Of a problem that only imported files have named so far, the source says what it is.
    """
    for values in _batches(problems, "problem_id"):
        statement = _insert(Problem, values)
        new = statement.excluded
        filled = [getattr(Problem, fact).is_(None) & getattr(new, fact).is_not(None) for fact in ("suite_id", *_FACTS)]
        unnamed = Problem.category == imports.CATEGORY
        naming = {name: case((unnamed, new[name]), else_=getattr(Problem, name)) for name in ("kind", "category")}
        session.execute(
            statement.on_conflict_do_update(
                index_elements=["problem_id"],
                set_={fact: func.coalesce(getattr(Problem, fact), new[fact]) for fact in ("suite_id", *_FACTS)}
                | naming,
                where=or_(unnamed, *filled),
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


def listed_runs(session: Session, agent_version_id: str) -> dict[str, datetime]:
    """When the items of each run of one agent version were last listed, where all of them were there."""
    rows = session.execute(
        select(EvaluationRun.eval_run_id, EvaluationRun.listed_at).where(
            EvaluationRun.agent_version_id == agent_version_id, EvaluationRun.listed_at.is_not(None)
        )
    )
    return {eval_run_id: listed_at for eval_run_id, listed_at in rows if listed_at is not None}


def waiting_runs(session: Session, agent_version_id: str, now: datetime) -> set[str]:
    """Runs of one agent version whose items are not to be asked for yet."""
    waits = EvaluationRun.next_listing_at > now
    return set(
        session.scalars(
            select(EvaluationRun.eval_run_id).where(EvaluationRun.agent_version_id == agent_version_id, waits)
        )
    )


def mark_run_listed(session: Session, eval_run_id: str, at: datetime) -> None:
    """Note that every item of a finished run is in the ledger, as it is listed now."""
    session.execute(
        update(EvaluationRun)
        .where(EvaluationRun.eval_run_id == eval_run_id)
        .values(listed_at=at, next_listing_at=None, listing_attempts=0)
    )


def listing_attempts(session: Session, eval_run_id: str) -> int:
    """How often in a row the items of a run were not all given."""
    attempts = select(EvaluationRun.listing_attempts).where(EvaluationRun.eval_run_id == eval_run_id)
    return session.scalar(attempts) or 0


def put_off_listing(session: Session, eval_run_id: str, until: datetime) -> None:
    """Note that the items of a run are not all there, and when to ask for them again."""
    session.execute(
        update(EvaluationRun)
        .where(EvaluationRun.eval_run_id == eval_run_id)
        .values(next_listing_at=until, listing_attempts=EvaluationRun.listing_attempts + 1)
    )


def _upsert(
    session: Session,
    model: type[Base],
    rows: Iterable[Base],
    *,
    key: str,
    keep: Collection[str] = (),
    also: Callable[[Insert], dict[str, Any]] | None = None,
) -> None:
    """Insert rows, or refresh those that differ in a column that is not kept; `also` gives what else changes then."""
    changing = [column.name for column in model.__table__.columns if column.name not in {key, *keep}]
    for values in _batches(rows, key):
        statement = _insert(model, values)
        session.execute(
            statement.on_conflict_do_update(
                index_elements=[key],
                set_={name: statement.excluded[name] for name in changing} | (also(statement) if also else {}),
                where=or_(*(getattr(model, name).is_distinct_from(statement.excluded[name]) for name in changing)),
            )
        )


def _insert(model: type[Base], rows: Sequence[dict[str, object]]) -> Insert:
    """An INSERT of rows that name the same columns. They are one parameter: the statement is compiled once."""
    columns = [column(name, model.__table__.columns[name].type) for name in rows[0]]
    given = func.jsonb_to_recordset(bindparam("rows", rows, JSONB)).table_valued(*columns, name="given")
    named = given.render_derived(with_types=True)
    return insert(model).from_select(list(rows[0]), select(*named.columns), include_defaults=False)


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
        if (column.server_default is None and column.identity is None) or getattr(row, column.name) is not None
    }
