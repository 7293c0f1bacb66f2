"""The shared allowance against a real Valkey: its pace, its parks, its way down and back, and life without Redis."""

import threading
import time
import uuid

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from service.errors import SluiceError
from service.source.http.budget import Budget, RedisBudget, Unthrottled


@pytest.fixture
def host() -> str:
    return f"host-{uuid.uuid4().hex}"


@pytest.fixture
def valkey(redis_url: str) -> Redis:
    return Redis.from_url(redis_url)


def drain(budget: RedisBudget) -> int:
    """How many requests may go before one would have to wait."""
    count = 0
    while budget._wait_seconds() == 0:
        count += 1
    return count


def test_a_burst_is_a_tenth_of_the_rate_then_the_pace_is_even(valkey: Redis, host: str) -> None:
    budget = RedisBudget(valkey, host, per_minute=600)
    # 600 a minute: 60 at once, then ten a second.
    assert 60 <= drain(budget) <= 62
    began = time.monotonic()
    for _ in range(5):
        budget.acquire()
    assert 0.35 < time.monotonic() - began < 1.5


def test_two_processes_share_one_allowance(valkey: Redis, redis_url: str, host: str) -> None:
    first = RedisBudget(valkey, host, per_minute=600)
    second = RedisBudget(Redis.from_url(redis_url), host, per_minute=600)
    counts: list[int] = []
    threads = [threading.Thread(target=lambda each=each: counts.append(drain(each))) for each in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 60 <= sum(counts) <= 64


def test_a_park_holds_everyone_and_the_longest_counts(valkey: Redis, host: str) -> None:
    budget, other = (RedisBudget(valkey, host, per_minute=6000) for _ in range(2))
    budget.park(0.5)
    budget.park(0.1)
    began = time.monotonic()
    other.acquire()
    assert 0.4 < time.monotonic() - began < 1.5


def test_what_redis_forgets_the_process_still_knows(valkey: Redis, host: str) -> None:
    """A server that comes back empty: the park is waited out, and no second burst goes out after it."""
    budget = RedisBudget(valkey, host, per_minute=600)
    drain(budget)
    budget.park(0.5)
    valkey.delete(f"sluice:budget:{host}")
    began = time.monotonic()
    budget.acquire()
    assert time.monotonic() - began > 0.4
    valkey.delete(f"sluice:budget:{host}")
    assert drain(budget) <= 3  # one token, then ten a second, where a new burst would be 60


def test_a_rate_limit_halves_the_rate_once_and_it_comes_back(valkey: Redis, host: str) -> None:
    # 6,000 a minute, from half to full within 0.6 s.
    budget = RedisBudget(valkey, host, per_minute=6000, recovery_minutes=0.01)
    budget.acquire()
    budget.slow_down()
    budget.slow_down()  # the same limit, met by another thread
    rate = float(valkey.hget(f"sluice:budget:{host}", "rate") or 0)
    assert rate == 3000
    time.sleep(0.7)
    budget.acquire()
    assert float(valkey.hget(f"sluice:budget:{host}", "rate") or 0) == 6000


def test_the_rate_has_a_floor(valkey: Redis, host: str) -> None:
    budget = RedisBudget(valkey, host, per_minute=160, slow_down_pause_seconds=0.0)
    for _ in range(10):
        budget.slow_down()
    assert float(valkey.hget(f"sluice:budget:{host}", "rate") or 0) == 10


def test_without_redis_each_process_keeps_a_quarter_of_the_rate(host: str) -> None:
    nobody = Redis(host="127.0.0.1", port=9, socket_connect_timeout=1, retry=Retry(NoBackoff(), 0))
    budget = RedisBudget(nobody, host, per_minute=2400)
    began = time.monotonic()
    for _ in range(4):
        budget.acquire()
    # 600 a minute by itself: the first at once, three more a tenth of a second apart.
    assert 0.25 < time.monotonic() - began < 1.5
    budget.slow_down()
    budget.park(0.3)
    began = time.monotonic()
    budget.acquire()
    assert time.monotonic() - began > 0.25


@pytest.mark.parametrize("throttled", [True, False])
def test_a_stop_ends_a_wait_at_once_and_every_later_one(valkey: Redis, host: str, throttled: bool) -> None:
    stopping = threading.Event()
    budget: Budget = RedisBudget(valkey, host, 6000, stopping=stopping) if throttled else Unthrottled(stopping)
    budget.acquire()
    budget.park(60.0)
    threading.Timer(0.2, stopping.set).start()
    began = time.monotonic()
    for _ in range(2):
        with pytest.raises(SluiceError, match="STOPPING"):
            budget.acquire()
    assert 0.1 < time.monotonic() - began < 0.9


def test_unthrottled_waits_for_a_park_alone() -> None:
    budget = Unthrottled()
    began = time.monotonic()
    for _ in range(1000):
        budget.acquire()
    assert time.monotonic() - began < 0.5
    budget.park(0.2)
    began = time.monotonic()
    budget.acquire()
    assert time.monotonic() - began > 0.15
