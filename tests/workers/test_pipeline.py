"""The order of the stages: who is told after whom, and what the sweep sends."""

import pytest

from service.queue.broker import outstanding
from service.queue.messages import Message, Stage
from service.store.work.progress import Progress
from workers.context import Context
from workers.pipeline import ORDER, follow_up
from workers.subscribe import walk
from workers.sweep import LOW_WATER, due_globally, sweep

IDLE = dict.fromkeys(("walking", "items_pending", "unjudged", "clustering_due", "assignment_due", "release_due"), False)


def test_the_order_is_the_designs() -> None:
    assert [step.stage for step in ORDER] == list(Stage)


def test_stored_trajectories_are_handed_to_the_filter_in_batches() -> None:
    # 720 ids in batches of 300: 300, 300 and 120.
    sent = follow_up(Stage.INGEST, range(1, 721))
    assert [(message.stage, len(message.ids)) for message in sent] == [
        ("filter", 300),
        ("filter", 300),
        ("filter", 120),
    ]
    assert [number for message in sent for number in message.ids] == list(range(1, 721))


def test_nothing_stored_wakes_no_one() -> None:
    assert follow_up(Stage.INGEST, []) == []


def test_a_judged_batch_does_not_recluster_the_corpus() -> None:
    assert follow_up(Stage.FILTER, []) == []


def test_global_stages_wake_the_next_one_and_the_last_wakes_none() -> None:
    assert follow_up(Stage.CLUSTER, []) == [Message(Stage.ASSIGN)]
    assert follow_up(Stage.ASSIGN, []) == [Message(Stage.SNAPSHOT)]
    assert follow_up(Stage.SNAPSHOT, []) == []


@pytest.mark.parametrize(
    ("state", "stage"),
    [
        ({}, None),
        ({"clustering_due": True}, Stage.CLUSTER),
        ({"assignment_due": True, "release_due": True}, Stage.ASSIGN),
        ({"release_due": True}, Stage.SNAPSHOT),
        ({"clustering_due": True, "walking": True}, None),
        ({"clustering_due": True, "items_pending": 1}, None),
        ({"release_due": True, "unjudged": True}, None),
    ],
)
def test_the_global_stages_wait_until_the_harvest_rests(state: dict[str, bool], stage: Stage | None) -> None:
    assert due_globally(Progress(**{**IDLE, **state})) == stage


def test_the_sweep_sends_what_is_due_and_not_again_while_it_is_outstanding(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sweep(context) == []
    walk(context)
    sent = sweep(context)
    assert {message.stage for message in sent} == {Stage.INGEST}
    assert outstanding(context.broker, Stage.INGEST) == len(sent) > 1
    monkeypatch.setitem(LOW_WATER, Stage.INGEST, len(sent))
    assert sweep(context) == []


def test_losing_all_messages_loses_only_time(context: Context) -> None:
    walk(context)
    sent = sweep(context)
    context.broker.client.flushall()
    assert sweep(context) == sent
