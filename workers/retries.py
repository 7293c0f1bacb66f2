"""Whether and when to ask again for an item that was refused: one table, applied to values. Asks nothing itself."""

from datetime import datetime, timedelta

from service.source.listing import Refused
from service.source.refusals import Refusal
from service.store.ledger import Note
from service.store.models import LedgerState

MAX_ATTEMPTS = 5
"""Failures of an item after which it rests for `REST`."""
REST = timedelta(hours=6)
EMBARGO_GROWTH = 4
"""Each further refusal of an embargoed item lengthens the wait so many times: 15 min, 1 h, 4 h."""
LONGEST_EMBARGO_WAIT = timedelta(hours=6)
ABSENT_FOR_GOOD = 6
"""Refusals after which feedback that might be withheld is taken to be absent. The source answers both alike."""


def note_of(refused: Refused, attempts: int, now: datetime) -> Note:
    """What becomes of an item that was refused.

    Args:
        refused: the refusal.
        attempts: earlier refusals that spoke against the item.
        now: present time.
    """
    reason, retry_at = refused.reason, refused.retry_at or now + refused.reason.delay
    if reason.terminal or (reason is Refusal.FEEDBACK_ABSENT and attempts + 1 >= ABSENT_FOR_GOOD):
        return Note(LedgerState.GONE, reason.value, now, attempts + 1)
    if reason.is_about_source:
        return Note(LedgerState.EXPECTED, reason.value, retry_at, attempts)
    if reason.is_embargo:
        return Note(LedgerState.EMBARGOED, reason.value, embargo_ends(reason, attempts, now), attempts + 1)
    rests = attempts + 1 >= MAX_ATTEMPTS
    return Note(LedgerState.FAILED, reason.value, now + REST if rests else retry_at, attempts + 1)


def embargo_ends(reason: Refusal, attempts: int, now: datetime) -> datetime:
    """When to ask again for what is withheld."""
    growth: int = EMBARGO_GROWTH ** min(attempts, 8)
    return now + min(reason.delay * growth, max(LONGEST_EMBARGO_WAIT, reason.delay))
