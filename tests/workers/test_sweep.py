"""What the sweep sends while requests are counted: what the plan says, little at a time, and nothing twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from service.config import Settings
from service.queue.broker import outstanding, outstanding_ids, send
from service.queue.messages import Message, Stage
from service.replay.server import Replay
from service.store.engine import reading, transaction
from service.store.harvest import ledger, planning
from workers.context import Context, open_context
from workers.pacing import pace
from workers.stages import filter, ingest
from workers.subscribe import walk
from workers.sweep import sweep

RATE = 6_000
"""High enough that the tests do not wait: a message holds 20 requests at most, and 3,000 are sent at a time."""
SLOW = 48
"""A minute's requests in 8 messages of 6; more is sent below 4 of them, 24 at a time."""


@pytest.fixture
def throttled(database_url: str, redis_url: str, replay: Replay, tmp_path: Path) -> Iterator[Context]:
    """A context whose source is asked at a rate, with everything listed."""
    settings = Settings(source_url=replay.url, data_dir=tmp_path, rate_per_minute=RATE)
    opened = open_context(settings, database_url, redis_url)
    walk(opened)
    yield opened
    opened.engine.dispose()


def slow(context: Context) -> Context:
    settings = context.settings.model_copy(update={"rate_per_minute": SLOW})
    return Context(settings, context.engine, context.broker, context.source, context.files, context.count_tokens)


def ids(sent: list[Message]) -> list[int]:
    return [number for message in sent if message.stage is Stage.INGEST for number in message.ids]


def test_half_a_minute_is_sent_and_more_only_once_half_of_it_is_done(throttled: Context) -> None:
    context = slow(throttled)
    sent = sweep(context)
    with reading(context.engine) as session:
        cost = {item.ledger_id: item.cost for item in open_items(context, session)}
    assert 24 <= sum(cost[number] for number in ids(sent)) <= 25
    assert all(6 <= sum(cost[number] for number in message.ids) <= 7 for message in sent[:-1])
    assert outstanding(context.broker, Stage.INGEST) == len(sent) == 4
    assert outstanding_ids(context.broker, Stage.INGEST) == set(ids(sent))
    assert sweep(context) == []
    one = next(iter(context.broker.client.hkeys("sluice:ingest.msgs")))
    context.broker.client.hdel("sluice:ingest.msgs", one)
    outstanding_before = outstanding_ids(context.broker, Stage.INGEST)
    assert not outstanding_before & set(ids(sweep(context)))


def open_items(context: Context, session: object) -> list[planning.Candidate]:
    return planning.outlook(session, context.policies.rules.digest, context.now(), ()).candidates  # type: ignore[arg-type]


def test_everything_due_is_sent_in_the_end_and_once(throttled: Context) -> None:
    with reading(throttled.engine) as session:
        everything = set(ledger.due(session, throttled.now(), 10_000))
    sent: list[int] = []
    context = slow(throttled)
    while found := ids(sweep(context)):
        sent += found
        with transaction(context.engine) as session:
            ledger.mark_fetched(session, found, context.now())
        context.broker.client.flushall()
    assert sorted(sent) == sorted(everything)


def test_the_plan_follows_the_verdicts(throttled: Context) -> None:
    context = slow(throttled)
    first = ids(sweep(context))
    context.broker.client.flushall()
    assert ids(sweep(context)) == first
    context.broker.client.flushall()
    stored = ingest.run(first, throttled, "message")
    assert stored
    unjudged = ids(sweep(context))
    context.broker.client.flushall()
    filter.run(stored, throttled, "message")
    with reading(context.engine) as session:
        known = planning.outlook(session, context.policies.rules.digest, context.now(), ()).knowledge
    after = sweep(context)
    covered = {problem for problem, told in known.problems.items() if told.kept}
    assert covered, "the first items are the likeliest, so some are kept"
    assert not set(ids(after)) & set(first)
    assert ids(after) != unjudged
    with reading(context.engine) as session:
        problem_of = dict(
            session.execute(text("SELECT ledger_id, problem_id FROM harvest_ledger")).all(),
        )
    longest_due = 2  # two in 24 requests at most have their turn whatever they promise
    again = [number for number in ids(after) if problem_of[number] in covered]
    assert len(again) <= longest_due


@pytest.mark.parametrize(
    ("rate", "low_water", "requests", "message_requests"),
    [(1, 1, 0.5, 1), (10, 5, 5.0, 1), (50, 4, 25.0, 6), (6_000, 150, 3_000.0, 20)],
)
def test_about_a_minute_is_outstanding(rate: int, low_water: int, requests: float, message_requests: int) -> None:
    assert pace(rate) == (low_water, requests, message_requests)
    # Just below the low water, and what is then sent: at most a minute's, but for the last item of each message.
    assert (low_water - 1) * message_requests + requests <= rate


@pytest.mark.parametrize(("planning_seconds", "requests"), [(6.0, 25.0), (12.0, 50.0), (60.0, 100.0)])
def test_what_is_sent_lasts_until_the_next_plan_is_made(planning_seconds: float, requests: float) -> None:
    # The sweep takes 12 s and rests 48: 60 s at 50 a minute. Two minutes at most.
    assert pace(50, planning_seconds).requests == requests


def test_no_plan_is_made_while_all_that_is_due_is_under_way(
    throttled: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    with reading(throttled.engine) as session:
        due = ledger.due(session, throttled.now(), 10_000)
    send(throttled.broker, Message(Stage.INGEST, tuple(due)))
    monkeypatch.setattr(planning, "outlook", None)  # calling it would raise
    assert sweep(throttled) == []
    throttled.broker.client.flushall()
    with pytest.raises(TypeError):
        sweep(throttled)
