"""With URLs given, Sluice uses those servers and starts none."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
import redis
from alembic import command

from service.store.engine import open_engine
from service.store.migrate import alembic_config, is_current, upgrade

pytestmark = pytest.mark.external


def test_migrations_need_no_superuser_and_nothing_newer_than_postgres_15(debian_postgres_url: str) -> None:
    engine = open_engine(debian_postgres_url)
    upgrade(engine)
    assert is_current(engine)
    with engine.connect() as connection:
        assert connection.dialect.server_version_info[0] == 15  # type: ignore[index]
        config = alembic_config()
        config.attributes["connection"] = connection
        command.check(config)
    engine.dispose()


def test_the_demo_runs_on_the_given_servers(debian_postgres_url: str, debian_redis_url: str, tmp_path: Path) -> None:
    environment = dict(os.environ, SLUICE_DATABASE_URL=debian_postgres_url, SLUICE_REDIS_URL=debian_redis_url)
    sluice = Path(sys.executable).with_name("sluice")
    arguments = ["demo", "--once", "--json", "--data-dir", str(tmp_path / "data")]
    answer = subprocess.run([sluice, *arguments], env=environment, stdout=subprocess.PIPE, check=True, timeout=600)
    summary = json.loads(answer.stdout)
    with psycopg.connect(debian_postgres_url) as connection:
        stored = connection.execute("SELECT count(*) FROM trajectories").fetchone()
    assert stored == (summary["trajectories"],)
    assert summary["trajectories"] > 0
    with redis.Redis.from_url(debian_redis_url) as client:
        assert client.info("server")["redis_version"].startswith("7.")
        assert client.dbsize() > 0  # the queue was here
    assert not (tmp_path / "data" / "embedded").exists()
