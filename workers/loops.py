"""What a worker process does by the clock, beside handling messages: each loop in a thread, one worker at a time.

A loop looks whether there is something to do and does it; what that is, its own module knows. A fault that passes is
waited out; any other ends the process.
"""

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from service.config import Settings
from service.errors import SluiceError
from service.store.engine import reading
from service.store.harvest import walks
from service.store.work.leases import LeaseName
from workers import agent_code, chain, history, scanning, watch
from workers.context import Context
from workers.inspecting import Inspector
from workers.leadership import held
from workers.marking import mark
from workers.pacing import REST_SHARE
from workers.subscribe import walk
from workers.sweep import sweep

REST_SECONDS = 1.0
"""A loop rests so long between two rounds."""
IDLE_SHARE = 0.1
"""A loop that has found nothing to do rests for this share of the time since it last did: the machine is not ours."""
LONGEST_IDLE_REST_SECONDS = 10.0
FAULT_SECONDS = 5.0
PASSING_FAULTS = (SluiceError, SQLAlchemyError, RedisError)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Loop:
    """Something done again and again by whichever worker holds the lease."""

    lease: LeaseName
    round: Callable[[Context], bool | None]
    """Says whether there was something to do."""
    rest_share: float = 0.0
    """It rests at least so many times as long as its round took."""


class Subscriber:
    """Walks the source when no worker has since this one started, and whenever none has for the poll interval."""

    def __init__(self) -> None:
        self._begun_at_start: int | None = None

    def __call__(self, context: Context) -> bool:
        """Walk if it is time."""
        with reading(context.engine) as session:
            idle_seconds = walks.seconds_since_last(session)
            begun = walks.last_begun(session)
        if self._begun_at_start is None:
            self._begun_at_start = begun
        is_due = begun == self._begun_at_start or idle_seconds is None or idle_seconds >= context.settings.poll_seconds
        if is_due:
            walk(context)
            agent_code.collect(context)
            history.read(context)
        return is_due


def sweep_once(context: Context) -> bool:
    """Send what is due, and mark what was published."""
    sent = sweep(context)
    mark(context)
    return bool(sent)


def loops(settings: Settings) -> tuple[Loop, ...]:
    """The loops of one worker process."""
    always = (
        Loop(LeaseName.SUBSCRIBE, Subscriber()),
        Loop(LeaseName.SWEEP, sweep_once, REST_SHARE),
        Loop(LeaseName.SCAN, scanning.follow, rest_share=4.0),
        Loop(LeaseName.INSPECT, Inspector()),
    )
    asked_for = (
        *([Loop(LeaseName.CHAIN, chain.follow)] if settings.subtensor else ()),
        *([Loop(LeaseName.WATCH, watch.follow)] if watch.is_wanted(settings) else ()),
    )
    return (*always, *asked_for)


def start(context: Context, threads: ThreadPoolExecutor) -> list[Future[None]]:
    """Start every loop; each runs until the process is asked to stop, and asks for it when it cannot go on."""
    return [threads.submit(_keep_running, loop, context) for loop in loops(context.settings)]


def _keep_running(loop: Loop, context: Context) -> None:
    found_at = time.monotonic()
    try:
        while not context.stopping.is_set():
            began = time.monotonic()
            try:
                found_at = time.monotonic() if _run_once(loop, context) else found_at
                now = time.monotonic()
                context.stopping.wait(rest_seconds(loop, took_seconds=now - began, idle_seconds=now - found_at))
            except PASSING_FAULTS as fault:
                if not context.stopping.is_set():
                    log.warning("%s: %s; trying again", loop.lease, fault)
                context.stopping.wait(FAULT_SECONDS)
    except BaseException:
        log.exception("%s ended", loop.lease)
        raise
    finally:
        context.stopping.set()


def _run_once(loop: Loop, context: Context) -> bool:
    """One round, if no other worker is at it; whether it found something to do."""
    with held(context.engine, loop.lease) as token:
        return token is not None and bool(loop.round(context))


def rest_seconds(loop: Loop, *, took_seconds: float, idle_seconds: float) -> float:
    """How long to rest after a round, by how long it took and how long ago one last found something to do."""
    idle = min(IDLE_SHARE * idle_seconds, LONGEST_IDLE_REST_SECONDS)
    return max(REST_SECONDS, loop.rest_share * took_seconds, idle)
