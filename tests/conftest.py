"""What every test may ask for: the recorded runs, where they are, and a real Postgres and Valkey."""

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psycopg
import pytest
import redis

from service import embedded
from service.store.engine import open_engine
from service.store.migrate import upgrade

MIGRATED = "migrated"
"""Database with the newest schema and no rows, which every test's own database is copied from."""

SHARED = Path(os.environ.get("SLUICE_SHARED", Path(__file__).resolve().parents[2] / "shared"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of the recorded runs exist only where the runs are: every one has a twin on generated data."""
    if (SHARED / "data" / "runs").is_dir():
        return
    absent = [item for item in items if item.get_closest_marker("shared")]
    items[:] = [item for item in items if item not in absent]
    config.hook.pytest_deselected(items=absent)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the recorded runs, the public benchmark and the catalogue."""
    return SHARED / "data"


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[embedded.Services]:
    """Postgres and Valkey for the whole session."""
    with embedded.start(tmp_path_factory.mktemp("services")) as urls:
        yield urls


@pytest.fixture(scope="session")
def administration(services: embedded.Services) -> Iterator[psycopg.Connection]:
    """A connection that makes and drops databases; the migrated one exists once it is open."""
    with psycopg.connect(services.database_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")  # these databases need not survive this machine
        connection.execute("SELECT pg_reload_conf()")
        connection.execute(f"CREATE DATABASE {MIGRATED}")
        engine = open_engine(services.database_url.replace("/sluice?", f"/{MIGRATED}?"))
        upgrade(engine)
        engine.dispose()
        yield connection


@pytest.fixture(scope="session")
def new_database(
    services: embedded.Services, administration: psycopg.Connection
) -> Callable[[], AbstractContextManager[str]]:
    """Makes migrated, empty databases, each dropped when its block ends."""

    @contextmanager
    def make() -> Iterator[str]:
        name = f"test_{uuid.uuid4().hex}"
        administration.execute(f"CREATE DATABASE {name} TEMPLATE {MIGRATED}")
        yield services.database_url.replace("/sluice?", f"/{name}?")
        administration.execute(f"DROP DATABASE {name} WITH (FORCE)")

    return make


@pytest.fixture
def database_url(new_database: Callable[[], AbstractContextManager[str]]) -> Iterator[str]:
    """A migrated, empty database of the test's own."""
    with new_database() as url:
        yield url


@pytest.fixture
def redis_url(services: embedded.Services) -> str:
    """The session's Valkey, emptied."""
    with redis.Redis.from_url(services.redis_url) as client:
        client.flushall()
    return services.redis_url
