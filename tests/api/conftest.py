"""The service over a filled database, asked in process."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
from sqlalchemy import Engine
from starlette.testclient import TestClient

from service import embedded
from service.api import create_app
from service.config import Settings
from service.store.engine import open_engine
from tests.api import corpus
from tests.conftest import MIGRATED

NAME = "test_api"


class Service(NamedTuple):
    """What the tests of one module share; they only read."""

    engine: Engine
    settings: Settings
    snapshot_id: str


@pytest.fixture(scope="module")
def service(
    services: embedded.Services, administration: psycopg.Connection, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    administration.execute(f"CREATE DATABASE {NAME} TEMPLATE {MIGRATED}")
    url = services.database_url.replace("/sluice?", f"/{NAME}?")
    data_dir: Path = tmp_path_factory.mktemp("data")
    settings = Settings(data_dir=data_dir, database_url=url, redis_url=services.redis_url)
    engine = open_engine(url)
    yield Service(engine, settings, corpus.fill(engine, settings.snapshot_dir))
    engine.dispose()
    administration.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


@pytest.fixture
def client(service: Service) -> TestClient:
    return TestClient(create_app(service.engine, service.settings), raise_server_exceptions=False)
