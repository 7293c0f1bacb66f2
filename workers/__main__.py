"""One worker process: `python -m workers`, wherever Postgres and Redis can be reached; several at once are safe."""

import gc
import logging
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import FrameType

import dramatiq

from service.config import WORKER_STOP_SECONDS, Settings
from service.errors import SluiceError
from service.source.chain.node import connecting
from service.store import origin
from service.store.engine import transaction
from workers import loops, watch
from workers.context import Context, open_context
from workers.pipeline import register

YOUNG_OBJECTS = 20_000
"""The collector looks at what is new when it has become so many: a decoded listing is some thousands."""

log = logging.getLogger("workers")


def main() -> int:
    """Run until SIGINT or SIGTERM; returns the exit status."""
    settings = Settings()
    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if settings.database_url is None or settings.redis_url is None:
        sys.stderr.write("workers need SLUICE_DATABASE_URL and SLUICE_REDIS_URL; `sluice up` gives them their own\n")
        return 2
    stand_back(settings.niceness)
    try:
        if settings.subtensor:
            connecting(settings)
        watch.require(settings)
    except SluiceError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    context = open_context(settings, settings.database_url, settings.redis_url)
    with transaction(context.engine) as session:
        origin.require(session, settings.origin)
    register(context)
    keep_what_stays()
    _stop_on_signals(context)
    worker = dramatiq.Worker(context.broker, worker_threads=settings.worker_threads)
    worker.start()
    with ThreadPoolExecutor(thread_name_prefix="loop") as threads:
        running = loops.start(context, threads)
        _wait(context)
        worker.stop(timeout=int(WORKER_STOP_SECONDS * 1000))
    return 1 if any(loop.exception() for loop in running) else 0


def keep_what_stays() -> None:
    """Spare the collector what lives as long as the process, token tables above all, and let it look more rarely.

    What handlers make is dropped when they are done with it; a cycle among it waits a little longer.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)


def stand_back(niceness: int) -> None:
    """Let what else runs on this machine go first. Threads begun later follow, and on Linux so does disk priority."""
    if niceness <= os.getpriority(os.PRIO_PROCESS, 0):
        return
    os.setpriority(os.PRIO_PROCESS, 0, niceness)
    for thread in Path("/proc/self/task").glob("[0-9]*"):  # Linux gives each thread a priority of its own
        with suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, int(thread.name), niceness)


def _stop_on_signals(context: Context) -> None:
    def stop(_number: int, _frame: FrameType | None) -> None:
        context.stopping.set()

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)


def _wait(context: Context) -> None:
    # The pid is given, not read here: by now the process that started this one may be gone already.
    parent = context.settings.parent_pid
    while not context.stopping.wait(1.0):
        if parent is not None and os.getppid() != parent:
            log.warning("the process that started this worker is gone; stopping")
            context.stopping.set()


if __name__ == "__main__":
    raise SystemExit(main())
