"""Agent code: asked for once it is out, kept as it came, whatever happens on the way; and never given away."""

import json
import logging
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import zstandard
from sqlalchemy import Engine, select, update
from starlette.testclient import TestClient

from service.api import create_app
from service.config import Settings
from service.replay.archive import read_archive
from service.replay.faults import Fault, Faults
from service.replay.recorded import AgentVersion
from service.replay.server import Replay, replaying
from service.store.engine import open_engine, reading, transaction
from service.store.models import AgentCode, AgentCodeBytes, EvaluationRun, LedgerItem, LedgerState
from tests.replay.recording import write_recording
from tests.workers.harness import pipeline
from workers import agent_code
from workers.agent_code import GRACE, LONGEST_WAIT, VERSIONS_AT_ONCE, collect
from workers.context import Context
from workers.subscribe import walk

MARK = b"MARKED-AGENT-SOURCE"
CODE = b"def agent_main(problem):\n    return []\n"


def give_code(replay: Replay, **changes: Any) -> None:
    """Let every agent of the archive have code."""
    for agent_version_id, agent in replay.archive.agents.items():
        replay.archive.agents[agent_version_id] = replace(agent, code=CODE, **changes)


def rows(context: Context) -> dict[str, AgentCode]:
    with reading(context.engine) as session:
        return {row.agent_version_id: row for row in session.scalars(select(AgentCode))}


def asked(replay: Replay) -> int:
    assert replay.faults is not None
    number = sum(path.endswith("/download-url") for path in replay.faults.requests)
    replay.faults.requests.clear()
    return number


def come_round(context: Context) -> None:
    """Let every next try have come."""
    with transaction(context.engine) as session:
        session.execute(update(AgentCode).values(next_try_at=datetime.now(UTC) - timedelta(seconds=1)))


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[Replay]:
    """Five agents, whose races are all over."""
    with replaying(write_recording(tmp_path / "recording"), faults=Faults()) as server:
        for race_id, race in server.archive.races.items():
            server.archive.races[race_id] = replace(race, status="RACE_COMPLETE", completed_at=race.started_at)
        yield server


@pytest.fixture
def walked(context: Context, replay: Replay) -> Context:
    """A ledger of everything in the archive, whose agents all have code."""
    give_code(replay)
    walk(context)
    asked(replay)
    return context


def test_released_code_is_stored_once_for_each_digest(walked: Context, replay: Replay) -> None:
    assert collect(walked) == len(replay.archive.agents) <= VERSIONS_AT_ONCE
    stored = rows(walked)
    assert stored.keys() == replay.archive.agents.keys()
    assert {row.state for row in stored.values()} == {LedgerState.FETCHED}
    with reading(walked.engine) as session:
        (kept,) = session.scalars(select(AgentCodeBytes)).all()  # all of them are the same bytes
    assert zstandard.ZstdDecompressor().decompress(kept.zstd) == CODE
    assert kept.size_bytes == len(CODE)
    asked(replay)
    assert collect(walked) == 0
    assert asked(replay) == 0


def test_an_agent_without_items_in_the_ledger_is_not_asked_about(context: Context, replay: Replay) -> None:
    give_code(replay)
    walk(context)
    with transaction(context.engine) as session:
        other = session.scalars(select(EvaluationRun.agent_version_id).distinct()).first()
        runs = select(EvaluationRun.eval_run_id).where(EvaluationRun.agent_version_id == other)
        session.query(LedgerItem).where(LedgerItem.eval_run_id.in_(runs)).delete()
    collect(context)
    assert rows(context).keys() == replay.archive.agents.keys() - {other}


def test_hidden_code_waits_until_it_was_announced_for(walked: Context, replay: Replay) -> None:
    soon, late = datetime.now(UTC) + timedelta(hours=2), datetime.now(UTC) + timedelta(days=400)
    first, *others = replay.archive.agents.values()
    for agent in replay.archive.agents.values():
        announced = soon if agent is first else late
        replay.archive.agents[agent.agent_version_id] = replace(agent, code_available_at=announced)
    assert collect(walked) == 0
    stored = rows(walked)
    assert {(row.state, row.reason) for row in stored.values()} == {(LedgerState.EMBARGOED, "not_released")}
    assert stored[first.agent_version_id].next_try_at == soon + GRACE
    assert stored[others[0].agent_version_id].next_try_at < datetime.now(UTC) + LONGEST_WAIT + timedelta(seconds=1)
    asked(replay)
    collect(walked)
    assert asked(replay) == 0  # nobody is due
    give_code(replay, code_available_at=None)
    come_round(walked)
    assert collect(walked) == len(stored)


def test_code_that_is_hidden_without_a_date_waits_as_an_embargo_does(walked: Context, replay: Replay) -> None:
    for race_id, race in replay.archive.races.items():
        replay.archive.races[race_id] = replace(race, status="RACE_RUNNING", completed_at=None)
    collect(walked)
    waits = {row.next_try_at - datetime.now(UTC) for row in rows(walked).values() if row.reason == "not_released"}
    assert waits
    assert all(timedelta(hours=5) < wait < timedelta(hours=7) for wait in waits)


def test_an_agent_without_code_is_gone_and_not_asked_about_again(walked: Context, replay: Replay) -> None:
    for agent_version_id, agent in replay.archive.agents.items():
        replay.archive.agents[agent_version_id] = replace(agent, code=None)
    assert collect(walked) == 0
    assert {(row.state, row.reason) for row in rows(walked).values()} == {(LedgerState.GONE, "no_object")}
    come_round(walked)
    asked(replay)
    collect(walked)
    assert asked(replay) == 0


