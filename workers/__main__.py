"""One worker process: `python -m workers`, wherever Postgres and Redis can be reached; several at once are safe."""

import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType

import dramatiq
import httpx
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from service.config import WORKER_STOP_SECONDS, Settings
from service.errors import SluiceError
from service.store import origin, walks
from service.store.engine import reading, transaction
from workers.context import Context, open_context
from workers.leadership import held
from workers.pipeline import register
from workers.subscribe import walk
from workers.sweep import sweep

SWEEP_SECONDS = 1.0
FAULT_SECONDS = 5.0
SWEEP_SHARE = 4.0
"""A sweep rests at least so many times as long as it took, so that a large corpus is not swept without end."""
PASSING_FAULTS = (SluiceError, SQLAlchemyError, RedisError, httpx.HTTPError)
"""Faults after which a loop waits and goes on; any other ends the process."""

log = logging.getLogger("workers")


def main() -> int:
    """Run until SIGINT or SIGTERM; returns the exit status."""
    settings = Settings()
    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if settings.database_url is None or settings.redis_url is None:
        sys.stderr.write("workers need SLUICE_DATABASE_URL and SLUICE_REDIS_URL; `sluice up` gives them their own\n")
        return 2
    context = open_context(settings, settings.database_url, settings.redis_url)
    with transaction(context.engine) as session:
        origin.require(session, settings.origin)
    register(context)
    _stop_on_signals(context)
    worker = dramatiq.Worker(context.broker, worker_threads=settings.worker_threads)
    worker.start()
    with ThreadPoolExecutor(thread_name_prefix="loop") as threads:
        loops = [threads.submit(_keep_running, context, loop) for loop in (subscriber, sweeper)]
        _wait(context)
        worker.stop(timeout=int(WORKER_STOP_SECONDS * 1000))
    return 1 if any(loop.exception() for loop in loops) else 0


def subscriber(context: Context) -> None:
    """Walk the source when no worker has since this one started, and whenever none has for the poll interval."""
    with reading(context.engine) as session:
        at_start = walks.last_begun(session)
    while not context.stopping.is_set():
        with held(context.engine, "subscribe") as token:
            if token is not None and _walk_due(context, at_start):
                walk(context)
        context.stopping.wait(SWEEP_SECONDS)


def _walk_due(context: Context, at_start: int) -> bool:
    with reading(context.engine) as session:
        idle_seconds = walks.seconds_since_last(session)
        begun = walks.last_begun(session)
    return begun == at_start or idle_seconds is None or idle_seconds >= context.settings.poll_seconds


def sweeper(context: Context) -> None:
    """Sweep the backlogs again and again, one worker at a time."""
    while not context.stopping.is_set():
        began = time.monotonic()
        with held(context.engine, "sweep") as token:
            if token is not None:
                sweep(context)
        context.stopping.wait(max(SWEEP_SECONDS, SWEEP_SHARE * (time.monotonic() - began)))


def _keep_running(context: Context, loop: Callable[[Context], None]) -> None:
    try:
        while not context.stopping.is_set():
            try:
                loop(context)
            except PASSING_FAULTS as fault:
                if not context.stopping.is_set():
                    log.warning("%s: %s; trying again", loop.__name__, fault)
                context.stopping.wait(FAULT_SECONDS)
    except BaseException:
        log.exception("%s ended", loop.__name__)
        raise
    finally:
        context.stopping.set()


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
