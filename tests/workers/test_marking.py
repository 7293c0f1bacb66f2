"""Marking: every published snapshot tells what is known of its rows, however often and by whomever it is marked."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.config import Settings
from service.domain.rows.manifest import STATUS_NAME, initial_status
from service.domain.sn15.tombstones import Subject, TombstoneReason
from service.store.corpus import tombstones
from service.store.corpus.tombstones import Word
from service.store.engine import transaction
from service.store.release import marks
from service.store.release.files import FileStore
from tests.api import corpus
from workers import marking
from workers.context import Context, open_context
from workers.marking import mark


@pytest.fixture
def context(database_url: str, redis_url: str, tmp_path: Path) -> Iterator[Context]:
    """What handlers get, over a corpus with one snapshot."""
    opened = open_context(Settings(data_dir=tmp_path), database_url, redis_url)
    yield opened
    opened.engine.dispose()


@pytest.fixture
def snapshot_id(context: Context) -> str:
    return corpus.fill(context.engine, context.settings.snapshot_dir)


def tell(context: Context, reason: TombstoneReason | None, run: str = "run-v1") -> None:
    """Let the source say whether a run counts. All rows of the snapshot are of `run-v1`."""
    with transaction(context.engine) as session:
        tombstones.settle(session, Subject.RUN, [Word(run, reason, "runs", {})])


def status(context: Context, snapshot_id: str) -> bytes:
    return context.files.path(snapshot_id, STATUS_NAME).read_bytes()


def test_a_snapshot_is_marked_once_and_unmarked_when_the_run_counts_again(context: Context, snapshot_id: str) -> None:
    first = status(context, snapshot_id)
    assert mark(context) == []
    tell(context, TombstoneReason.RUN_INVALIDATED)
    assert mark(context) == [snapshot_id]
    told = context.files.document(snapshot_id, STATUS_NAME)
    keys = ["run-v1/p-eval", "run-v1/p-train"]
    assert told["marks"]["run_invalidated"]["trajectory_keys"] == keys
    assert mark(context) == []
    tell(context, None)
    assert mark(context) == [snapshot_id]
    assert status(context, snapshot_id) == first


def test_nothing_is_read_of_a_snapshot_of_which_nothing_new_is_known(
    context: Context, snapshot_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark(context)
    monkeypatch.setattr(FileStore, "document", lambda *_: pytest.fail("its status was read"))
    assert mark(context) == []


def test_what_is_about_no_row_of_it_leaves_the_status_as_it_is(context: Context, snapshot_id: str) -> None:
    before = status(context, snapshot_id)
    tell(context, TombstoneReason.RUN_INVALIDATED, run="run-v2")
    assert mark(context) == []
    assert status(context, snapshot_id) == before
    with transaction(context.engine) as session:
        assert marks.due(session) == []


def test_one_that_dies_before_it_notes_what_it_wrote_is_made_good(
    context: Context, snapshot_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(context, TombstoneReason.RUN_INVALIDATED)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(marking.marks, "record", die)
        with pytest.raises(KeyboardInterrupt):
            mark(context)
    written = status(context, snapshot_id)
    assert mark(context) == [], "the status is written already"
    assert status(context, snapshot_id) == written
    with transaction(context.engine) as session:
        assert marks.due(session) == []


def test_who_marks_last_knows_most(context: Context, snapshot_id: str) -> None:
    start = threading.Barrier(5)

    def work() -> None:
        start.wait(timeout=10)
        for _ in range(3):
            mark(context)

    markers = [threading.Thread(target=work) for _ in range(4)]
    for thread in markers:
        thread.start()
    start.wait(timeout=10)
    for reason in (TombstoneReason.RUN_EXCLUDED, None, TombstoneReason.RUN_INVALIDATED):
        tell(context, reason)
    for thread in markers:
        thread.join(timeout=30)
    mark(context)
    assert list(context.files.document(snapshot_id, STATUS_NAME)["marks"]) == ["run_invalidated"]


def test_a_snapshot_whose_files_are_elsewhere_is_left_to_who_has_them(context: Context, snapshot_id: str) -> None:
    folder = context.settings.snapshot_dir / snapshot_id
    aside = context.settings.data_dir / "aside"
    tell(context, TombstoneReason.RUN_INVALIDATED)
    folder.rename(aside)
    assert mark(context) == []
    aside.rename(folder)
    assert mark(context) == [snapshot_id]


def test_a_status_from_before_there_were_marks_is_brought_up_to_date(context: Context, snapshot_id: str) -> None:
    old = {name: value for name, value in initial_status().items() if name != "marks"}
    context.files.set_status(snapshot_id, old)
    assert mark(context) == [snapshot_id]
    assert context.files.document(snapshot_id, STATUS_NAME) == initial_status()
