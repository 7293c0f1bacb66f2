"""Inspections: not at once, then once a day; and what does not hold is named in the log."""

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from service.config import Settings
from service.store.engine import transaction
from tests.api import corpus
from workers import inspecting
from workers.context import Context, open_context
from workers.inspecting import EVERY_SECONDS, FIRST_SECONDS, Inspector


@pytest.fixture
def context(database_url: str, redis_url: str, tmp_path: Path) -> Iterator[Context]:
    """What handlers get, over a corpus with one snapshot."""
    opened = open_context(Settings(data_dir=tmp_path), database_url, redis_url)
    corpus.fill(opened.engine, opened.settings.snapshot_dir)
    yield opened
    opened.engine.dispose()


def test_it_looks_some_time_after_the_start_and_then_once_a_day(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = time.monotonic()
    inspector = Inspector()
    looked = []
    for seconds in (0, FIRST_SECONDS - 5, FIRST_SECONDS + 5, EVERY_SECONDS, FIRST_SECONDS + EVERY_SECONDS + 10):
        monkeypatch.setattr(inspecting.time, "monotonic", lambda seconds=seconds: start + seconds)
        looked.append(inspector(context))
    assert looked == [False, False, True, False, True]


def test_what_does_not_hold_is_named_in_the_log(context: Context, caplog: pytest.LogCaptureFixture) -> None:
    assert inspecting.inspect(context)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    with transaction(context.engine) as session:
        session.execute(text("UPDATE snapshot_rows SET problem_id = 'p-train' WHERE split = 'eval'"))
    assert not inspecting.inspect(context)
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert any("trained_and_held_out: 1 faults, such as p-train" in message for message in told)
