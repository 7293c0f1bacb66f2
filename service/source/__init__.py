"""Clients of where SN15's trajectories come from. The only package that knows ORO's field names; it stores nothing."""

import threading
from urllib.parse import urlsplit

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from service.config import Settings
from service.source.http.budget import Budget, RedisBudget, Unthrottled
from service.source.http.calls import open_client
from service.source.oro.source import OroSource

_REDIS_TIMEOUT_SECONDS = 5.0


def open_source(settings: Settings, redis_url: str, stopping: threading.Event | None = None) -> OroSource:
    """The source the settings name, within a budget that all processes on this Redis share.

    Once `stopping` is set, whoever waits for the source or asks it for more gets a SluiceError (STOPPING).
    """
    budget: Budget = Unthrottled(stopping)
    if settings.requests_per_minute:
        timeout = _REDIS_TIMEOUT_SECONDS
        # One more try, at once: the budget has a floor for a Redis that is away, and waiting for it would be slower.
        redis = Redis.from_url(
            redis_url, socket_timeout=timeout, socket_connect_timeout=timeout, retry=Retry(NoBackoff(), 1)
        )
        host = urlsplit(settings.source_url).hostname or settings.source_url
        budget = RedisBudget(redis, host, settings.requests_per_minute, stopping=stopping)
    return OroSource(settings.source_url, budget, open_client(), settings.object_hosts, stopping=stopping)
