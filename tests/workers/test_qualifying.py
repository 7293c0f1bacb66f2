"""Qualifying: what is public at once is harvested at once, episodes of generated environments included."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from service.config import Settings
from service.replay.recorded import QUALIFYING
from service.replay.server import Replay, replaying
from service.store.engine import reading
from service.store.models import EvaluationRun, LedgerItem, Trajectory
from tests.replay.recording import EPISODES, write_recording
from workers.context import Context, open_context
from workers.stages import ingest
from workers.subscribe import walk


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[Replay]:
    with replaying(write_recording(tmp_path / "recording")) as server:
        yield server


@pytest.fixture
def context(database_url: str, redis_url: str, replay: Replay, tmp_path: Path) -> Iterator[Context]:
    opened = open_context(Settings(source_url=replay.url, data_dir=tmp_path), database_url, redis_url)
    yield opened
    opened.engine.dispose()


def test_every_item_of_qualifying_is_stored_while_a_race_runs(context: Context, replay: Replay) -> None:
    walk(context)
    with reading(context.engine) as session:
        runs = session.scalars(select(EvaluationRun).where(EvaluationRun.race_id.is_(None), EvaluationRun.counts)).all()
        of_runs = select(LedgerItem.ledger_id).where(LedgerItem.eval_run_id.in_([run.eval_run_id for run in runs]))
        ids = session.scalars(of_runs).all()
    ingest.run(ids, context, "message")
    recorded = [run for run in replay.archive.runs.values() if run.phase == QUALIFYING]
    assert {run.eval_run_id for run in runs} == {run.eval_run_id for run in recorded}
    with reading(context.engine) as session:
        stored = session.scalars(select(Trajectory)).all()
        episodes = [trajectory for trajectory in stored if trajectory.kind == "envpack"]
    assert len(stored) == len(ids) == sum(len(run.items) for run in recorded)
    assert len(episodes) == EPISODES
