"""The shared allowance against a real Valkey: its pace, its parks, its way down and back, and life without Redis."""

import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from service.domain.trajectory import ExecutionKind
from service.errors import SluiceError
from service.source.answers import FetchTarget, Refused
from service.source.http.budget import Budget, RedisBudget, Unthrottled
from service.source.http.calls import open_client
from service.source.oro.source import OroSource
from service.source.refusals import Refusal
from tests.source.wire import answering, whole


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


ASKING = """
import sys, time
from redis import Redis
from service.source.http.budget import RedisBudget
budget = RedisBudget(Redis.from_url(sys.argv[1]), sys.argv[2], per_minute=600)
print("ready", flush=True)
sys.stdin.readline()
count, end = 0, time.monotonic() + 2.0
while time.monotonic() < end:
    budget.acquire()
    count += 1
print(count)
"""


def test_two_processes_share_one_allowance(redis_url: str, host: str) -> None:
    command = [sys.executable, "-c", ASKING, redis_url, host]
    both = [
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
        )
        for _ in range(2)
    ]
    assert [each.stdout.readline() for each in both if each.stdout] == ["ready\n"] * 2
    for each in both:
        if each.stdin:
            each.stdin.write("go\n")
            each.stdin.flush()
    counts = [int(each.communicate(timeout=30)[0]) for each in both]
    # 60 at once and ten a second for two seconds, one more each at the end; each by itself would come to 80.
    assert 70 <= sum(counts) <= 90


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


def test_redis_away_and_back_doubles_no_rate(redis_url: str, host: str, tmp_path: Path) -> None:
    there, link = Path(urlsplit(redis_url).path), tmp_path / "socket"
    link.symlink_to(there)
    client = Redis(unix_socket_path=str(link), retry=Retry(NoBackoff(), 0))
    budget = RedisBudget(client, host, per_minute=600)
    assert drain(budget) >= 60
    link.unlink()
    client.connection_pool.disconnect()
    away = asked_within(budget, 1.0)
    assert 2 <= away <= 4  # 150 a minute: 2.5 a second, and one at once
    link.symlink_to(there)
    # Ten a second: what was not spent while it was away, and what is new. The floor's come on top.
    assert 15 <= asked_within(budget, 1.0) <= 24
    assert asked_within(budget, 1.0) <= 12


def asked_within(budget: RedisBudget, seconds: float) -> int:
    """How many requests may go within this time."""
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        budget.acquire()
        count += 1
    return count


def test_a_limit_of_an_object_host_parks_everyone_and_slows_no_api(valkey: Redis, host: str) -> None:
    limited = whole(b"", "Retry-After: 1", status="429 Too Many Requests")
    budget = RedisBudget(valkey, host, per_minute=6000)
    wanted = FetchTarget(kind=ExecutionKind.LEGACY, agent_version_id="a", eval_run_id="r", problem_id="p")
    with answering(limited) as objects, open_client() as client:
        url = orjson.dumps({"download_url": f"{objects.url}/o"})
        with answering(whole(url)) as api:
            answer = OroSource(api.url, budget, client).fetch(wanted)
    assert isinstance(answer, Refused)
    assert answer.reason is Refusal.RATE_LIMITED
    assert answer.retry_at is not None
    assert float(valkey.hget(f"sluice:budget:{host}", "rate") or 0) == 6000
    began = time.monotonic()
    RedisBudget(valkey, host, per_minute=6000).acquire()
    assert 0.5 < time.monotonic() - began < 2.0


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
