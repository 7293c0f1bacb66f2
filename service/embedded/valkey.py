"""The private Valkey: start it over whatever a crash left, stop it. Knows nothing of queues or messages."""

import os
import signal
import subprocess
import time
from pathlib import Path

import redis

from service.embedded import process
from service.embedded.account import Account, Programs, check_owner
from service.errors import ErrorCode, SluiceError

SOCKET = "valkey.sock"
SETTINGS = {
    "port": "0",
    "unixsocketperm": "700",
    "appendonly": "yes",
    "appendfsync": "everysec",
    "save": "",
    "maxmemory-policy": "noeviction",
    "daemonize": "no",
}
"""A crash may lose the last second of messages; the stages' backlog queries send those again."""

START_SECONDS = 60.0
STOP_STEPS = ((signal.SIGTERM, 15.0), (signal.SIGKILL, 5.0))


class Valkey:
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
        """Where redis-py finds the server."""
        return f"unix://{self._sockets / SOCKET}"

    @property
    def is_running(self) -> bool:
        """Whether the process lives; it may not answer yet."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start and return once it answers."""
        self._data.mkdir(mode=0o700, exist_ok=True)
        os.chown(self._data, self._account.uid, self._account.gid)
        check_owner(self._account, self._data, self._data.rglob("*"))
        process.end(lambda: process.processes_in(self._data, self._programs.valkey.name), STOP_STEPS)
        with process.descriptors(self._data, self._sockets) as (data, sockets):
            argv = [str(self._programs.valkey), "--dir", process.inherited(data)]
            argv += ["--unixsocket", f"{process.inherited(sockets)}/{SOCKET}"]
            for name, value in SETTINGS.items():
                argv += [f"--{name}", value]
            self._process = process.spawn(argv, self._account, [data, sockets], self._log, signal.SIGTERM)
        deadline = time.monotonic() + START_SECONDS
        while not answers(self.url):
            if not self.is_running or time.monotonic() > deadline:
                self.stop()
                tail = process.log_tail(self._log)
                raise SluiceError(ErrorCode.SERVICE_UNAVAILABLE, f"Valkey does not start: {tail}", log=str(self._log))
            time.sleep(process.POLL_SECONDS)

    def stop(self) -> None:
        """Shut down with the append-only file written."""
        if self._process is not None:
            process.stop(self._process, STOP_STEPS)


def answers(url: str) -> bool:
    """Whether the server at `url` has loaded its data and answers now."""
    try:
        with redis.Redis.from_url(url, socket_timeout=5, retry=None) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False
