"""How much of the harvest is sent at a time: under a budget, about a minute's requests are outstanding at most.

Then what is asked for next is decided in the light of nearly all verdicts. Sends nothing and waits for nothing.
"""

from typing import NamedTuple

MESSAGES_A_MINUTE = 8
"""A minute's requests are spread over so many messages, so that several threads share them."""
REST_SHARE = 4.0
"""The sweep rests so many times as long as it took: a large corpus is not swept without end."""
MOST_SECONDS = 120.0
"""What is sent at a time lasts no longer, however slow the machine is."""
MOST_REQUESTS = 20
"""Of one message, however high the rate."""


class Pace(NamedTuple):
    """What ingest is sent under a budget."""

    low_water: int
    """Outstanding messages below which more is sent: half a minute's."""
    requests: float
    """Requests that are sent at a time: another half, or what lasts until the sweep comes again."""
    message_requests: int
    """Requests of one message."""


def pace(rate_per_minute: int, planning_seconds: float = 0.0) -> Pace:
    """The pace at a rate, which is not 0, where a plan takes so long."""
    message_requests = min(MOST_REQUESTS, max(1, rate_per_minute // MESSAGES_A_MINUTE))
    low_water = max(1, rate_per_minute // 2 // message_requests)
    seconds = min(max(30.0, (1.0 + REST_SHARE) * planning_seconds), MOST_SECONDS)
    return Pace(low_water, rate_per_minute * seconds / 60, message_requests)
