"""Whether and when to ask again for what was refused or withheld: one table, applied to values. Asks nothing itself."""

from datetime import datetime, timedelta
from enum import Enum, auto

from service.source.answers import Refused
from service.source.refusals import Refusal
from service.store.harvest.ledger import Note
from service.store.models import LedgerState

MAX_ATTEMPTS = 5
"""Failures of an item after which it rests for `REST`."""
REST = timedelta(hours=6)
EMBARGO_WAITS = (timedelta(minutes=15), timedelta(hours=1), timedelta(hours=6))
"""What is withheld is asked for again after the first, then the second, and from then on the last of these; where the
refusal names a longer delay, from that on."""
ABSENT_WAITS = (timedelta(hours=1), timedelta(hours=6), timedelta(days=1), timedelta(days=3), timedelta(days=7))
"""Feedback that might be withheld is asked for again after each of these in turn, and then taken to be absent. The
source answers both alike, and may hold a race back over a weekend: eleven days are more than any hold that was seen."""

SPOILT = frozenset(
    {
        *(Refusal.BAD_REQUEST, Refusal.FORBIDDEN_HOST, Refusal.OBJECT_ABSENT),
        *(Refusal.TOO_LARGE, Refusal.GZIP_BOMB, Refusal.BAD_GZIP),
    }
)
"""Answers that may be those of whoever stands between the source and us: asked again at once they would be the same,
and after `MAX_ATTEMPTS` of them, each `REST` after the last, they are taken to be the source's own."""

FALTERING = frozenset({Refusal.UPSTREAM_ERROR, Refusal.TIMEOUT})
"""Either the source falters, or it always does so over this item: it is asked again, each time after twice as long."""


class _Patience(Enum):
    """What earlier refusals were about. Tries count only while they are of one kind: a hold is no failure."""

    EMBARGO = auto()
    ABSENT = auto()
    SPOILT = auto()
    FAILURE = auto()


def _patience(reason: Refusal) -> _Patience:
    if reason is Refusal.FEEDBACK_ABSENT:
        return _Patience.ABSENT
    if reason.is_embargo:
        return _Patience.EMBARGO
    return _Patience.SPOILT if reason in SPOILT else _Patience.FAILURE


def note_of(refused: Refused, earlier: str | None, attempts: int, now: datetime) -> Note:
    """What becomes of an item that was refused.

    Args:
        refused: the refusal.
        earlier: reason of the last one; None: there was none.
        attempts: earlier refusals of its kind.
        now: present time.
    """
    reason, retry_at = refused.reason, refused.retry_at or now + refused.reason.delay
    before = Refusal(earlier) if earlier in set(Refusal) else None
    if before is None or _patience(before) is not _patience(reason):
        attempts = 0
    if reason in SPOILT and attempts + 1 < MAX_ATTEMPTS:
        return Note(LedgerState.FAILED, reason.value, now + REST, attempts + 1)
    if reason.terminal or (reason is Refusal.FEEDBACK_ABSENT and attempts >= len(ABSENT_WAITS)):
        return Note(LedgerState.GONE, reason.value, now, attempts + 1)
    if reason in FALTERING:
        wait = min(reason.delay * 2 ** min(attempts, 16), REST)
        return Note(LedgerState.FAILED, reason.value, max(retry_at, now + wait), attempts + 1)
    if reason.is_about_source:
        return Note(LedgerState.EXPECTED, reason.value, retry_at, attempts)
    if reason.is_embargo:
        return Note(LedgerState.EMBARGOED, reason.value, embargo_ends(reason, attempts, now), attempts + 1)
    rests = attempts + 1 >= MAX_ATTEMPTS
    return Note(LedgerState.FAILED, reason.value, now + REST if rests else retry_at, attempts + 1)


def embargo_ends(reason: Refusal, attempts: int, now: datetime) -> datetime:
    """When to ask again for what is withheld, after so many earlier refusals."""
    if reason is Refusal.FEEDBACK_ABSENT:
        return now + ABSENT_WAITS[min(attempts, len(ABSENT_WAITS) - 1)]
    waits = [wait for wait in EMBARGO_WAITS if wait >= reason.delay] or [reason.delay]
    return now + waits[min(attempts, len(waits) - 1)]


def listing_due(*, withheld: bool, attempts: int, now: datetime) -> datetime:
    """When to list the items of a run again of which not all were given.

    Args:
        withheld: nothing of the run is released. Else items are missing, which the next walk may find.
        attempts: listings before this one that did not give all either.
        now: present time.
    """
    if not withheld and attempts == 0:
        return now
    return embargo_ends(Refusal.RACE_IN_FLIGHT, attempts if withheld else attempts - 1, now)
