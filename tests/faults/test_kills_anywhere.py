"""kill -9 at any line of a harvest, again and again: ledger and stored rows end as those of a harvest left alone."""

import json
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select

from service import embedded
from service.replay.server import replaying
from service.store.engine import open_engine, reading
from service.store.models import (
    AgentVersion,
    EvaluationRun,
    Evidence,
    LedgerItem,
    Payload,
    Problem,
    Race,
    RaceEntry,
    Tombstone,
    Trajectory,
)
from tests.faults.conftest import recorded
from tests.faults.released import exactly_released, items_in

PROCESS = Path(__file__).with_name("dying_harvest.py")
KILLS_OF_EACH_JOB = 20
COLUMNS = {
    LedgerItem: ("eval_run_id", "item_key", "problem_id", "episode_result_id", "judgement", "state", "reason", "etag"),
    Trajectory: ("eval_run_id", "item_key", "problem_id", "payload_sha256", "kind"),
    Evidence: ("evidence_digest", "payload_sha256", "body", "is_late"),
    Payload: ("payload_sha256", "size_bytes"),
    Tombstone: ("subject", "subject_id", "reason", "is_lifted"),
    Race: ("race_id", "status", "is_complete", "is_cancelled", "source"),
    RaceEntry: ("race_id", "agent_version_id", "race_score", "race_rank"),
    AgentVersion: ("agent_version_id", "agent_name", "family"),
    EvaluationRun: ("eval_run_id", "agent_version_id", "race_id", "kind", "counts", "listing_attempts"),
    Problem: ("problem_id", "kind", "category", "query", "reward"),
}
"""What must not depend on what happened on the way: all but numbers given in turn, and times."""


class Harvester:
    """The process whose children harvest."""

    def __init__(self, process: subprocess.Popen[str], **places: str) -> None:
        self._process = process
        self._places = places

    def run(self, job: str, moment: int | None = None) -> dict[str, Any]:
        """One job, killed before its `moment`-th line if it has that many."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"job": job, "moment": moment, **self._places}) + "\n")
        self._process.stdin.flush()
        told: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert told["status"] in (0, -signal.SIGKILL), told
        return told


@pytest.fixture(scope="module")
def harvester(
    folder: Path, services: embedded.Services, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Harvester]]:
    """Makes harvesters of the archive into a database; they share one process."""
    environment = {"PYTHONPATH": str(PROCESS.parents[2]), "PATH": ""}
    with (
        replaying(recorded(folder)) as server,
        subprocess.Popen(
            [sys.executable, str(PROCESS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        ) as process,
    ):
        yield lambda url: Harvester(
            process,
            database_url=url,
            redis_url=services.redis_url,
            source_url=server.url,
            data_dir=str(tmp_path_factory.mktemp("data")),
        )
        assert process.stdin is not None
        process.stdin.close()


def stored(engine: Engine) -> dict[str, list[Any]]:
    """Rows of every table that a harvest fills, in an order of their own."""
    with reading(engine) as session:
        return {
            table.__tablename__: sorted(
                (tuple(row) for row in session.execute(select(*(getattr(table, name) for name in names)))), key=repr
            )
            for table, names in COLUMNS.items()
        }


@pytest.fixture(scope="module")
def left_alone(
    new_database: Callable[[], AbstractContextManager[str]], harvester: Callable[[str], Harvester]
) -> dict[str, Any]:
    """The rows of a harvest that nobody kills, and how many lines each job takes."""
    with new_database() as url:
        alone, engine = harvester(url), open_engine(url)
        lines = {job: alone.run(job)["lines"] for job in ("walk", "ingest")}
        rows = stored(engine)
        engine.dispose()
    return {"lines": lines, "rows": rows}


def test_kills_at_random_lines_lose_and_double_nothing(
    database_url: str, harvester: Callable[[str], Harvester], left_alone: dict[str, Any], folder: Path
) -> None:
    harvest, engine, chance = harvester(database_url), open_engine(database_url), random.Random(15)
    places: list[str] = []
    for job in ("walk", "ingest"):
        killed, within = 0, left_alone["lines"][job] // 3
        while killed < KILLS_OF_EACH_JOB:
            told = harvest.run(job, chance.randrange(1, within + 1))
            if told["status"] == 0:
                within = told["lines"]  # it came to its end: from now on there is only so much left to do
            else:
                killed += 1
                places.append(told["place"])
        harvest.run(job)
    assert len(places) == 2 * KILLS_OF_EACH_JOB
    assert len(set(places)) > KILLS_OF_EACH_JOB, "the kills hit the same few lines"
    assert items_in(engine) == exactly_released(recorded(folder))
    assert stored(engine) == left_alone["rows"]
    engine.dispose()


def test_the_harvest_left_alone_is_worth_comparing_with(left_alone: dict[str, Any]) -> None:
    rows = left_alone["rows"]
    assert len(rows["trajectories"]) > 25
    assert {"fetched", "gone"} == {row[5].value for row in rows["harvest_ledger"]}
    assert min(left_alone["lines"].values()) > 1_000
