"""The private Postgres: make its data folder, start it over what a crash left, stop it. Knows no table of Sluice's."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import psycopg

from service.embedded import process
from service.embedded.account import Account, Programs, check_owner
from service.errors import ErrorCode, SluiceError

DATABASE = "sluice"
ROLE = "sluice"
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "work_mem": "16MB",
    "maintenance_work_mem": "64MB",
    "max_wal_size": "1GB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "log_checkpoints": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
"""For a small machine shared with a validator. Durability keeps its defaults: fsync and synchronous commit are on."""

START_SECONDS = 120.0
"""Patience with crash recovery."""
RETRY_SECONDS = 30.0
"""How long processes that lost their postmaster may take to let go of its shared memory."""
RETRY_PAUSE_SECONDS = 0.2
STILL_ATTACHED = "pre-existing shared memory block"
FAST_SHUTDOWN, IMMEDIATE_SHUTDOWN = signal.SIGINT, signal.SIGQUIT
STOP_STEPS = ((FAST_SHUTDOWN, 60.0), (IMMEDIATE_SHUTDOWN, 10.0), (signal.SIGKILL, 5.0))
ORPHAN_STEPS = ((IMMEDIATE_SHUTDOWN, 5.0), (signal.SIGKILL, 5.0))


class Postgres:
    """One server over one data folder; the caller holds the lock that makes it the only one."""

    def __init__(self, data: Path, sockets: Path, log: Path, account: Account, programs: Programs) -> None:
        self._data = data
        self._sockets = sockets
        self._log = log
        self._account = account
        self._programs = programs
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where SQLAlchemy finds the database."""
        return f"postgresql+psycopg://{ROLE}@/{DATABASE}?host={self._sockets}"

    @property
    def is_running(self) -> bool:
        """Whether the process lives; it may not answer yet."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start and return once it answers and the database is there."""
        self._create()
        check_owner(self._account, self._data, (self._data, self._data / "PG_VERSION"))
        self._check_version()
        self._clear_leftovers()
        self._write_access_rules()
        self._launch_with_patience()
        self._create_database()

    def stop(self) -> None:
        """Fast shutdown: open transactions are rolled back, a checkpoint is written."""
        if self._process is not None:
            process.stop(self._process, STOP_STEPS)

    def _create(self) -> None:
        """Make the data folder beside its final name, so that a half-made one is never taken for one."""
        if self._data.exists():
            return
        draft = self._data.with_name(self._data.name + ".new")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        if self._account.is_dropped:
            os.chown(draft, self._account.uid, self._account.gid)
        with process.descriptors(draft) as (data,):
            options = [f"--username={ROLE}", "--auth=peer", "--encoding=UTF8", "--locale=C.UTF-8"]
            argv = [str(self._programs.initdb), "-D", process.inherited(data), *options]
            status = process.spawn(argv, self._account, [data], self._log, signal.SIGTERM).wait()
        if status != 0:
            tail = process.log_tail(self._log)
            raise SluiceError(ErrorCode.SERVICE_UNAVAILABLE, f"initdb failed: {tail}", log=str(self._log))
        draft.rename(self._data)

    def _check_version(self) -> None:
        written_by = (self._data / "PG_VERSION").read_text().strip()
        answer = subprocess.run([self._programs.postgres, "--version"], capture_output=True, text=True, check=True)
        version = answer.stdout.split()[-1]
        if version.split(".")[0] != written_by:
            raise SluiceError(
                ErrorCode.PREREQUISITE_MISSING,
                f"{self._data} was written by Postgres {written_by}, the installed one is {version}: "
                "dump it with the old version, or install that again",
            )

    def _clear_leftovers(self) -> None:
        """End servers of an earlier supervisor; drop a pid file whose pid is by now another program's."""
        pid_file = self._data / "postmaster.pid"
        recorded = _first_line_number(pid_file)

        def orphans() -> list[int]:
            return process.processes_in(self._data, "postgres")

        if recorded in orphans():
            process.end(lambda: [pid for pid in orphans() if pid == recorded], STOP_STEPS)
        process.end(orphans, ORPHAN_STEPS)
        pid_file.unlink(missing_ok=True)

    def _write_access_rules(self) -> None:
        """Only the owner's account and root may connect, whatever the modes of the folders above the socket."""
        rules = {
            "pg_hba.conf": "local all all peer map=owner\n",
            "pg_ident.conf": "".join(f'owner "{name}" {ROLE}\n' for name in sorted({"root", self._account.owner_name})),
        }
        for name, text in rules.items():
            path = self._data / name
            path.unlink(missing_ok=True)
            # The folder is the server's: root writes a new file there, never through a link left for it.
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with open(descriptor, "w") as file:
                os.fchown(descriptor, self._account.uid, self._account.gid)
                file.write(text)

    def _launch_with_patience(self) -> None:
        deadline = time.monotonic() + RETRY_SECONDS
        known_bytes = process.log_size(self._log)
        while not self._launch():
            tail = process.log_tail(self._log, known_bytes)
            if STILL_ATTACHED not in tail or time.monotonic() > deadline:
                raise SluiceError(ErrorCode.SERVICE_UNAVAILABLE, f"Postgres does not start: {tail}", log=str(self._log))
            known_bytes = process.log_size(self._log)
            time.sleep(RETRY_PAUSE_SECONDS)

    def _launch(self) -> bool:
        """Start the process; False if it ends before it answers."""
        with process.descriptors(self._data, self._sockets) as (data, sockets):
            argv = [str(self._programs.postgres), "-D", process.inherited(data), "-k", process.inherited(sockets)]
            for name, value in SETTINGS.items():
                argv += ["-c", f"{name}={value}"]
            self._process = process.spawn(argv, self._account, [data, sockets], self._log, FAST_SHUTDOWN)
        deadline = time.monotonic() + START_SECONDS
        while self.is_running:
            if answers(self.url, database="postgres"):
                return True
            if time.monotonic() > deadline:
                self.stop()
                raise SluiceError(
                    ErrorCode.SERVICE_UNAVAILABLE,
                    f"Postgres does not answer after {START_SECONDS:.0f} s",
                    log=str(self._log),
                )
            time.sleep(process.POLL_SECONDS)
        return False

    def _create_database(self) -> None:
        with psycopg.connect(_conninfo(self.url, "postgres"), autocommit=True) as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
            if found is None:
                connection.execute(f"CREATE DATABASE {DATABASE}")


def answers(url: str, database: str = DATABASE) -> bool:
    """Whether the server at `url` takes a connection now."""
    try:
        psycopg.connect(_conninfo(url, database), connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def _conninfo(url: str, database: str) -> str:
    return url.replace("postgresql+psycopg:", "postgresql:").replace(f"/{DATABASE}?", f"/{database}?")


def _first_line_number(path: Path) -> int | None:
    try:
        return int(path.read_text().split("\n", 1)[0])
    except (FileNotFoundError, ValueError):
        return None
