"""Kill a watcher at any line: what is left, watched again, ends where an undisturbed watcher ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from service import embedded
from service.config import Settings
from service.replay.archive import read_archive
from service.store.corpus import evidence
from service.store.engine import reading
from service.store.models import Evidence, LocalEnvelope, LocalGrading, TailPosition, Trajectory, WitnessLine
from service.store.validator import gradings
from tests.workers import validator_side as side
from workers import watch
from workers.context import Context, open_context

PROCESS = Path(__file__).with_name("watching_process.py")
FAULTS = {
    "some lines of a file read": "service.source.validator.envelopes.read@20",
    "lines written and not committed": "service.store.validator.local.add_envelopes@2",
    "position moved and not committed": "service.store.validator.local.move@2",
    "committed, and the next file not read": "service.store.validator.local.move@3:before",
    "lines of the proxy's log written and not committed": "service.store.validator.local.add_lines",
    "graded, and nothing written": "service.domain.attribution.grading.grade@3",
    "evidence written and not committed": "service.store.corpus.evidence.revise@2",
    "noted as graded and not committed": "service.store.validator.gradings.mark_graded@4",
}
EVERY_TIME = {
    "lines written and not committed",
    "position moved and not committed",
    "evidence written and not committed",
}


@pytest.fixture(scope="module")
def files(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Three runs beside us, and the proxy's log."""
    recording, folder = read_archive(archive), tmp_path_factory.mktemp("validator")
    runs = sorted(side.legacy_runs(recording), key=lambda run: -len(side.requests(run)))[:2]
    for run in runs:
        side.write_run(folder / "logs", run)
    episodes = side.envpack_runs(recording)[0]
    side.write_episodes(folder / "logs", episodes)
    side.write_access_log(folder / "access.log", runs)
    return {"validator_logs": folder / "logs", "proxy_log": folder / "access.log", "runs": [*runs, episodes]}


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "FLOOR_SECONDS", 0.2)
    monkeypatch.setattr(watch, "GRADE_SECONDS", 0.1)


@contextmanager
def watched(url: str, redis_url: str, files: dict[str, Any], folder: Path) -> Iterator[Context]:
    settings = Settings(
        source_url="http://127.0.0.1:9",
        data_dir=folder,
        validator_logs=files["validator_logs"],
        proxy_log=files["proxy_log"],
    )
    context = open_context(settings, url, redis_url)
    yield context
    context.engine.dispose()


def settle(context: Context) -> None:
    """Watch until everything is read and graded."""
    with ThreadPoolExecutor() as threads:
        loop = threads.submit(watch.follow, context)
        deadline = time.monotonic() + 20
        while not _settled(context):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        context.stopping.set()
        loop.result(timeout=5)


def _settled(context: Context) -> bool:
    with reading(context.engine) as session:
        positions = session.scalars(select(TailPosition.source)).all()
        return len(positions) == 4 and gradings.waiting(session) == 0 and gradings.due(session, 1) == []


def outcome(context: Context) -> dict[str, Any]:
    """Everything that must not depend on what happened on the way."""
    line = (LocalEnvelope.eval_run_id, LocalEnvelope.problem_id, LocalEnvelope.ordinal, LocalEnvelope.last_ordinal)
    with reading(context.engine) as session:
        items = {
            number: (run, key)
            for number, run, key in session.execute(
                select(Trajectory.trajectory_id, Trajectory.eval_run_id, Trajectory.item_key)
            )
        }
        states = session.scalars(select(Evidence.trajectory_id)).all()
        return {
            "envelopes": sorted(map(tuple, session.execute(select(*line, LocalEnvelope.line_sha256)))),
            "witnesses": sorted(map(tuple, session.execute(select(WitnessLine.line_sha256, WitnessLine.path)))),
            "positions": sorted(map(tuple, session.execute(select(TailPosition.path, TailPosition.offset_bytes)))),
            "gradings": sorted(items[number] for number in session.scalars(select(LocalGrading.trajectory_id))),
            "evidence": {
                items[number]: found.digest for number, found in evidence.latest(session, list(items)).items()
            },
            "states": sorted(items[number] for number in states),
        }


@pytest.fixture(scope="module")
def undisturbed(
    new_database: Callable[[], AbstractContextManager[str]],
    services: embedded.Services,
    files: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Any]:
    with (
        new_database() as url,
        watched(url, services.redis_url, files, tmp_path_factory.mktemp("undisturbed")) as context,
    ):
        for run in files["runs"]:
            side.release(context.engine, run)
        settle(context)
        return outcome(context)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, id=name, marks=() if name in EVERY_TIME else pytest.mark.nightly)
        for name, fault in FAULTS.items()
    ],
)
def test_a_killed_watcher_loses_and_doubles_nothing(
    fault: str, database_url: str, redis_url: str, files: dict[str, Any], undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    with watched(database_url, redis_url, files, tmp_path) as context:
        for run in files["runs"]:
            side.release(context.engine, run)
        environment = {**context.settings.environment(), "PYTHONPATH": str(Path(__file__).parents[2])}
        environment |= {"SLUICE_DATABASE_URL": database_url, "SLUICE_REDIS_URL": redis_url}
        doomed = subprocess.Popen([sys.executable, str(PROCESS), fault], env={**os.environ, **environment})
        assert doomed.wait(timeout=60) == -signal.SIGKILL
        assert outcome(context) != undisturbed
        settle(context)
        assert outcome(context) == undisturbed


def test_the_undisturbed_watcher_is_worth_comparing_with(undisturbed: dict[str, Any]) -> None:
    assert len(undisturbed["envelopes"]) > 20
    assert len(undisturbed["witnesses"]) > 100
    assert len(undisturbed["states"]) == 2 * len(undisturbed["gradings"])  # each item's first evidence, and the graded
