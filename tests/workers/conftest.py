"""A small recorded archive, served, and what an undisturbed harvest of it comes to."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from service.config import Settings
from service.embedded import Services
from service.replay.archive import read_archive
from service.replay.faults import Faults
from service.replay.server import Replay, replaying
from service.world.demo import DemoSize, write_demo
from tests.workers.harness import Pipeline, pipeline
from workers.context import Context, open_context

SMALL = DemoSize(families=120, race_problems=15, repeated=6, qualifying_problems=9, episodes=6)


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two legacy races and an envpack race, small."""
    folder = tmp_path_factory.mktemp("archive")
    write_demo(folder, size=SMALL)
    return folder


@pytest.fixture(scope="session")
def source_url(archive: Path) -> Iterator[str]:
    """The archive, served."""
    with replaying(archive) as server:
        yield server.url


@pytest.fixture
def work(database_url: str, redis_url: str, source_url: str, tmp_path: Path) -> Iterator[Pipeline]:
    """A pipeline of the test's own over the archive."""
    with pipeline(database_url, redis_url, source_url, tmp_path) as opened:
        yield opened


@pytest.fixture(scope="session")
def undisturbed(
    new_database: Callable[[], AbstractContextManager[str]],
    services: Services,
    source_url: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Any]:
    """The outcome of a harvest that nothing disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with new_database() as url, pipeline(url, services.redis_url, source_url, folder) as opened:
        opened.run()
        return opened.outcome()


@pytest.fixture
def replay(archive: Path) -> Iterator[Replay]:
    """A replay server of the test's own, whose races and faults it may set."""
    with replaying(read_archive(archive), faults=Faults()) as server:
        yield server


@pytest.fixture
def context(database_url: str, redis_url: str, replay: Replay, tmp_path: Path) -> Iterator[Context]:
    """What handlers get, over the test's own replay server; no worker runs."""
    settings = Settings(source_url=replay.url, data_dir=tmp_path)
    opened = open_context(settings, database_url, redis_url)
    yield opened
    opened.engine.dispose()
