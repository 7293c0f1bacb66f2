"""One user of the embedded servers: join those that run, or have them started; leave. Runs no server itself.

Every user holds a shared lock on the folder while it uses the servers. They run as long as one user is left, whoever
came first: `sluice stats` may start them, `sluice up` join, and `stats` leave again.
"""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, NoReturn

import msgspec

from service.embedded import postgres, valkey
from service.embedded.folder import (
    Folder,
    StartReport,
    State,
    open_folder,
    open_lock,
    try_lock,
    wait_for_lock,
)
from service.errors import ErrorCode, SluiceError

START_TIMEOUT_SECONDS = 180.0
"""More than a start over a crashed folder takes; whoever waits longer is told who is in the way."""
JOIN_TIMEOUT_SECONDS = 60.0
"""Patience with servers that run and do not answer: one may be recovering from a crash."""
LEAVE_TIMEOUT_SECONDS = 90.0
POLL_SECONDS = 0.02


class Services(NamedTuple):
    """Where the servers are, for as long as the context is open."""

    database_url: str
    redis_url: str


@contextmanager
def start(data_dir: Path) -> Iterator[Services]:
    """The private Postgres and Valkey of a data folder, shared with every other user of that folder on this machine."""
    folder = open_folder(data_dir)
    users = open_lock(folder.users_lock)
    try:
        with _gate(folder):
            if not wait_for_lock(users, fcntl.LOCK_SH, START_TIMEOUT_SECONDS):
                _refuse(folder)
            state = _join_or_launch(folder)
        yield Services(state.database_url, state.redis_url)
    finally:
        _leave(folder, users)


@contextmanager
def _gate(folder: Folder) -> Iterator[None]:
    gate = open_lock(folder.gate_lock)
    try:
        if not wait_for_lock(gate, fcntl.LOCK_EX, START_TIMEOUT_SECONDS):
            _refuse(folder)
        yield
    finally:
        os.close(gate)


def _join_or_launch(folder: Folder) -> State:
    deadline = time.monotonic() + JOIN_TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        lock = open_lock(folder.supervisor_lock)
        try:
            if try_lock(lock, fcntl.LOCK_EX):
                _launch(folder, lock)
        finally:
            os.close(lock)
        state = folder.read_state()
        if state and postgres.answers(state.database_url) and valkey.answers(state.redis_url):
            return state
        time.sleep(POLL_SECONDS)
    _refuse(folder)


def _launch(folder: Folder, lock: int) -> None:
    """Start the supervisor, which inherits the lock, and wait for its report."""
    reader, writer = os.pipe()
    with open(reader, "rb") as reports, folder.log("supervisor").open("ab") as output:
        try:
            subprocess.Popen(
                [sys.executable, "-m", "service.embedded.supervisor", str(folder.root), str(lock), str(writer)],
                cwd=Path(__file__).parents[2],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=(lock, writer),
                start_new_session=True,
            )
        finally:
            os.close(writer)
        answer = reports.read()
    if not answer:
        log = folder.log("supervisor")
        raise SluiceError(ErrorCode.SERVICE_UNAVAILABLE, f"the embedded servers do not start; see {log}", log=str(log))
    report = msgspec.json.decode(answer, type=StartReport)
    if report.error_code is not None:
        raise SluiceError(report.error_code, report.message)


def _leave(folder: Folder, users: int) -> None:
    """Give up the shared lock; the last user waits until the servers are gone."""
    is_last = try_lock(users, fcntl.LOCK_EX)
    # A failed change drops the lock. Then either other users are left, and it can be shared with them again,
    # or the supervisor has just taken it to stop.
    is_stopping = not is_last and not try_lock(users, fcntl.LOCK_SH)
    os.close(users)
    if not (is_last or is_stopping):
        return
    lock = open_lock(folder.supervisor_lock)
    try:
        wait_for_lock(lock, fcntl.LOCK_SH, LEAVE_TIMEOUT_SECONDS)
    finally:
        os.close(lock)


def _refuse(folder: Folder) -> NoReturn:
    state = folder.read_state()
    pid = state.supervisor_pid if state else None
    raise SluiceError(
        ErrorCode.DATA_DIR_IN_USE,
        f"the servers of {folder.root.parent} are held by process {pid or 'unknown'} and cannot be reached from here",
        pid=pid,
    )
