"""What a handler may touch: the store, the queue, the source, the files, the policies. Decides nothing."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from dramatiq.brokers.redis import RedisBroker
from sqlalchemy import Engine

from service.config import Settings
from service.domain.policy import DEFAULT_POLICIES, Policies
from service.queue.broker import open_broker
from service.source import open_source
from service.source.oro.source import OroSource
from service.store.engine import open_engine
from service.store.release.files import FileStore
from service.tokenizer import qwen_token_counter


@dataclass(frozen=True, slots=True)
class Context:
    """Everything one worker process shares between its handlers; all of it is safe to use from several threads."""

    settings: Settings
    engine: Engine
    broker: RedisBroker
    source: OroSource
    files: FileStore
    count_tokens: Callable[[str], int]
    policies: Policies = DEFAULT_POLICIES
    stopping: threading.Event = field(default_factory=threading.Event)
    """Set once when the process is asked to stop; long loops look at it between items."""

    def now(self) -> datetime:
        """The present time, in UTC."""
        return datetime.now(UTC)


def open_context(settings: Settings, database_url: str, redis_url: str) -> Context:
    """Connect to everything a worker needs."""
    stopping = threading.Event()
    return Context(
        settings=settings,
        engine=open_engine(database_url, pool_size=settings.worker_threads + 3),
        broker=open_broker(redis_url),
        source=open_source(settings, redis_url, stopping),
        files=FileStore(settings.snapshot_dir),
        count_tokens=qwen_token_counter(DEFAULT_POLICIES.rules.token_method),
        stopping=stopping,
    )
