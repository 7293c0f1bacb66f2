"""A source as the settings name it: throttled or not, and under its own name."""

from redis import Redis

from service.config import Settings
from service.replay.server import Replay
from service.source import open_source


def test_a_loopback_source_is_not_throttled(replay: Replay, redis_url: str) -> None:
    source = open_source(Settings(source_url=replay.url), redis_url)
    for _ in range(20):
        source.suites()
    assert Redis.from_url(redis_url).keys() == []


def test_a_rate_is_kept_in_redis_under_the_host(replay: Replay, redis_url: str) -> None:
    source = open_source(Settings(source_url=replay.url, rate_per_minute=600), redis_url)
    assert len(source.suites()) == 2
    assert Redis.from_url(redis_url).keys() == [b"sluice:budget:127.0.0.1"]
