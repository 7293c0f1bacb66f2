"""How much of what SN15 has released is here: per race and per agent version, what is there, waiting, failed, gone.

Read-only, and no gate: nothing is decided by these figures. Items that were never listed are in none of them; runs
say how many may still bring some. Rows of imported files are not counted.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Select, and_, case, func, select
from sqlalchemy.orm import Session

from service.errors import ErrorCode, SluiceError
from service.store.harvest import trajectory_history
from service.store.harvest.trajectory_history import History
from service.store.models import IMPORTED, AgentVersion, EvaluationRun, LedgerItem, LedgerState, Race

QUALIFYING = "qualifying"
"""Stands for the id of a race where runs belong to none."""


class Runs(NamedTuple):
    """Runs by what they can bring; they sum to all that are known."""

    listed: int = 0
    """Every item of theirs is in the ledger."""
    to_list: int = 0
    """They count, and their items are not all listed yet."""
    not_counting: int = 0
    """Not over yet, unsuccessful, excluded, invalidated, or of a race that was called off."""


class Refused(NamedTuple):
    """Items that stand in one state for one reason."""

    reason: str | None
    """None: for no reason that was given."""
    items: int
    attempts: int
    """Most tries that one of them has had."""
    first_try_at: datetime | None
    """When the first of them is asked for again; None while all of them are being asked for, and for gone ones."""
    last_try_at: datetime | None
    """The same for the last of them."""


class Cover(NamedTuple):
    """Items of one race or agent version by state, which sum to `items`, and why they stand so."""

    items: int
    expected: int
    """To be asked for."""
    fetched: int
    changed: int
    """Fetched, and to be asked for again: they are listed otherwise since."""
    embargoed: int
    """Waiting until they are released."""
    failed: int
    gone: int
    runs: Runs
    embargoes: list[Refused]
    failures: list[Refused]
    losses: list[Refused]
    """Why items are gone."""

    @property
    def share(self) -> float | None:
        """Share of the items that can be had which is stored; None while there are none, or runs are to be listed."""
        to_have = self.items - self.gone
        return None if self.runs.to_list or not to_have else (self.fetched + self.changed) / to_have


class RaceCover(NamedTuple):
    """One race; or all qualifying runs, which belong to none."""

    race_id: str
    race_number: int | None
    suite_id: int | None
    status: str | None
    cover: Cover


class AgentCover(NamedTuple):
    """One agent version in one race, or in qualifying."""

    agent_version_id: str
    agent_name: str
    cover: Cover


class Coverage(NamedTuple):
    """Everything `sluice coverage` and `/v1/coverage` show."""

    races: list[RaceCover]
    """Newest first; qualifying runs come last."""
    agents: list[AgentCover] | None
    """Of the one race asked for; None where none was."""
    history: History


def coverage(session: Session, race_id: str | None = None) -> Coverage:
    """Count all races, or one of them with its agent versions.

    Args:
        session: open transaction.
        race_id: the race wanted, or `qualifying`; None for all.

    Raises:
        SluiceError: NOT_FOUND, there is no such race.
    """
    races = [race for race in _races(session) if race_id in (None, race.race_id)]
    if not races:
        raise SluiceError(ErrorCode.NOT_FOUND, f"there is no race {race_id!r}", race_id=race_id)
    agents = None if race_id is None else _agents(session, race_id)
    return Coverage(races, agents, trajectory_history.compared(session))


def _races(session: Session) -> list[RaceCover]:
    covers = _covers(session, func.coalesce(EvaluationRun.race_id, QUALIFYING))
    order = (Race.completed_at.desc().nulls_first(), Race.started_at.desc(), Race.race_id)
    return [
        RaceCover(*(race.race_id, race.race_number, race.suite_id, race.status), covers.get(race.race_id, _cover()))
        for race in session.scalars(select(Race).order_by(*order))
    ] + [RaceCover(QUALIFYING, None, None, None, covers.get(QUALIFYING, _cover()))]


def _agents(session: Session, race_id: str) -> list[AgentCover]:
    covers = _covers(session, EvaluationRun.agent_version_id, race_id)
    named = select(AgentVersion.agent_version_id, AgentVersion.agent_name).where(
        AgentVersion.agent_version_id.in_(covers)
    )
    names = session.execute(named.order_by(AgentVersion.agent_name, AgentVersion.agent_version_id))
    return [AgentCover(agent_version_id, name, covers[agent_version_id]) for agent_version_id, name in names]


def _covers(session: Session, key: Any, race_id: str | None = None) -> dict[str, Cover]:
    """The figures by a key of runs, of one race or of all."""
    state, due_at = LedgerItem.state, LedgerItem.next_try_at
    at_rest = LedgerItem.claimed_by.is_(None) & (state != LedgerState.GONE)
    by_state = _of_race(
        select(
            *(key, state, LedgerItem.reason, func.count(), func.max(LedgerItem.attempts)),
            *(func.min(due_at).filter(at_rest), func.max(due_at).filter(at_rest)),
        ).join(LedgerItem, LedgerItem.eval_run_id == EvaluationRun.eval_run_id),
        race_id,
    )
    refused: dict[str, dict[LedgerState, list[Refused]]] = {}
    for name, stands, *figures in session.execute(by_state.group_by(key, state, LedgerItem.reason)):
        refused.setdefault(name, {}).setdefault(stands, []).append(Refused(*figures))
    kind = case(
        (~EvaluationRun.counts | and_(EvaluationRun.listed_at.is_(None), Race.is_cancelled.is_(True)), "not_counting"),
        (EvaluationRun.listed_at.is_(None), "to_list"),
        else_="listed",
    )
    of_races = select(key, kind, func.count()).join(Race, Race.race_id == EvaluationRun.race_id, isouter=True)
    runs = _by_name(session.execute(_of_race(of_races, race_id).group_by(key, kind)))
    return {name: _cover(refused.get(name, {}), Runs(**counted)) for name, counted in runs.items()}


def _of_race(statement: Select[Any], race_id: str | None) -> Select[Any]:
    statement = statement.where(EvaluationRun.phase != IMPORTED)
    if race_id is None:
        return statement
    named = EvaluationRun.race_id.is_(None) if race_id == QUALIFYING else EvaluationRun.race_id == race_id
    return statement.where(named)


def _by_name(rows: Iterable[Any]) -> dict[str, dict[str, int]]:
    counted: dict[str, dict[str, int]] = {}
    for name, kind, runs in rows:
        counted.setdefault(name, {})[kind] = runs
    return counted


def _cover(refused: dict[LedgerState, list[Refused]] | None = None, runs: Runs | None = None) -> Cover:
    by_state = refused or {}
    counts = {state.value: sum(each.items for each in by_state.get(state, [])) for state in LedgerState}
    return Cover(
        items=sum(counts.values()),
        **counts,
        runs=runs or Runs(),
        embargoes=_ranked(by_state.get(LedgerState.EMBARGOED, [])),
        failures=_ranked(by_state.get(LedgerState.FAILED, [])),
        losses=_ranked(by_state.get(LedgerState.GONE, [])),
    )


def _ranked(refused: Sequence[Refused]) -> list[Refused]:
    """Most items first."""
    return sorted(refused, key=lambda each: (-each.items, each.reason or ""))
