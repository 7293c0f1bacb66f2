"""Races and how far the harvest of each has come. Read-only."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.store.models import EvaluationRun, LedgerItem, Race


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
