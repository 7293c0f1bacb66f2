"""PostgreSQL 15 and Redis 7 as the system's packages bring them, started by hand on loopback ports, with passwords."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

POSTGRES_PROGRAMS = Path("/usr/lib/postgresql/15/bin")
PASSWORD = "of-this-test"
START_SECONDS = 30.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def debian_postgres_url() -> Iterator[str]:
    """The URL an operator would give: a role that owns its database and is no superuser."""
    folder, account = make_folder(), server_account()
    (folder / "password").write_text(PASSWORD)
    (folder / "password").chmod(0o644)
    initdb = [POSTGRES_PROGRAMS / "initdb", "-D", folder / "data", "-U", "admin", f"--pwfile={folder / 'password'}"]
    subprocess.run([*initdb, "--auth=scram-sha-256", "--no-sync"], check=True, stdout=subprocess.DEVNULL, **account)
    port = free_port()
    server = [POSTGRES_PROGRAMS / "postgres", "-D", folder / "data", "-k", folder, "-p", str(port)]
    process = subprocess.Popen(server, **account, stderr=subprocess.DEVNULL)
    with connect_when_ready(f"postgresql://admin:{PASSWORD}@127.0.0.1:{port}/postgres") as connection:
        connection.execute(f"CREATE ROLE sluice LOGIN PASSWORD '{PASSWORD}'")
        connection.execute("CREATE DATABASE sluice OWNER sluice")
    yield f"postgresql://sluice:{PASSWORD}@127.0.0.1:{port}/sluice"
    process.send_signal(signal.SIGINT)
    process.wait()
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def debian_redis_url() -> Iterator[str]:
    folder, port = make_folder(), free_port()
    server = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--requirepass", PASSWORD, "--save", ""]
    process = subprocess.Popen(server, cwd=folder, stdout=subprocess.DEVNULL)
    url = f"redis://:{PASSWORD}@127.0.0.1:{port}/1"
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with redis.Redis.from_url(url) as client:
                client.ping()
            break
        except redis.ConnectionError:
            assert time.monotonic() < deadline, "Redis does not start"
            time.sleep(0.05)
    yield url
    process.terminate()
    process.wait()
    shutil.rmtree(folder)


def server_account() -> dict[str, Any]:
    """Arguments that make a process the `postgres` account's where root runs the tests."""
    if os.geteuid() != 0:
        return {}
    entry = pwd.getpwnam("postgres")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": [], "cwd": "/"}


def make_folder() -> Path:
    """A short path, because of the socket."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-external-", dir="/tmp"))
    if account := server_account():
        os.chown(folder, account["user"], account["group"])
    return folder


def connect_when_ready(url: str) -> psycopg.Connection:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            return psycopg.connect(url, autocommit=True)
        except psycopg.OperationalError:
            assert time.monotonic() < deadline, "Postgres does not start"
            time.sleep(0.05)
