"""Data folders, users of their servers as real processes, and the proof that nothing is left behind."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from service import embedded
from service.embedded.folder import Folder
from service.embedded.process import processes_in

REPOSITORY = Path(__file__).parents[2]
USER_PROGRAM = Path(__file__).with_name("user_of_servers.py")


def connect(urls: embedded.Services) -> psycopg.Connection:
    return psycopg.connect(urls.database_url.replace("+psycopg", ""), autocommit=True)


def until(condition: Callable[[], object], timeout_seconds: float = 60.0) -> None:
    """Wait for something that happens in another process."""
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


@dataclass
class DataDir:
    """A data folder under test."""

    path: Path
    users: list["User"] = field(default_factory=list)

    @property
    def folder(self) -> Folder:
        return Folder(self.path.resolve() / "embedded")

    @property
    def postgres_pids(self) -> list[int]:
        return processes_in(self.folder.postgres, "postgres")

    @property
    def postmaster_pid(self) -> int:
        """0 while there is none."""
        pid_file = self.folder.postgres / "postmaster.pid"
        written = pid_file.read_text().split() if pid_file.exists() else []
        return int(written[0]) if written else 0

    @property
    def valkey_pids(self) -> list[int]:
        return processes_in(self.folder.valkey, "valkey-server")

    @property
    def server_pids(self) -> list[int]:
        return self.postgres_pids + self.valkey_pids

    @property
    def supervisor_pid(self) -> int:
        state = self.folder.read_state()
        assert state is not None
        return state.supervisor_pid

    @property
    def is_quiet(self) -> bool:
        """Whether no server runs and no supervisor: it removes its state last but for its lock."""
        return not self.server_pids and self.folder.read_state() is None

    def user(self, program: Sequence[str] = (sys.executable, str(USER_PROGRAM)), **popen: Any) -> "User":
        """Start a process that uses the servers; `popen` may change its account or environment."""
        popen.setdefault("env", dict(os.environ, PYTHONPATH=str(REPOSITORY)))
        process = subprocess.Popen(
            [*program, str(self.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **popen,
        )
        self.users.append(User(process))
        return self.users[-1]


@dataclass
class User:
    """One process that uses the servers."""

    process: subprocess.Popen[str]

    def urls(self) -> embedded.Services:
        """Wait until it has them."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        return embedded.Services(**json.loads(line))

    def leave(self) -> None:
        """End it as a program ends; it may not fail."""
        _, errors = self.process.communicate("")
        assert self.process.returncode == 0, errors


@pytest.fixture(scope="session")
def used_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stopped data folder with one row in it, to copy: making one is the slow part of a first start."""
    path = tmp_path_factory.mktemp("used") / "data"
    with embedded.start(path) as urls, connect(urls) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 15 AS netuid")
    return path


@pytest.fixture
def new_dir(tmp_path: Path) -> Iterator[DataDir]:
    """A data folder that does not exist yet; afterwards nothing of it may run."""
    data_dir = DataDir(tmp_path / "data")
    yield data_dir
    for user in data_dir.users:
        user.process.kill()
        user.process.communicate()
    until(lambda: data_dir.is_quiet)


@pytest.fixture
def used_dir(new_dir: DataDir, used_folder: Path) -> DataDir:
    """A stopped data folder that was used before."""
    subprocess.run(["cp", "-a", used_folder, new_dir.path], check=True)
    return new_dir
