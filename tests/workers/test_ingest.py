"""Ingest: what each refusal leaves in the ledger, and that faults on the way lose nothing."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select, update

from service.replay.faults import Fault
from service.replay.server import Replay
from service.source.answers import Refused
from service.source.refusals import Refusal
from service.store.engine import reading, transaction
from service.store.harvest import ledger
from service.store.harvest.ledger import Note
from service.store.models import LedgerItem, LedgerState, Trajectory
from workers.context import Context
from workers.retries import ABSENT_WAITS, MAX_ATTEMPTS, REST, note_of
from workers.stages import ingest
from workers.subscribe import walk

NOW = datetime(2026, 11, 1, tzinfo=UTC)
SOON = NOW + timedelta(seconds=7)


@pytest.mark.parametrize(
    ("reason", "attempts", "expected"),
    [
        (Refusal.NO_OBJECT, 0, Note(LedgerState.GONE, "no_object", NOW, 1)),
        (Refusal.RATE_LIMITED, 3, Note(LedgerState.EXPECTED, "rate_limited", SOON, 3)),
        (Refusal.UNREACHABLE, 99, Note(LedgerState.EXPECTED, "unreachable", SOON, 99)),
        (Refusal.TRUNCATED, 0, Note(LedgerState.FAILED, "truncated", SOON, 1)),
        (Refusal.TRUNCATED, MAX_ATTEMPTS - 2, Note(LedgerState.FAILED, "truncated", SOON, MAX_ATTEMPTS - 1)),
        (Refusal.TRUNCATED, MAX_ATTEMPTS - 1, Note(LedgerState.FAILED, "truncated", NOW + REST, MAX_ATTEMPTS)),
        (Refusal.GZIP_BOMB, MAX_ATTEMPTS - 2, Note(LedgerState.FAILED, "gzip_bomb", NOW + REST, MAX_ATTEMPTS - 1)),
        (Refusal.GZIP_BOMB, MAX_ATTEMPTS - 1, Note(LedgerState.GONE, "gzip_bomb", NOW, MAX_ATTEMPTS)),
        (Refusal.FEEDBACK_ABSENT, len(ABSENT_WAITS), Note(LedgerState.GONE, "feedback_absent", NOW, 6)),
    ],
)
def test_what_a_refusal_leads_to(reason: Refusal, attempts: int, expected: Note) -> None:
    assert note_of(Refused(reason, None if reason.terminal else SOON), reason.value, attempts, NOW) == expected


def test_an_embargo_is_asked_about_less_and_less_often() -> None:
    # 15 minutes, an hour, and six hours from then on.
    held = Refused(Refusal.RACE_IN_FLIGHT, SOON)
    waits = [note_of(held, held.reason.value, n, NOW).next_try_at - NOW for n in (0, 1, 2, 3, 500)]
    assert waits == [timedelta(minutes=m) for m in (15, 60, 360, 360, 360)]


def test_feedback_that_may_be_withheld_is_given_up_after_longer_than_any_hold() -> None:
    absent = Refused(Refusal.FEEDBACK_ABSENT, SOON)
    notes = [note_of(absent, absent.reason.value, n, NOW) for n in range(5)]
    assert [note.state for note in notes] == [LedgerState.EMBARGOED] * 5
    # 1 h + 6 h + 1 d + 3 d + 7 d
    assert sum((note.next_try_at - NOW for note in notes), timedelta()) == timedelta(days=11, hours=7)


def due(context: Context) -> list[int]:
    with reading(context.engine) as session:
        return list(ledger.due(session, context.now(), 10_000))


def states(context: Context) -> Counter[tuple[str, str | None]]:
    with reading(context.engine) as session:
        return Counter({(count.state.value, count.reason): count.items for count in ledger.counts(session)})


def make_due(context: Context) -> None:
    """Let the time of every next try come."""
    with transaction(context.engine) as session:
        session.execute(update(LedgerItem).values(next_try_at=func.now(), claimed_by=None))


def test_faults_on_the_way_lose_nothing(context: Context, replay: Replay) -> None:
    walk(context)
    for fault in (
        Fault("/artifacts/download-url", times=2, status=429, headers={"Retry-After": "0"}),
        Fault("/artifacts/download-url", times=2, status=503),
        Fault("/artifacts/download-url", times=1, keep_bytes=5, cut=True),
        Fault("/feedback", times=2, status=500),
    ):
        replay.faults.add(fault)
    first = due(context)
    ingest.run(first, context, "first")
    after = states(context)
    assert after["expected", "rate_limited"] == 2
    assert after["failed", "upstream_error"] == 4
    assert after["failed", "truncated"] == 1
    make_due(context)
    ingest.run(due(context), context, "second")
    fetched = replay.archive.object_count
    assert states(context) == {("fetched", None): fetched, ("gone", "no_object"): len(first) - fetched}
    with reading(context.engine) as session:
        assert session.scalar(select(func.count()).select_from(Trajectory)) == fetched


def test_the_same_message_twice_asks_the_source_once(context: Context, replay: Replay) -> None:
    walk(context)
    ids = due(context)[:10]
    stored = ingest.run(ids, context, "message")
    replay.faults.requests.clear()
    assert ingest.run(ids, context, "message") == []
    assert ingest.run(ids, context, "another message") == []
    assert replay.faults.requests == []
    assert len(stored) == len(set(stored))


def test_a_worker_that_is_told_to_stop_gives_back_what_it_has_not_asked_for(context: Context, replay: Replay) -> None:
    walk(context)
    ids = due(context)[:10]
    context.stopping.set()
    assert ingest.run(ids, context, "message") == []
    assert set(ids) <= set(due(context))
