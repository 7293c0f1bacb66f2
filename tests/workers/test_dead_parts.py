"""Parts of a source that never answer rightly: each stops itself alone, and no walk for ever."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, text

from service.cli.intake import take_in
from service.domain.imports.identity import Naming
from service.errors import SluiceError
from service.replay.faults import Fault
from service.replay.server import Replay
from service.source.oro.reader import LINK_PATIENCE
from service.store.engine import reading
from service.store.harvest import ledger, walks
from service.store.models import AgentVersion, LedgerItem, Race, Tombstone
from tests.workers import late
from tests.workers.test_ledger_rules import let_time_pass
from workers.context import Context
from workers.subscribe import walk

OFTEN = 10**6
RUN_NOT_FOUND = b'{"detail": "no", "error_code": "EVAL_RUN_NOT_FOUND"}'


@pytest.mark.parametrize(
    "fault",
    [{"status": 404, "body": RUN_NOT_FOUND}, {"status": 404}, {"status": 200, "body": b"[]"}, {"status": 500}],
)
def test_a_run_whose_items_cannot_be_listed_holds_up_no_other_of_its_agent(
    context: Context, replay: Replay, fault: dict[str, Any]
) -> None:
    context.source._calls._backoff_seconds = 0.01
    by_agent: dict[str, list[str]] = {}
    for run in replay.archive.runs.values():
        by_agent.setdefault(run.agent_version_id, []).append(run.eval_run_id)
    agent = next(agent for agent, runs in by_agent.items() if len(runs) > 1)
    first, *others = [run.eval_run_id for run in context.source.runs(agent)]
    replay.faults.add(Fault(f"/evaluation-runs/{first}", times=OFTEN, **fault))
    for _ in range(2):
        late.much_later(context, items=True)
        walk(context)
        let_time_pass(context)
    with reading(context.engine) as session:
        wanted = LedgerItem.eval_run_id.in_([first, *others])
        assert set(session.scalars(select(LedgerItem.eval_run_id).where(wanted))) == set(others)


@pytest.mark.parametrize("pattern", ["/races/[0-9a-f-]{36}$", r"/suites/\d+/problems", "/races/current"])
@pytest.mark.parametrize("fault", [{"status": 500}, {"status": 404}, {"status": 200, "body": b"[]"}])
def test_a_page_that_is_always_faulty_breaks_two_walks_and_no_more(
    context: Context, replay: Replay, pattern: str, fault: dict[str, Any]
) -> None:
    context.source._calls._backoff_seconds = 0.01
    replay.faults.add(Fault(pattern, times=OFTEN, **fault))
    for _ in range(LINK_PATIENCE):
        with pytest.raises(SluiceError):
            walk(context)
    walk(context)
    with reading(context.engine) as session:
        assert not walks.incomplete(session)
    replay.faults.clear()
    walk(context)
    with reading(context.engine) as session:
        assert ledger.counts(session)
    # All pages were there, so that the next fault is waited for again, however often one comes and goes.
    for _ in range(LINK_PATIENCE + 1):
        replay.faults.add(Fault(r"/suites/\d+/problems", times=OFTEN, status=500))
        with pytest.raises(SluiceError):
            walk(context)
        replay.faults.clear()
        walk(context)


def test_races_beside_one_whose_page_is_dead_are_harvested(context: Context, replay: Replay) -> None:
    context.source._calls._backoff_seconds = 0.01
    dead, *others = sorted(replay.archive.races)
    replay.faults.add(Fault(f"/races/{dead}$", times=OFTEN, status=500))
    for _ in range(LINK_PATIENCE):
        with pytest.raises(SluiceError):
            walk(context)
    walk(context)
    with reading(context.engine) as session:
        listed = set(session.scalars(select(Race.race_id).where(Race.is_complete)))
    assert set(others) & listed


@pytest.mark.parametrize(
    ("zone", "moment"),
    [("Europe/Berlin", "9999-12-31T23:59:59.9999999Z"), ("America/New_York", "0001-01-01T00:00:00Z")],
)
def test_a_time_at_the_end_of_the_calendar_is_no_time_wherever_the_database_is(
    context: Context, replay: Replay, zone: str, moment: str
) -> None:
    with context.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        name = connection.scalar(text("SELECT current_database()"))
        connection.execute(text(f"ALTER DATABASE {name} SET timezone = '{zone}'"))
    context.engine.dispose()

    def far(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        rows[0]["completed_at"] = moment
        return rows

    replay.faults.add(Fault("/agent-versions/[^/]*/runs$", times=OFTEN, rewrite=far))
    for _ in range(2):
        walk(context)
        late.much_later(context)


def test_a_source_cannot_name_what_was_imported(context: Context, replay: Replay, tmp_path: Path) -> None:
    said = [{"role": "user", "content": "a red shoe"}, {"role": "assistant", "content": "ok"}]
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps({"messages": said, "success": True}) + "\n")
    assert take_in(context.engine, path, None, Naming(), threading.Event()).stored == 1
    with reading(context.engine) as session:
        before = session.scalars(select(AgentVersion)).one()
        agent_version_id, family = before.agent_version_id, before.family

    def board(answer: dict[str, Any]) -> dict[str, Any]:
        named = {"agent_version_id": agent_version_id, "agent_name": "x", "miner_hotkey": "other", "is_discarded": True}
        answer["entries"] = [*answer["entries"], named]
        answer["total"] = len(answer["entries"])
        return answer

    replay.faults.add(Fault("/leaderboard", times=OFTEN, rewrite=board))
    walk(context)
    with reading(context.engine) as session:
        assert session.get_one(AgentVersion, agent_version_id).family == family
        assert session.scalars(select(Tombstone)).all() == []