def test_a_source_that_is_away_is_not_asked_about_every_agent(walked: Context, replay: Replay) -> None:
    assert replay.faults is not None
    replay.faults.add(Fault("/download-url", times=1000, status=500))
    assert collect(walked) == 0
    assert asked(replay) == 1
    (row,) = rows(walked).values()
    assert (row.state, row.reason, row.attempts) == (LedgerState.FAILED, "upstream_error", 1)


def test_an_upload_that_fails_counts_against_the_agent_alone(walked: Context, replay: Replay) -> None:
    assert replay.faults is not None
    replay.faults.add(Fault("/objects/code/", times=1, keep_bytes=3, cut=True))
    assert collect(walked) == len(replay.archive.agents) - 1
    assert Counter(row.state for row in rows(walked).values())[LedgerState.FAILED] == 1
    come_round(walked)
    assert collect(walked) == 1


def test_whoever_is_killed_between_two_agents_has_lost_nothing(
    walked: Context, replay: Replay, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    add = agent_code.agent_code.add

    def die_at_third(*args: Any) -> None:
        nonlocal calls
        calls += 1
        add(*args)
        if calls == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(agent_code.agent_code, "add", die_at_third)
    with pytest.raises(KeyboardInterrupt):
        collect(walked)
    assert len(rows(walked)) == 2  # the third was not committed
    collect(walked)
    assert rows(walked).keys() == replay.archive.agents.keys()


def test_a_late_refusal_does_not_take_back_what_is_stored(walked: Context) -> None:
    collect(walked)
    target = agent_code.CodeTarget(next(iter(rows(walked))), None, 0)
    note = agent_code.Note(LedgerState.GONE, "no_object", datetime.now(UTC), 1)
    with transaction(walked.engine) as session:
        agent_code.agent_code.note_refusal(session, target, note)
    assert {row.state for row in rows(walked).values()} == {LedgerState.FETCHED}


def marked(agent: AgentVersion, number: int) -> AgentVersion:
    return replace(agent, code=MARK + f" {number}\n".encode() + CODE)


def test_no_endpoint_export_or_log_holds_any_of_it(
    database_url: str, redis_url: str, archive: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    recorded = read_archive(archive)
    for number, (agent_version_id, agent) in enumerate(recorded.agents.items()):
        recorded.agents[agent_version_id] = marked(agent, number)
    logging.getLogger().setLevel(logging.DEBUG)
    with replaying(recorded) as server, pipeline(database_url, redis_url, server.url, tmp_path) as work:
        with work.worker("service.store.harvest.agent_code.add@3") as doomed:
            assert doomed.wait(timeout=60) == -signal.SIGKILL
        work.run()
        with work.worker():  # the last one may have been told to stop between two agents
            _wait_for_code(work.engine, len(recorded.agents))
        logs = "".join(capfd.readouterr())
        settings_of = {"data_dir": tmp_path, "database_url": database_url, "redis_url": redis_url}
        served = _everything_served(database_url, settings_of)
    assert MARK.decode() not in logs
    assert len(served) > 20
    assert [path for path, body in served.items() if MARK in body] == []
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.suffix == ".parquet" for path in files)
    assert [path for path in files if MARK in _unpacked(path)] == []


def _wait_for_code(engine: Engine, agents: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        with reading(engine) as session:
            rows = session.execute(
                select(AgentCode.state, AgentCodeBytes.zstd)
                .join(AgentCodeBytes, AgentCodeBytes.code_sha256 == AgentCode.code_sha256)
                .where(AgentCode.state == LedgerState.FETCHED)
            ).all()
        if len(rows) == agents:
            break
        assert time.monotonic() < deadline, f"{len(rows)} of {agents} have come"
        time.sleep(0.2)
    assert all(MARK in zstandard.ZstdDecompressor().decompress(packed) for _, packed in rows)


def _everything_served(database_url: str, settings_of: dict[str, Any]) -> dict[str, bytes]:
    """The body of every path that the service answers, with every id that any of its answers names."""
    engine = open_engine(database_url)
    with TestClient(create_app(engine, Settings(**settings_of)), raise_server_exceptions=False) as client:
        described = client.get("/openapi.json").json()["paths"]
        races = client.get("/v1/races").json()["races"]
        rows = client.get("/v1/trajectories", params={"limit": 200}).json()["trajectories"]
        snapshots = client.get("/v1/snapshots").json()["snapshots"]
        ids = {
            "race_id": [race["race_id"] for race in races],
            "trajectory_id": [str(row["trajectory_id"]) for row in rows],
            "snapshot_id": [snapshot.get("snapshot_id") or snapshot.get("id") for snapshot in snapshots],
        }
        plain = ["/", "/openapi.json", "/metrics", "/docs", *described]
        paths = [path for path in plain if "{" not in path]
        for path in plain:
            for name, values in ids.items():
                if f"{{{name}}}" in path:
                    filled = [path.replace(f"{{{name}}}", value) for value in values]
                    paths += [one for one in filled if "{" not in one]
        for snapshot_id in ids["snapshot_id"]:
            manifest = client.get(f"/v1/snapshots/{snapshot_id}").json()
            named = [word for word in json.dumps(manifest).split('"') if "/" in word or "." in word]
            paths += [f"/v1/snapshots/{snapshot_id}/files/{name}" for name in named if " " not in name]
        bodies = {path: client.get(path).content for path in dict.fromkeys(paths)}
    engine.dispose()
    return bodies


def _unpacked(path: Path) -> bytes:
    """The bytes of a file, and of the columns or lines packed in it."""
    data = path.read_bytes()
    if path.suffix == ".zst":
        return zstandard.ZstdDecompressor().stream_reader(data).read()
    if path.suffix == ".parquet":
        return str(pq.read_table(path).to_pylist()).encode()
    return data
