"""Sending stage messages through Redis or Valkey with dramatiq. Registers no handler: workers do."""

from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import Middleware, Retries

from service.queue.messages import Message, Stage

NAMESPACE = "sluice"
HEARTBEAT_TIMEOUT_MS = 10_000
"""A worker that has not asked for messages for so long is dead, and what it held is given to others."""
ALWAYS = 1_000_000
"""Of 1,000,000: look for dead workers' messages at every fetch. The library's default looks at one in a thousand."""
MAX_RETRIES = 3
MIN_BACKOFF_MS = 1_000
MAX_BACKOFF_MS = 30_000


def open_broker(redis_url: str) -> RedisBroker:
    """Open the broker on `redis://...` or `unix://...`.

    Of the library's middleware only retries are used. Its time and age limits would end long snapshots; a message
    given up after its retries is no loss, since the sweep sends its work again.
    """
    middleware: list[Middleware] = [
        Retries(max_retries=MAX_RETRIES, min_backoff=MIN_BACKOFF_MS, max_backoff=MAX_BACKOFF_MS)
    ]
    broker = RedisBroker(  # type: ignore[no-untyped-call]
        url=redis_url,
        namespace=NAMESPACE,
        middleware=middleware,
        heartbeat_timeout=HEARTBEAT_TIMEOUT_MS,
        maintenance_chance=ALWAYS,
    )
    for stage in Stage:
        broker.declare_queue(stage)
    return broker


def send(broker: RedisBroker, message: Message) -> None:
    """Put one message into its stage's queue."""
    broker.enqueue(
        dramatiq.Message(
            queue_name=message.stage.value,
            actor_name=message.stage.value,
            args=(list(message.ids),),
            kwargs={},
            options={},
        )
    )


def outstanding(broker: RedisBroker, stage: Stage) -> int:
    """Messages of a stage that are waiting, being handled or due for a retry."""
    return sum(int(broker.client.hlen(name)) for name in _kept(stage))


def outstanding_ids(broker: RedisBroker, stage: Stage) -> set[int]:
    """The ids that those messages carry."""
    encoded: list[Any] = [message for name in _kept(stage) for message in broker.client.hvals(name)]
    return {number for message in encoded for number in dramatiq.Message.decode(message).args[0]}


def unfetched(broker: RedisBroker, stage: Stage) -> int:
    """Messages that no worker has fetched. Workers fetch ahead, busy or not, so only their absence keeps any."""
    return int(broker.client.llen(f"{NAMESPACE}:{stage.value}"))


def _kept(stage: Stage) -> tuple[str, str]:
    """Where a stage's messages are kept until they are done: those to be handled, and those due for a retry."""
    return f"{NAMESPACE}:{stage.value}.msgs", f"{NAMESPACE}:{stage.value}.DQ.msgs"
