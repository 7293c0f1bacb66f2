"""The process that owns both servers: starts them, restarts one that dies, stops them when no user is left.

It serves nobody itself and runs apart from its users (`session` starts it as a module), so that no user's end, however
rude, can take the servers from the others or leave them behind: users hold a shared lock that the kernel drops with
them, and the servers die with this process.
"""

import fcntl
import logging
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Protocol

import msgspec

from service.embedded import process
from service.embedded.account import TEMPORARY_PREFIX, Account, locate_programs, make_temporary, server_account
from service.embedded.folder import Folder, StartReport, State, open_lock, try_lock
from service.embedded.postgres import Postgres
from service.embedded.valkey import Valkey
from service.errors import ErrorCode, SluiceError

SOCKET_PATH_BYTES = 107
PLAIN_PATH = re.compile(r"[A-Za-z0-9/._-]+")
"""What the URLs of both servers can name without a client that reads something else into it."""
LONGEST_SOCKET_NAME = ".s.PGSQL.5432"
WATCH_SECONDS = 0.05
RESTARTS_IN_A_ROW = 5
STEADY_SECONDS = 60.0
"""A server that has run this long has recovered: earlier restarts no longer count."""

log = logging.getLogger("sluice.embedded")


class Server(Protocol):
    """What the supervisor asks of a server."""

    @property
    def is_running(self) -> bool: ...  # noqa: D102
    def start(self) -> None: ...  # noqa: D102
    def stop(self) -> None: ...  # noqa: D102


class StopRequest:
    """Remembers that SIGINT or SIGTERM came; the watch loop looks at it between steps."""

    def __init__(self) -> None:
        self.came = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._remember)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self.came = True


@contextmanager
def temporary(folder: Path | None) -> Iterator[None]:
    """Keep cleaners of /tmp away from a folder, which they leave alone while it is locked; remove it in the end."""
    if folder is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)
        shutil.rmtree(folder, ignore_errors=True)


def can_name_sockets(sockets: Path) -> bool:
    """Whether sockets in this folder can be reached by their path."""
    longest = os.fsencode(sockets / LONGEST_SOCKET_NAME)
    return len(longest) <= SOCKET_PATH_BYTES and PLAIN_PATH.fullmatch(str(sockets)) is not None


def make_sockets(folder: Folder, account: Account, short: Path | None) -> Path:
    """An empty folder of sockets, the servers' own within one that only the starting account can enter."""
    sockets = short / "sockets" if short else folder.sockets
    shutil.rmtree(sockets, ignore_errors=True)
    sockets.mkdir(mode=0o700)
    os.chown(sockets, account.uid, account.gid)
    return sockets


def start_servers(folder: Folder, stack: ExitStack) -> tuple[Server, ...]:
    """Start both servers; `stack` then knows how to stop them and what to remove."""
    remove_leftovers(folder)
    account = server_account()
    programs = locate_programs(account)
    stack.enter_context(temporary(programs.copy))
    short = None if can_name_sockets(folder.sockets) else make_temporary(mode=0o700)
    stack.enter_context(temporary(short))
    sockets = make_sockets(folder, account, short)
    postgres = Postgres(folder.postgres, sockets, folder.log("postgres"), account, programs)
    valkey = Valkey(folder.valkey, sockets, folder.log("valkey"), account, programs)
    state = State(
        supervisor_pid=os.getpid(),
        temporary_dirs=tuple(str(made) for made in (short, programs.copy) if made),
        database_url=postgres.url,
        redis_url=valkey.url,
    )
    stack.callback(folder.write_state, None)
    folder.write_state(state)
    for server in (postgres, valkey):
        stack.callback(server.stop)
        server.start()
    return postgres, valkey


def watch(folder: Folder, servers: tuple[Server, ...], stop: StopRequest) -> None:
    """Restart what dies, until the last user has left or a signal asks to stop."""
    users = open_lock(folder.users_lock)  # once taken it is held to the end of the process: who comes then must wait
    restarts, last_restart = 0, time.monotonic()
    while not stop.came and not try_lock(users, fcntl.LOCK_EX):
        for server in servers:
            if server.is_running:
                continue
            now = time.monotonic()
            restarts = 1 if now - last_restart > STEADY_SECONDS else restarts + 1
            last_restart = now
            if restarts > RESTARTS_IN_A_ROW:
                raise SluiceError(ErrorCode.SERVICE_UNAVAILABLE, "a server keeps dying; giving up")
            log.warning("%s died; starting it again", type(server).__name__)
            server.start()
        time.sleep(WATCH_SECONDS)


def remove_leftovers(folder: Folder) -> None:
    """Remove the temporary folders of a supervisor that could not do it itself."""
    state = folder.read_state()
    if state is None:
        return
    for name in state.temporary_dirs:
        if Path(name).name.startswith(TEMPORARY_PREFIX):
            shutil.rmtree(name, ignore_errors=True)
    folder.write_state(None)


def send(descriptor: int, report: StartReport) -> None:
    """Answer the starter, who may be gone."""
    try:
        os.write(descriptor, msgspec.json.encode(report))
    except BrokenPipeError:
        log.warning("whoever started this is gone")
    os.close(descriptor)


def main() -> int:
    """Arguments: the folder, the descriptor of its supervisor lock (held already), the descriptor to report to."""
    folder, report = Folder(Path(sys.argv[1])), int(sys.argv[3])
    stop = StopRequest()
    os.chdir("/")
    os.umask(0o077)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    for name in ("postgres", "valkey"):
        process.rotate(folder.log(name))
    with ExitStack() as stack:
        try:
            servers = start_servers(folder, stack)
        except SluiceError as error:
            log.error("%s", error)
            send(report, StartReport(error_code=error.code, message=error.message))
            return 1
        except OSError as error:  # a full disk, or a container in which root may not change accounts
            log.exception("the servers do not start")
            send(report, StartReport(error_code=ErrorCode.SERVICE_UNAVAILABLE, message=str(error)))
            return 1
        send(report, StartReport())
        watch(folder, servers, stop)
    return 0


if __name__ == "__main__":
    sys.exit(main())
