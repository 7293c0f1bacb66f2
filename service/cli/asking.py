"""Ask the running workers for a release, and wait for it. Makes no snapshot and judges no answer."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from dramatiq.brokers.redis import RedisBroker
from sqlalchemy.orm import Session

from service.cli.joined import Joined
from service.domain.policy import DEFAULT_POLICIES
from service.errors import ErrorCode, SluiceError
from service.queue.broker import open_broker, outstanding, send, unfetched
from service.queue.messages import Message, Stage
from service.store.engine import reading
from service.store.models import PoolAssignment
from service.store.release import pools, snapshots
from service.store.work.progress import progress

GLOBAL_STAGES = (Stage.CLUSTER, Stage.ASSIGN, Stage.SNAPSHOT)
UNFETCHED_SECONDS = 10.0
"""With no worker fetching the request for so long, there is none."""
POLL_SECONDS = 0.2
TRIES = 20
PAUSE_SECONDS = 1.0
"""All tries together last longer than the lease of a worker that died."""


def release(at: Joined, is_answered: Callable[[Session], bool] | None = None) -> list[str]:
    """Have the workers release the corpus as it is now; returns what they left undone, nothing when it is released.

    One that handles a request while another holds its lease does nothing, so the request is repeated for a while. What
    the harvest brings meanwhile makes the stages due again, and is not waited for.

    Args:
        at: the databases.
        is_answered: whether what was asked for is there; None: a release of newer pools than stood before.

    Raises:
        SluiceError: SERVICE_UNAVAILABLE when no worker takes the request up.
    """
    assert at.settings.redis_url is not None
    broker = open_broker(at.settings.redis_url)
    if is_answered is None:
        with reading(at.engine) as session:
            is_answered = partial(_is_released, than=pools.latest(session))
    due: list[str] = []
    for attempt in range(TRIES):
        if attempt:
            time.sleep(PAUSE_SECONDS)
        _ask_and_wait(broker)
        with reading(at.engine) as session:
            due = _due(session)
            if not due or is_answered(session):
                return []
    return due


def _is_released(session: Session, than: PoolAssignment | None) -> bool:
    """Whether a release of pools after those is decided."""
    decided = snapshots.latest_release(session)
    return decided is not None and decided.assignment_id > (than.assignment_id if than else 0)


def _due(session: Session) -> list[str]:
    """Names of the global stages that have something to do."""
    left = progress(session, DEFAULT_POLICIES, datetime.now(UTC))
    stages = {
        "clustering": left.clustering_due,
        "pools": left.assignment_due,
        "the release": left.release_due,
        "requests": left.requests_due,
    }
    return [name for name, is_due in stages.items() if is_due]


def _ask_and_wait(broker: RedisBroker) -> None:
    """Wake the global stages, and wait until they have nothing left to handle.

    A stage sends the next one's message before its own is done, so the queues are empty only at the end.

    Raises:
        SluiceError: SERVICE_UNAVAILABLE when no worker takes the request up.
    """
    send(broker, Message(Stage.CLUSTER))
    asked_at = time.monotonic()
    while any(outstanding(broker, stage) for stage in GLOBAL_STAGES):
        if unfetched(broker, Stage.CLUSTER) and time.monotonic() - asked_at > UNFETCHED_SECONDS:
            raise SluiceError(
                ErrorCode.SERVICE_UNAVAILABLE,
                f"no worker has taken the request up in {UNFETCHED_SECONDS:g} s; start one with `sluice up`",
            )
        time.sleep(POLL_SECONDS)
