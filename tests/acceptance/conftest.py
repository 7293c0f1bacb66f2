"""Whole harvests: of the recorded runs, and of the generated races."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from service.embedded import Services
from service.replay.server import replaying
from tests.workers.harness import Pipeline, pipeline


@pytest.fixture(scope="session")
def recorded(
    new_database: Callable[[], AbstractContextManager[str]],
    services: Services,
    shared_data: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Pipeline]:
    """The recorded runs, harvested once."""
    folder = tmp_path_factory.mktemp("recorded")
    with (
        new_database() as url,
        replaying(shared_data / "runs") as server,
        pipeline(url, services.redis_url, server.url, folder) as opened,
    ):
        opened.run(seconds=300)
        yield opened
