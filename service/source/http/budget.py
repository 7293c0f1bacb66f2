"""How many requests may go to one host: one allowance shared by every process, kept in Redis.

It sends no request itself.
"""

import logging
import random
import threading
import time
from typing import Protocol

from redis import Redis
from redis.exceptions import RedisError

from service.source.http.pausing import pause

log = logging.getLogger(__name__)

MAX_PARK_SECONDS = 3600.0
FLOOR_SHARE = 0.25
"""Without Redis no process knows of the others: each keeps to this share of the rate."""
_SLICE_SECONDS = 1.0
"""Longest sleep between two looks at the allowance, so that a park is noticed. A stop is noticed at once."""

_ACQUIRE = """
-- KEYS[1] the allowance. ARGV: full rate per minute, burst, minutes from half to full rate, tokens of a new allowance.
-- Returns milliseconds to wait; 0: one request may go.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local full, burst, recovery = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local kept = redis.call('HMGET', KEYS[1], 'tokens', 'at', 'rate', 'parked')
local tokens, at = tonumber(kept[1]) or tonumber(ARGV[4]), tonumber(kept[2]) or now
local rate, parked = tonumber(kept[3]) or full, tonumber(kept[4]) or 0
local minutes = math.max(0, now - at) / 60000
tokens = math.min(burst, tokens + minutes * rate)
rate = math.min(full, rate + minutes * full / 2 / recovery)
local wait = 0
if parked > now then
  wait, tokens = parked - now, math.min(tokens, 1)
elseif tokens < 1 then
  wait = math.ceil((1 - tokens) / rate * 60000)
else
  tokens = tokens - 1
end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now, 'rate', rate)
redis.call('PEXPIRE', KEYS[1], 7200000)
return wait
"""

_SLOW_DOWN = """
-- Halve the rate, down to a sixteenth; at most once in ARGV[2] ms, as many processes meet the same limit at once.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local full = tonumber(ARGV[1])
if now - (tonumber(redis.call('HGET', KEYS[1], 'slowed')) or 0) >= tonumber(ARGV[2]) then
  local rate = tonumber(redis.call('HGET', KEYS[1], 'rate')) or full
  redis.call('HSET', KEYS[1], 'rate', math.max(full / 16, rate / 2), 'slowed', now, 'tokens', 0, 'at', now)
  redis.call('PEXPIRE', KEYS[1], 7200000)
end
"""

_PARK = """
local clock = redis.call('TIME')
local till = clock[1] * 1000 + math.floor(clock[2] / 1000) + tonumber(ARGV[1])
if till > (tonumber(redis.call('HGET', KEYS[1], 'parked')) or 0) then
  redis.call('HSET', KEYS[1], 'parked', till)
  redis.call('PEXPIRE', KEYS[1], 7200000)
end
"""


class Budget(Protocol):
    """Permission to send requests to one host."""

    def acquire(self) -> None:
        """Return when one request may be sent.

        Raises:
            SluiceError: STOPPING, and no request may be sent any more.
        """

    def park(self, seconds: float) -> None:
        """Let nobody send anything for this long."""

    def slow_down(self) -> None:
        """Halve the rate; it recovers by itself."""


class Unthrottled:
    """No rate at all, for a source of one's own; a park is still honoured, by this process alone."""

    def __init__(self, stopping: threading.Event | None = None) -> None:
        self._parked_until = 0.0
        self._stopping = stopping or threading.Event()

    def acquire(self) -> None:
        """Return at once, unless parked or stopping."""
        pause(0.0, self._stopping)
        while (left := self._parked_until - time.monotonic()) > 0:
            pause(min(left, _SLICE_SECONDS), self._stopping)

    def park(self, seconds: float) -> None:
        """Hold every request of this process for this long."""
        self._parked_until = max(self._parked_until, time.monotonic() + min(seconds, MAX_PARK_SECONDS))

    def slow_down(self) -> None:
        """There is no rate to lower."""


class RedisBudget:
    """A token bucket for each host, shared through Redis; a low rate of this process's own while Redis is away.

    What Redis forgets this process still knows: it waits out a park all the same, and a new allowance of a host that it
    has asked before begins without a burst.
    """

    def __init__(
        self,
        redis: Redis,
        host: str,
        per_minute: float,
        recovery_minutes: float = 10.0,
        slow_down_pause_seconds: float = 10.0,
        stopping: threading.Event | None = None,
    ) -> None:
        self._key = f"sluice:budget:{host}"
        self._per_minute = per_minute
        self._burst = max(1.0, per_minute / 10)
        self._recovery_minutes = recovery_minutes
        self._slow_down_pause_ms = int(slow_down_pause_seconds * 1000)
        self._acquire = redis.register_script(_ACQUIRE)
        self._slow_down = redis.register_script(_SLOW_DOWN)
        self._park = redis.register_script(_PARK)
        self._floor = _Floor(per_minute * FLOOR_SHARE)
        self._parked_until = 0.0
        self._has_asked = False
        self._stopping = stopping or threading.Event()

    def acquire(self) -> None:
        """Wait for the shared allowance, or for this process's floor when Redis does not answer."""
        pause(0.0, self._stopping)
        while (wait := self._wait_seconds()) > 0:
            pause(min(wait, _SLICE_SECONDS) * random.uniform(1.0, 1.1), self._stopping)

    def park(self, seconds: float) -> None:
        """Hold every process for this long, an hour at most."""
        seconds = min(seconds, MAX_PARK_SECONDS)
        self._parked_until = max(self._parked_until, time.monotonic() + seconds)
        try:
            self._park(keys=[self._key], args=[int(seconds * 1000)])
        except RedisError as error:
            log.warning("the request allowance is not shared: %s", type(error).__name__)

    def slow_down(self) -> None:
        """Halve the shared rate, at most once in a short while."""
        try:
            self._slow_down(keys=[self._key], args=[self._per_minute, self._slow_down_pause_ms])
        except RedisError as error:
            log.warning("the request allowance is not shared: %s", type(error).__name__)

    def _wait_seconds(self) -> float:
        left = self._parked_until - time.monotonic()
        if left > 0:
            return left
        args = [self._per_minute, self._burst, self._recovery_minutes, 1.0 if self._has_asked else self._burst]
        self._has_asked = True
        try:
            return int(self._acquire(keys=[self._key], args=args)) / 1000
        except RedisError as error:
            log.warning("the request allowance is not shared: %s", type(error).__name__)
            return self._floor.wait_seconds()


class _Floor:
    """An even pace for the threads of one process."""

    def __init__(self, per_minute: float) -> None:
        self._pause = 60.0 / per_minute
        self._next_at = 0.0
        self._lock = threading.Lock()

    def wait_seconds(self) -> float:
        """0 when one request may go now."""
        with self._lock:
            now = time.monotonic()
            if now < self._next_at:
                return self._next_at - now
            self._next_at = now + self._pause
            return 0.0
