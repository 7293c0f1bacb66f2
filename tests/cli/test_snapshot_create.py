"""`snapshot create` with no worker, and with one that does nothing: an old snapshot is no success."""

import dramatiq
import pytest
from typer.testing import CliRunner, Result

from service.cli import asking
from service.cli.app import app
from service.cli.joined import joined
from service.config import Settings
from service.errors import SluiceError
from service.queue.broker import open_broker
from service.queue.messages import Stage
from service.store.engine import open_engine
from tests.api import corpus


@pytest.fixture
def idle_worker(redis_url: str):
    """It handles every message by doing nothing, as one does that finds the stage's lease taken."""
    broker = open_broker(redis_url)
    for stage in Stage:
        dramatiq.actor(lambda ids: None, broker=broker, actor_name=stage.value, queue_name=stage.value)
    worker = dramatiq.Worker(broker, worker_timeout=100, worker_threads=1)
    worker.start()
    yield
    worker.stop()
    broker.close()


@pytest.fixture
def create(monkeypatch: pytest.MonkeyPatch, database_url: str, tmp_path, redis_url: str):
    monkeypatch.setattr("service.cli.asking.TRIES", 2)
    monkeypatch.setattr("service.cli.asking.PAUSE_SECONDS", 0.1)
    monkeypatch.setattr("service.cli.asking.UNFETCHED_SECONDS", 1.0)
    for name, value in {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "DATA_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(f"SLUICE_{name}", value)
    return lambda: CliRunner().invoke(app, ["snapshot", "create"])


def test_without_workers_it_says_so(create):
    ran: Result = create()
    assert isinstance(ran.exception, SluiceError)
    assert "no worker has taken the request up" in ran.exception.message


@pytest.mark.usefixtures("idle_worker")
def test_an_old_snapshot_is_no_success(create, database_url: str, tmp_path):
    engine = open_engine(database_url)
    corpus.fill(engine, tmp_path)
    ran: Result = create()
    engine.dispose()
    assert ran.exit_code == 1
    assert ran.stdout == ""
    assert "still to be done are clustering" in ran.stderr


@pytest.mark.usefixtures("idle_worker")
def test_the_newest_snapshot_is_one_when_nothing_is_left_to_do(
    create, database_url: str, tmp_path, monkeypatch: pytest.MonkeyPatch
):
    engine = open_engine(database_url)
    snapshot_id = corpus.fill(engine, tmp_path)
    monkeypatch.setattr("service.cli.asking._due", lambda session: [])
    ran: Result = create()
    engine.dispose()
    assert (ran.exit_code, ran.stdout.strip()) == (0, snapshot_id)
    assert "unchanged" in ran.stderr


@pytest.mark.usefixtures("idle_worker", "create")
def test_a_newer_release_does_not_answer_a_request_of_its_own(
    database_url: str, redis_url: str, tmp_path, monkeypatch: pytest.MonkeyPatch
):
    engine = open_engine(database_url)
    corpus.fill(engine, tmp_path)
    engine.dispose()
    monkeypatch.setattr("service.cli.asking.pools.latest", lambda session: None)  # the release came after the request
    answers = iter([False, True])
    with joined(Settings(database_url=database_url, redis_url=redis_url, data_dir=tmp_path)) as at:
        assert asking.release(at, lambda session: next(answers)) == []
    assert list(answers) == []  # asked again, though a release was there
