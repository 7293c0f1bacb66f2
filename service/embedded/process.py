"""One server process: start it so that it dies with its parent, find what an earlier parent left, end it.

Knows no particular server. A server reaches its folders through inherited descriptors, named `/proc/self/fd/N`: an
account that may not pass a 0700 parent can still use a folder opened for it, and such a name is never too long.
"""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from service.embedded.account import Account
from service.errors import ErrorCode, SluiceError

PR_SET_PDEATHSIG = 1
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
"""All that a server is told: the caller's environment may hold secrets."""
POLL_SECONDS = 0.02
LOG_LIMIT_BYTES = 8 << 20
LOG_TAIL_BYTES = 4000

_prctl = ctypes.CDLL(None, use_errno=True).prctl


@contextmanager
def descriptors(*folders: Path) -> Iterator[tuple[int, ...]]:
    """The folders, opened for a process to inherit."""
    opened = [os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for folder in folders]
    try:
        yield tuple(opened)
    finally:
        for descriptor in opened:
            os.close(descriptor)


def inherited(descriptor: int) -> str:
    """Name of an inherited folder, as the process that inherits it spells it."""
    return f"/proc/self/fd/{descriptor}"


def spawn(
    argv: Sequence[str], account: Account, inherit: Sequence[int], log: Path, parent_death_signal: signal.Signals
) -> subprocess.Popen[bytes]:
    """Start a server as `account`. Call it from a single-threaded process: it runs code between fork and exec."""
    parent_pid = os.getpid()

    def die_with_parent() -> None:
        _prctl(PR_SET_PDEATHSIG, int(parent_death_signal))
        if os.getppid() != parent_pid:
            os._exit(1)

    with log.open("ab") as output:
        return subprocess.Popen(
            list(argv),
            cwd="/",
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=tuple(inherit),
            start_new_session=True,
            preexec_fn=die_with_parent,
            user=account.uid if account.is_dropped else None,
            group=account.gid if account.is_dropped else None,
            extra_groups=[] if account.is_dropped else None,
        )


def processes_in(folder: Path, program: str) -> list[int]:
    """Pids of the `program`s that work in `folder`: sure even when a pid file is stale and its pid is used again."""
    if not folder.is_dir():
        return []
    wanted = folder.stat()
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            if Path(os.readlink(f"/proc/{entry}/exe")).name.removesuffix(" (deleted)") != program:
                continue
            if os.path.samestat(os.stat(f"/proc/{entry}/cwd"), wanted):
                found.append(int(entry))
        except OSError:
            continue  # it ended, or is not ours to look at
    return found


def end(find: Callable[[], list[int]], steps: Sequence[tuple[signal.Signals, float]]) -> None:
    """End processes that are not our children: each signal in turn, with the seconds it gets to work."""
    for sent, patience_seconds in steps:
        for pid in find():
            for number in (sent, signal.SIGCONT):
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    break
        deadline = time.monotonic() + patience_seconds
        while time.monotonic() < deadline:
            if not find():
                return
            time.sleep(POLL_SECONDS)
    if left := find():
        raise SluiceError(ErrorCode.DATA_DIR_IN_USE, f"an earlier server does not end: pid {left[0]}", pids=left)


def stop(process: subprocess.Popen[bytes], steps: Sequence[tuple[signal.Signals, float]]) -> None:
    """End a child: each signal in turn, with the seconds it gets to work."""
    for sent, patience_seconds in steps:
        process.send_signal(sent)
        try:
            process.wait(patience_seconds)
        except subprocess.TimeoutExpired:
            continue
        return


def log_size(log: Path) -> int:
    """Bytes in a log by now, so that `log_tail` can leave out what is older."""
    return log.stat().st_size if log.exists() else 0


def log_tail(log: Path, since_bytes: int = 0) -> str:
    """The last lines written to a log, for an error message."""
    return log.read_bytes()[since_bytes:][-LOG_TAIL_BYTES:].decode(errors="replace").strip() if log.exists() else ""


def rotate(log: Path) -> None:
    """Put a log that has grown large aside; one former log is kept."""
    if log_size(log) > LOG_LIMIT_BYTES:
        log.replace(log.with_suffix(".log.1"))
