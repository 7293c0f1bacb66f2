"""Subscribe: what a walk notes, what it leaves for later, and what it survives."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import func, select

from service.errors import SluiceError
from service.replay.faults import Fault
from service.replay.server import Replay
from service.source.oro.listing import AgentListing
from service.source.oro.publications import Standing
from service.store.engine import reading
from service.store.harvest import walks
from service.store.models import EvaluationRun, LedgerItem, Race
from workers.context import Context
from workers.subscribe import walk


def listed(context: Context) -> dict[str | None, int]:
    """Ledger items by race."""
    statement = (
        select(EvaluationRun.race_id, func.count(LedgerItem.ledger_id))
        .join(LedgerItem, LedgerItem.eval_run_id == EvaluationRun.eval_run_id)
        .group_by(EvaluationRun.race_id)
    )
    with reading(context.engine) as session:
        return {race_id: items for race_id, items in session.execute(statement)}


def in_archive(replay: Replay) -> dict[str | None, int]:
    """Items of the archive by race."""
    counts: dict[str | None, int] = {}
    for run in replay.archive.runs.values():
        counts[run.race_id] = counts.get(run.race_id, 0) + len(run.items)
    return counts


def test_one_walk_notes_every_item_of_every_run(context: Context, replay: Replay) -> None:
    walk(context)
    assert listed(context) == in_archive(replay)


def test_a_second_walk_asks_for_no_run_again(context: Context, replay: Replay) -> None:
    walk(context)
    replay.faults.requests.clear()
    walk(context)
    assert not [
        path
        for path in replay.faults.requests
        if path.endswith(("/runs", "/problems", "/feedback")) and "/agent-versions/" in path
    ]
    with reading(context.engine) as session:
        last = walks.latest(session)
        assert last is not None
        assert last.items == 0


def test_a_race_in_flight_is_listed_once_it_is_complete(context: Context, replay: Replay) -> None:
    race_id, race = next((key, race) for key, race in replay.archive.races.items() if race.execution_kind != "envpack")
    whole = in_archive(replay)
    replay.archive.races[race_id] = replace(race, status="RACE_RUNNING", completed_at=None)
    walk(context)
    assert listed(context) == {key: count for key, count in whole.items() if key != race_id}
    replay.archive.races[race_id] = race
    walk(context)
    assert listed(context) == whole
    with reading(context.engine) as session:
        assert session.get_one(Race, race_id).walked_at is not None


def test_an_agent_that_cannot_be_listed_holds_up_no_other(context: Context, replay: Replay) -> None:
    agent_version_id = next(iter(replay.archive.runs.values())).agent_version_id
    replay.faults.add(Fault(f"/agent-versions/{agent_version_id}/runs", times=4, status=500))
    walk(context)
    whole = in_archive(replay)
    assert listed(context) != whole
    walk(context)
    assert listed(context) == whole


def test_a_source_that_is_away_breaks_the_walk_off_with_its_reason(context: Context, replay: Replay) -> None:
    replay.faults.add(Fault("/races/current", times=4, status=500))
    with pytest.raises(SluiceError):
        walk(context)
    with reading(context.engine) as session:
        (error,) = walks.errors_after(session, 0)
        assert "upstream_error" in error
        assert walks.incomplete(session)
        assert not walks.completed_after(session, 0)


def test_a_row_the_database_does_not_take_holds_up_no_other(
    context: Context, replay: Replay, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaderboards = context.source.leaderboards

    def one_impossible() -> Iterator[Standing]:
        agent = AgentListing(
            agent_version_id="x" * 1_000_000, agent_name=None, miner_hotkey=None, version_number=2**40, raw={}
        )
        yield Standing(3, agent)
        yield from leaderboards()

    monkeypatch.setattr(type(context.source), "leaderboards", lambda _: one_impossible())
    walk(context)
    assert listed(context) == in_archive(replay)
    with reading(context.engine) as session:
        last = walks.latest(session)
        assert last is not None
        assert last.oddities["unstorable"] >= 1
