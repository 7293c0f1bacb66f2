"""The folder of the embedded servers: where each thing lies, and the locks that say who uses it. Starts nothing."""

import fcntl
import os
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from service.errors import ErrorCode, SluiceError

LOCK_POLL_SECONDS = 0.02


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What a running supervisor tells those who join it."""

    supervisor_pid: int
    temporary_dirs: tuple[str, ...]
    """Folders outside this one that the next supervisor removes if this one cannot."""
    database_url: str
    redis_url: str


class StartReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a supervisor answers to the process that started it: nothing went wrong, or what did."""

    error_code: ErrorCode | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Folder:
    """Paths below `<data folder>/embedded`."""

    root: Path

    @property
    def gate_lock(self) -> Path:
        """Held for the length of one start: starts happen one after the other."""
        return self.root / "gate.lock"

    @property
    def users_lock(self) -> Path:
        """Held shared by every user of the servers; the supervisor takes it alone once no user is left."""
        return self.root / "users.lock"

    @property
    def supervisor_lock(self) -> Path:
        """Held by the supervisor as long as it lives."""
        return self.root / "supervisor.lock"

    @property
    def postgres(self) -> Path:
        """Postgres' data folder."""
        return self.root / "postgres"

    @property
    def valkey(self) -> Path:
        """Valkey's data folder: its append-only file."""
        return self.root / "valkey"

    @property
    def sockets(self) -> Path:
        """Where the sockets are, if a path like this can name one."""
        return self.root / "sockets"

    def log(self, name: str) -> Path:
        """Log file of one process."""
        return self.root / "log" / f"{name}.log"

    def read_state(self) -> State | None:
        """What the supervisor wrote last; it may be dead by now."""
        try:
            return msgspec.json.decode((self.root / "state.json").read_bytes(), type=State)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def write_state(self, state: State | None) -> None:
        """Replace what those who join will read."""
        target = self.root / "state.json"
        if state is None:
            target.unlink(missing_ok=True)
            return
        draft = target.with_suffix(".new")
        draft.write_bytes(msgspec.json.encode(state))
        draft.replace(target)


def open_folder(data_dir: Path) -> Folder:
    """Make the folder, closed to everyone but its owner, or refuse one that is somebody else's."""
    folder = Folder(data_dir.resolve() / "embedded")
    try:
        folder.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner_uid = folder.root.stat().st_uid
        if owner_uid == os.geteuid():
            folder.root.chmod(0o700)
            folder.log("any").parent.mkdir(mode=0o700, exist_ok=True)
            return folder
    except PermissionError as error:
        raise SluiceError(
            ErrorCode.BAD_INPUT, f"the data folder {data_dir} cannot be used by this account: {error.strerror}"
        ) from error
    raise SluiceError(
        ErrorCode.BAD_INPUT,
        f"the data folder {data_dir} belongs to uid {owner_uid}; run as that account or choose another folder",
        owner_uid=owner_uid,
    )


def open_lock(path: Path) -> int:
    """A descriptor to lock; not inherited by programs that this process starts."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_lock(descriptor: int, operation: int) -> bool:
    """Take or change a lock if that is possible at once. A failed change gives up the lock held before."""
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for_lock(descriptor: int, operation: int, timeout_seconds: float) -> bool:
    """`try_lock` until it succeeds or the time is up."""
    deadline = time.monotonic() + timeout_seconds
    while not try_lock(descriptor, operation):
        if time.monotonic() > deadline:
            return False
        time.sleep(LOCK_POLL_SECONDS)
    return True
