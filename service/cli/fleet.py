"""The worker processes that `sluice up` starts: kept running, stopped together. Knows nothing of what they do."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from service.cli.output import note
from service.config import WORKER_STOP_SECONDS, Settings
from service.errors import ErrorCode, SluiceError

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
STEADY_SECONDS = 60.0
"""A worker that ran this long was well: earlier deaths no longer count."""
DEATHS_IN_A_ROW = 6
STOP_SECONDS = 2 * WORKER_STOP_SECONDS + 5.0
"""Longer than a worker takes: so long for its handlers, as long again for its loops, and a moment to leave."""
LOG_KEPT_BYTES = 16 << 20


@dataclass(slots=True)
class _Place:
    """One worker's place in the fleet; `process` is None while it waits to be started again."""

    log: Path
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    deaths: int = 0
    start_at: float = 0.0


class Fleet:
    """Worker processes on the databases that `settings` names."""

    def __init__(self, settings: Settings) -> None:
        self._environment = settings.model_copy(update={"parent_pid": os.getpid()}).environment()
        folder = settings.data_dir / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        self._places = [_Place(folder / f"worker-{number}.log") for number in range(settings.worker_processes)]

    def tend(self) -> None:
        """Start what should run and does not; a worker that dies is started again after a growing pause.

        Raises:
            SluiceError: SERVICE_UNAVAILABLE when one keeps dying.
        """
        now = time.monotonic()
        for place in self._places:
            if place.process is not None and place.process.poll() is not None:
                self._bury(place, now)
            if place.process is None and now >= place.start_at:
                self._start(place, now)

    def _bury(self, place: _Place, now: float) -> None:
        assert place.process is not None
        place.deaths = 1 if now - place.started_at > STEADY_SECONDS else place.deaths + 1
        status = place.process.returncode
        if place.deaths >= DEATHS_IN_A_ROW:
            message = f"a worker keeps dying (exit status {status}); see {place.log}"
            raise SluiceError(ErrorCode.SERVICE_UNAVAILABLE, message, log=str(place.log))
        pause = min(FIRST_PAUSE_SECONDS * 2 ** (place.deaths - 1), LONGEST_PAUSE_SECONDS)
        note(f"a worker ended with status {status}; another starts in {pause:g} s (its log: {place.log})")
        place.process, place.start_at = None, now + pause

    def _start(self, place: _Place, now: float) -> None:
        if place.log.exists() and place.log.stat().st_size > LOG_KEPT_BYTES:
            place.log.replace(place.log.with_suffix(".log.1"))
        # Its own session: a Ctrl-C reaches this process alone, which then stops the workers in order.
        with place.log.open("ab") as output:
            place.process = subprocess.Popen(
                [sys.executable, "-m", "workers"],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        place.started_at = now

    def stop(self) -> None:
        """End all workers: ask, wait, and kill what does not listen."""
        running = [place.process for place in self._places if place.process is not None]
        for process in running:
            process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for process in running:
            try:
                process.wait(max(deadline - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def fleet(settings: Settings) -> Iterator[Fleet]:
    """Workers for as long as a block lasts."""
    with ExitStack() as stack:
        workers = Fleet(settings)
        stack.callback(workers.stop)
        workers.tend()
        yield workers
