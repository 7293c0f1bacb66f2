"""Ingest: what each refusal leaves in the ledger, and that faults on the way lose nothing."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select, update

from service.replay.faults import Fault
from service.replay.server import Replay
from service.source.listing import Refused
from service.source.refusals import Refusal
from service.store import ledger
from service.store.engine import reading, transaction
from service.store.models import LedgerItem, LedgerState, Trajectory
from workers.context import Context
from workers.stages import ingest
from workers.stages.ingest import MAX_ATTEMPTS, REST, after_refusal
from workers.subscribe import walk

NOW = datetime(2026, 11, 1, tzinfo=UTC)
SOON = NOW + timedelta(seconds=7)


@pytest.mark.parametrize(
    ("reason", "attempts", "expected"),
    [
        (Refusal.NO_OBJECT, 0, (LedgerState.GONE, NOW)),
        (Refusal.RACE_IN_FLIGHT, 0, (LedgerState.EMBARGOED, SOON)),
        (Refusal.RACE_IN_FLIGHT, 500, (LedgerState.EMBARGOED, SOON)),
        (Refusal.TRUNCATED, 0, (LedgerState.FAILED, SOON)),
        (Refusal.TRUNCATED, MAX_ATTEMPTS - 2, (LedgerState.FAILED, SOON)),
        (Refusal.TRUNCATED, MAX_ATTEMPTS - 1, (LedgerState.FAILED, NOW + REST)),
    ],
)
def test_what_a_refusal_leads_to(reason: Refusal, attempts: int, expected: tuple[LedgerState, datetime]) -> None:
    assert after_refusal(Refused(reason, None if reason.terminal else SOON), attempts, NOW) == expected


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
    assert after["failed", "rate_limited"] == 2
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
