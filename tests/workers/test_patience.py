"""How long an item is asked for: tries of one kind count against it, waits grow, and no item stops the others."""

from datetime import UTC, datetime, timedelta

import pytest

from service.source.answers import Refused
from service.source.refusals import Refusal
from service.store.harvest.ledger import Note
from service.store.models import LedgerState
from workers.retries import ABSENT_WAITS, MAX_ATTEMPTS, REST, note_of

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def answers(*reasons: Refusal) -> Note:
    """The note after these answers, each given when the one before said to ask again."""
    note, now = Note(LedgerState.EXPECTED, "", NOW, 0), NOW
    earlier: str | None = None
    for reason in reasons:
        note = note_of(Refused(reason, now + reason.delay), earlier, note.attempts, now)
        earlier, now = note.reason, note.next_try_at
    return note


def waits(reason: Refusal, times: int) -> list[timedelta]:
    ends = [answers(*[reason] * count).next_try_at for count in range(times + 1)]
    return [after - before for before, after in zip([NOW, *ends[1:]], ends[1:], strict=False)]


@pytest.mark.parametrize("reason", [Refusal.UPSTREAM_ERROR, Refusal.TIMEOUT])
def test_an_item_over_which_the_source_always_falters_is_asked_for_ever_more_rarely(reason: Refusal) -> None:
    # One minute, then twice as long each time: 2 ** 8 minutes are four hours, the next would be over six.
    expected = [min(timedelta(minutes=2**tries), REST) for tries in range(11)]
    assert waits(reason, 11) == expected
    assert answers(*[reason] * 11).state is LedgerState.FAILED


HELD = (Refusal.RACE_IN_FLIGHT,) * 6


def test_a_hold_is_no_failure() -> None:
    for spoilt in (Refusal.BAD_REQUEST, Refusal.FORBIDDEN_HOST, Refusal.OBJECT_ABSENT, Refusal.BAD_GZIP):
        assert answers(*HELD, spoilt)[::3] == (LedgerState.FAILED, 1)
        assert answers(*HELD, *[spoilt] * MAX_ATTEMPTS).state is LedgerState.GONE
    cut = answers(*HELD, Refusal.TRUNCATED)
    held = answers(*HELD)
    assert cut.next_try_at - held.next_try_at == Refusal.TRUNCATED.delay


def test_feedback_is_taken_to_be_absent_after_its_own_waits_alone() -> None:
    absent = [Refusal.FEEDBACK_ABSENT]
    assert answers(*HELD, *absent * len(ABSENT_WAITS)).state is LedgerState.EMBARGOED
    assert answers(*HELD, *absent * (len(ABSENT_WAITS) + 1)).state is LedgerState.GONE


def test_a_source_that_is_away_says_nothing_about_the_item() -> None:
    away = answers(Refusal.TRUNCATED, Refusal.TRUNCATED, Refusal.UNREACHABLE)
    assert (away.state, away.attempts) == (LedgerState.EXPECTED, 2)
