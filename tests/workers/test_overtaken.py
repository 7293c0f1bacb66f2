"""Objects that change or come back while or after they are asked for: the newest one listed is what is stored."""

from collections.abc import Iterator
from dataclasses import replace as changed
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, update

from service.replay.archive import read_archive
from service.replay.faults import Fault, Faults
from service.replay.recorded import LegacyItem, Run
from service.replay.server import Replay, replaying
from service.source.answers import FetchTarget
from service.store.corpus import trajectories
from service.store.engine import reading, transaction
from service.store.models import LedgerItem, LedgerState, Tombstone, Trajectory
from service.store.work.progress import progress
from tests.replay.recording import write_recording
from tests.workers import late
from workers.context import Context
from workers.stages import ingest
from workers.subscribe import walk

NEWER = datetime(2026, 7, 1, tzinfo=UTC)
NO_OBJECT = b'{"detail":"no","error_code":"ARTIFACT_NOT_FOUND"}'
OFTEN = 10**6


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[Replay]:
    """Small races that are complete."""
    archive = read_archive(write_recording(tmp_path / "recording"))
    for race_id, race in archive.races.items():
        archive.races[race_id] = changed(race, status="RACE_COMPLETE", completed_at=race.started_at)
    with replaying(archive, faults=Faults()) as server:
        yield server


def a_stored_item(replay: Replay) -> tuple[Run, LegacyItem]:
    run = next(run for run in replay.archive.runs.values() if run.execution_kind == "legacy_shoppingbench")
    return run, next(item for item in run.items if item.packed is not None)


def row(context: Context, run: Run, item: LegacyItem) -> LedgerItem:
    wanted = (LedgerItem.eval_run_id == run.eval_run_id) & (LedgerItem.item_key == item.problem_id)
    with reading(context.engine) as session:
        found = session.scalars(select(LedgerItem).where(wanted)).one()
        session.expunge(found)
        return found


def rounds(context: Context, times: int = 2) -> None:
    for _ in range(times):
        late.much_later(context, items=True)
        walk(context)
        late.fetch(context)


@pytest.mark.parametrize("first", ["bytes", "refusal"])
@pytest.mark.parametrize("stored", [False, True])
def test_an_object_listed_while_the_one_before_is_on_the_way_is_fetched(
    context: Context, replay: Replay, monkeypatch: pytest.MonkeyPatch, first: str, stored: bool
) -> None:
    run, item = a_stored_item(replay)
    walk(context)
    if stored:
        late.fetch(context)
        run = late.with_item(run, item.problem_id, payload=b"[ ]", updated_at=late.INVALIDATED_AT)
        replay.archive.replace(run)
        late.much_later(context, items=True)
        walk(context)
    fetch = type(context.source).fetch

    def overtaken(source: Any, target: FetchTarget) -> Any:
        monkeypatch.setattr(type(context.source), "fetch", fetch)
        if first == "refusal":
            replay.faults.add(Fault("/download-url", times=1, status=404, body=NO_OBJECT))
        answer = fetch(source, target)
        replay.archive.replace(late.with_item(run, item.problem_id, payload=b"[  ]", updated_at=NEWER))
        late.much_later(context, items=True)
        walk(context)
        return answer

    monkeypatch.setattr(type(context.source), "fetch", overtaken)
    ledger_id = row(context, run, item).ledger_id
    ingest.run([ledger_id], context, "message")
    rounds(context)
    with reading(context.engine) as session:
        wanted = select(Trajectory.trajectory_id).where(Trajectory.ledger_id == ledger_id)
        assert trajectories.payload(session, session.scalars(wanted).one()) == b"[  ]"


def test_what_was_withdrawn_and_is_there_again_counts_again(context: Context, replay: Replay) -> None:
    run, item = a_stored_item(replay)
    walk(context)
    late.fetch(context)
    replay.archive.replace(changed(run, items=tuple(each for each in run.items if each is not item)))
    replay.faults.add(Fault("/download-url", times=OFTEN, status=404, body=NO_OBJECT))
    rounds(context, 1)
    with reading(context.engine) as session:
        assert [(stone.reason, stone.is_lifted) for stone in session.scalars(select(Tombstone))] == [
            ("withdrawn", False)
        ]
    asked = len(replay.faults.requests)
    rounds(context, 1)
    assert not [path for path in replay.faults.requests[asked:] if "download-url" in path], "it is known to be away"
    replay.faults.clear()
    replay.archive.replace(run)
    rounds(context)
    with reading(context.engine) as session:
        stones = session.scalars(select(Tombstone).order_by(Tombstone.tombstone_id)).all()
    assert [stone.is_lifted for stone in stones] == [False, True]


def test_a_host_of_objects_that_has_none_for_a_while_loses_none(context: Context, replay: Replay) -> None:
    run, item = a_stored_item(replay)
    walk(context)
    replay.faults.add(Fault("^/(?!v1)", times=OFTEN, status=404))
    late.fetch(context)
    waiting = row(context, run, item)
    assert (waiting.state, waiting.reason) == (LedgerState.FAILED, "object_absent")
    replay.faults.clear()
    with transaction(context.engine) as session:  # six hours pass
        session.execute(update(LedgerItem).values(next_try_at=func.now()))
    late.fetch(context)
    assert row(context, run, item).state is LedgerState.FETCHED


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, b'{"detail":"no","error_code":"ARTIFACT_NOT_RELEASED"}'),
        (403, b'{"detail":"no","error_code":"RACE_IN_FLIGHT"}'),
        (400, b"{}"),
    ],
)
def test_a_changed_item_that_has_to_wait_keeps_no_release_waiting(
    context: Context, replay: Replay, status: int, body: bytes
) -> None:
    run, item = a_stored_item(replay)
    walk(context)
    late.fetch(context)
    replay.archive.replace(late.with_item(run, item.problem_id, updated_at=late.INVALIDATED_AT))
    late.much_later(context, items=True)
    walk(context)
    replay.faults.add(Fault("/download-url", times=OFTEN, status=status, body=body))
    late.fetch(context)
    assert row(context, run, item).state is LedgerState.CHANGED
    with reading(context.engine) as session:
        assert progress(session, context.policies, context.now()).items_pending == 0
