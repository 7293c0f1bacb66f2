"""SN15's own count of trajectories: read now and then, held against ours, and of no consequence."""

import pytest
from sqlalchemy import func, select, update

from service.replay.faults import Fault
from service.replay.server import Replay
from service.store.engine import reading, transaction
from service.store.harvest.coverage import coverage
from service.store.models import TrajectoryHistory
from tests.workers import late
from workers import history
from workers.context import Context


def an_hour_later(context: Context) -> None:
    with transaction(context.engine) as session:
        session.execute(update(TrajectoryHistory).values(read_at=late.LONG_AGO))


def asked(replay: Replay) -> int:
    return sum(path.endswith("/trajectories/history") for path in replay.faults.requests)


def rows(context: Context) -> int:
    with reading(context.engine) as session:
        return session.scalar(select(func.count()).select_from(TrajectoryHistory))


def test_the_source_is_asked_once_an_hour_and_what_it_says_again_adds_no_row(context: Context, replay: Replay) -> None:
    for _ in range(2):
        history.read(context)
        history.read(context)
        an_hour_later(context)
    assert (asked(replay), rows(context)) == (2, 1)


def test_the_count_is_that_of_all_there_is(context: Context, replay: Replay) -> None:
    history.read(context)
    late.harvest(context)
    with reading(context.engine) as session:
        found = coverage(session).history
    pairs = {(run.agent_version_id, late.key_of(item)) for run in replay.archive.runs.values() for item in run.items}
    assert (found.total, found.listed) == (len(pairs), len(pairs))
    assert found.difference == len(pairs) - found.stored


@pytest.mark.parametrize("body", [b'{"total": null, "series": []}', b'{"total": "many", "series": {"a": 1}}', b"{}"])
def test_a_source_that_has_not_counted_says_nothing(context: Context, replay: Replay, body: bytes) -> None:
    replay.faults.add(Fault("/trajectories/history", status=200, body=body))
    history.read(context)
    with reading(context.engine) as session:
        found = coverage(session).history
    assert (found.total, found.difference) == (None, None)
    assert found.read_at is not None


def test_a_source_that_does_not_say_holds_nothing_up(context: Context, replay: Replay) -> None:
    replay.faults.add(Fault("/trajectories/history", status=404, body=b"<html>"))
    history.read(context)
    assert rows(context) == 0
