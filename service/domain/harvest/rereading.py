"""When to look again at what is complete, in case the source has changed its word. Asks nothing and keeps no time.

What has stood for long is likely to stand, so each wait grows with the age at the last look. The numbers are chosen so
that at 100 agent versions and 300 runs a day, after a year, re-reading asks 3,321 of the 72,000 requests that a day at
50 a minute has (4.6 %); an allowance keeps it below 5 % whatever happens. `docs/late-truth.md` has the sum.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

SHARE = 0.05
"""Most of the request rate that goes into re-reading."""
UNTHROTTLED_REQUESTS = 10_000
"""Most requests of one walk over a source without a rate limit."""
IN_MOTION = timedelta(hours=1)
"""An agent whose runs still go on is listed so often: nothing of it can be harvested before they end."""


@dataclass(frozen=True, slots=True)
class RereadingRule:
    """How the wait until the next look grows."""

    shortest: timedelta
    growth: float
    """The wait, as a multiple of the age at the last look."""
    longest: timedelta

    def is_due(self, read_at: datetime | None, completed_at: datetime | None, now: datetime) -> bool:
        """Whether to look again.

        Args:
            read_at: the last look; None when there was none.
            completed_at: when it was complete. None where the source does not say: it is taken to be old.
            now: present time.
        """
        if read_at is None:
            return True
        if completed_at is None:
            return now - read_at >= self.longest
        grown = (read_at - completed_at) * self.growth
        return now - read_at >= min(max(grown, self.shortest), self.longest)


LISTINGS = RereadingRule(shortest=timedelta(hours=3), growth=0.5, longest=timedelta(days=60))
"""Races and the runs of agent versions: every 3 hours on the first day, once a week at three weeks."""
ITEMS = RereadingRule(shortest=timedelta(days=1), growth=6.0, longest=timedelta(days=365))
"""The items of a run whose listing has not changed: after a day, a week, seven weeks, a year."""


class Reading(NamedTuple):
    """When something complete was last read."""

    name: str
    read_at: datetime | None
    completed_at: datetime | None


def due(readings: Iterable[Reading], now: datetime) -> list[str]:
    """Names of what is to be read again, the least recently read first."""
    found = [each for each in readings if LISTINGS.is_due(each.read_at, each.completed_at, now)]
    found.sort(key=lambda each: (each.read_at is not None, each.read_at or now, each.name))
    return [each.name for each in found]


def allowance(requests_per_minute: int, poll_seconds: float) -> int:
    """Requests that one walk may spend on re-reading; 0 requests a minute: the source is not throttled."""
    if requests_per_minute == 0:
        return UNTHROTTLED_REQUESTS
    return max(1, int(SHARE * requests_per_minute * poll_seconds / 60))
