"""The watcher over real files and a real database: what is read, what waits, and what a release makes of it."""

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.exc import OperationalError

from service.config import Settings
from service.errors import ErrorCode, SluiceError
from service.replay.archive import read_archive
from service.replay.recorded import Archive, Run
from service.store.corpus import evidence
from service.store.engine import reading, transaction
from service.store.models import Evidence, LocalEnvelope, LocalGrading, TailPosition, Trajectory, WitnessLine
from service.store.validator import gradings, local
from tests.workers import validator_side as side
from workers import watch
from workers.context import Context, open_context

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def recording(archive: Path) -> Archive:
    return read_archive(archive)


@pytest.fixture
def ours(recording: Archive) -> Run:
    """A run of an agent that searches and asks a model."""
    return max(side.legacy_runs(recording), key=lambda run: len(side.requests(run)))


@pytest.fixture
def beside(database_url: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Context]:
    """A context with a validator beside it."""
    monkeypatch.setattr(watch, "FLOOR_SECONDS", 0.2)
    monkeypatch.setattr(watch, "GRADE_SECONDS", 0.1)
    logs, proxy_log = tmp_path / "logs", tmp_path / "access.log"
    logs.mkdir()
    settings = Settings(source_url=NOWHERE, data_dir=tmp_path, validator_logs=logs, proxy_log=proxy_log)
    context = open_context(settings, database_url, redis_url)
    yield context
    context.engine.dispose()


@contextmanager
def watching(context: Context) -> Iterator[None]:
    """The loop in a thread, ended promptly."""
    with ThreadPoolExecutor() as threads:
        loop = threads.submit(watch.follow, context)
        try:
            yield
        finally:
            context.stopping.set()
            loop.result(timeout=3.0)
            context.stopping.clear()


def until(context: Context, holds: Callable[[], Any], seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.05)


def waiting(context: Context) -> int:
    with reading(context.engine) as session:
        return gradings.waiting(session)


def count(context: Context, table: type) -> int:
    with reading(context.engine) as session:
        return session.scalar(select(func.count()).select_from(table)) or 0


def records(context: Context, run: Run) -> dict[str, dict[str, Any]]:
    """Per item of the run, the records of its newest evidence by kind."""
    with reading(context.engine) as session:
        items = dict(
            session.execute(
                select(Trajectory.trajectory_id, Trajectory.item_key).where(Trajectory.eval_run_id == run.eval_run_id)
            ).all()
        )
        found = evidence.latest(session, list(items))
    return {items[number]: {record["kind"]: record for record in one.witness} for number, one in found.items()}


def test_what_comes_before_its_release_waits_and_is_graded_then(beside: Context, ours: Run, tmp_path: Path) -> None:
    lines = len(side.recorded(ours))
    side.write_access_log(tmp_path / "access.log", [ours])
    with watching(beside):
        path = side.write_run(tmp_path / "logs", ours)
        until(beside, lambda: waiting(beside) == lines)
        shutil.rmtree(path.parent)
        side.release(beside.engine, ours)
        until(beside, lambda: waiting(beside) == 0)
    graded = records(beside, ours)
    assert len(graded) == lines
    assert {one["envelope"]["grade"] for one in graded.values()} == {"same"}
    assert {one["envelope"]["agrees"] for one in graded.values()} == {"both"}
    told = [agreed for one in graded.values() for agreed in one["envelope"]["scored"].values()]
    assert told
    assert set(told) <= {True, None}
    fits = Counter(fit for one in graded.values() if "proxy" in one for fit in one["proxy"]["searches"])
    assert set(fits) == {"matched"}
    claimed = [call for call in side.requests(ours) if "/search/" in call["path"]]
    assert fits["matched"] == len(claimed)
    assert count(beside, WitnessLine) == sum(call["status_code"] is not None for call in side.requests(ours))


def test_what_comes_after_its_release_is_graded_at_once(beside: Context, ours: Run, tmp_path: Path) -> None:
    side.release(beside.engine, ours)
    with watching(beside):
        side.write_run(tmp_path / "logs", ours)
        until(beside, lambda: count(beside, LocalEnvelope) > 0 and waiting(beside) == 0)
        assert {one["envelope"]["grade"] for one in records(beside, ours).values()} == {"same"}
        assert not any("proxy" in one for one in records(beside, ours).values())
        side.write_access_log(tmp_path / "access.log", [ours])  # lines that come late are compared, too
        until(beside, lambda: any("proxy" in one for one in records(beside, ours).values()))


def test_episodes_are_graded_by_their_results(beside: Context, recording: Archive, tmp_path: Path) -> None:
    run = side.envpack_runs(recording)[0]
    side.write_episodes(tmp_path / "logs", run)
    side.release(beside.engine, run)
    with watching(beside):
        until(beside, lambda: count(beside, LocalEnvelope) == len(run.items) and waiting(beside) == 0)
    graded = records(beside, run)
    assert len(graded) == len(run.items)
    assert {one["envelope"]["grade"] for one in graded.values()} == {"same"}
    assert {one["envelope"]["scored"]["success"] for one in graded.values()} <= {True, None}


def test_two_lines_about_one_problem_are_both_kept(beside: Context, ours: Run, tmp_path: Path) -> None:
    first, *_ = side.recorded(ours)
    genuine = side.envelope(first)
    forged = {**genuine, "dialogue": [], "execution_time": 99.0}
    path = side.write_run(tmp_path / "logs", ours)
    path.write_bytes(side.spelled(genuine) + b"\0\0\n" + b'{"problem_id": "cut off' + b"\n" + side.spelled(forged))
    side.release(beside.engine, ours)
    with watching(beside):
        until(beside, lambda: count(beside, LocalEnvelope) == 4)
        until(beside, lambda: "envelope" in records(beside, ours)[first.problem_id])
    record = records(beside, ours)[first.problem_id]["envelope"]
    assert (record["grade"], record["agrees"], record["envelopes"]) == ("conflict", "first", 2)
    assert record["scored"]["execution_seconds"] is True
    assert record["uploaded"]["status"] is False


def test_a_line_that_comes_back_last_is_the_one_that_was_uploaded(beside: Context, ours: Run, tmp_path: Path) -> None:
    first, *_ = side.recorded(ours)
    genuine = side.envelope(first)
    path = side.write_run(tmp_path / "logs", ours)
    path.write_bytes(side.spelled(genuine) + side.spelled({**genuine, "dialogue": []}))
    side.release(beside.engine, ours)
    with watching(beside):
        until(beside, lambda: "envelope" in records(beside, ours)[first.problem_id])
        assert records(beside, ours)[first.problem_id]["envelope"]["agrees"] == "first"
        with path.open("ab") as file:
            file.write(side.spelled(genuine))
        until(beside, lambda: records(beside, ours)[first.problem_id]["envelope"]["agrees"] == "both")
    assert count(beside, LocalEnvelope) == 2


def test_a_file_full_of_lines_costs_what_a_few_cost(
    beside: Context, ours: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "MOST_LINES_OF_A_FILE", 300)
    first, *_ = side.recorded(ours)
    genuine = side.envelope(first)
    junk = [side.spelled({**genuine, "dialogue": [number]}) for number in range(400)]
    path = side.write_run(tmp_path / "logs", ours)
    path.write_bytes(side.spelled(genuine) + b"".join(junk))
    side.release(beside.engine, ours)
    with watching(beside):
        until(beside, lambda: count(beside, LocalEnvelope) == 300 and waiting(beside) == 0)
    record = records(beside, ours)[first.problem_id]["envelope"]
    assert (record["grade"], record["agrees"], record["envelopes"]) == ("conflict", "first", 16)


def test_reading_again_adds_nothing(beside: Context, ours: Run, tmp_path: Path) -> None:
    side.release(beside.engine, ours)
    side.write_run(tmp_path / "logs", ours)
    side.write_access_log(tmp_path / "access.log", [ours])
    tables = (LocalEnvelope, WitnessLine, LocalGrading, Evidence, TailPosition)
    with watching(beside):
        until(beside, lambda: count(beside, LocalEnvelope) > 0 and waiting(beside) == 0)
    before = [count(beside, table) for table in tables]
    with transaction(beside.engine) as session:
        session.execute(TailPosition.__table__.delete())
    with watching(beside):
        until(beside, lambda: count(beside, TailPosition) == 2)
        time.sleep(0.5)
    assert [count(beside, table) for table in tables] == before


def test_released_bytes_that_change_are_graded_again(beside: Context, ours: Run, tmp_path: Path) -> None:
    side.release(beside.engine, ours)
    side.write_run(tmp_path / "logs", ours)
    with watching(beside):
        until(beside, lambda: count(beside, LocalEnvelope) > 0 and waiting(beside) == 0)
    with transaction(beside.engine) as session:
        session.execute(update(LocalGrading).values(payload_sha256="0" * 64))
        gradings.mark_revised(session)
        due = gradings.due(session, 1_000)
    assert len(due) == len(side.recorded(ours))


def test_what_is_kept_long_enough_is_dropped(beside: Context, ours: Run, tmp_path: Path) -> None:
    side.release(beside.engine, ours)
    side.write_run(tmp_path / "logs", ours)
    (tmp_path / "logs" / "eval_never").mkdir()
    (tmp_path / "logs" / "eval_never" / "output.jsonl").write_bytes(b'{"problem_id": "p"}\n')
    side.write_access_log(tmp_path / "access.log", [ours])
    with watching(beside):
        until(beside, lambda: count(beside, WitnessLine) > 0 and waiting(beside) == 1)
    lines = len(side.recorded(ours))
    now = beside.now()

    def kept_after(days: float) -> tuple[int, int, int, int]:
        with transaction(beside.engine) as session:
            gradings.forget(session, now + timedelta(days=days))
        with reading(beside.engine) as session:
            whole = session.scalar(select(func.count()).where(LocalEnvelope.zstd.is_not(None)))
        return count(beside, LocalEnvelope), whole or 0, count(beside, LocalGrading), count(beside, WitnessLine)

    assert kept_after(29)[:3] == (lines + 1, lines + 1, lines)
    assert kept_after(31)[:3] == (lines + 1, 1, 0)
    with reading(beside.engine) as session:
        assert gradings.due(session, 10) == []
    assert kept_after(91) == (0, 0, 0, 0)


def test_a_database_that_is_away_loses_nothing(
    beside: Context, ours: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "FAULT_SECONDS", 0.1)
    real, fails = local.add_envelopes, iter([True, True])

    def failing(*arguments: Any) -> None:
        if next(fails, False):
            raise OperationalError("secret statement", None, OSError("secret"))
        real(*arguments)

    monkeypatch.setattr(local, "add_envelopes", failing)
    with watching(beside):
        path = side.write_run(tmp_path / "logs", ours)
        until(beside, lambda: waiting(beside) > 0)
        shutil.rmtree(path.parent)
    assert waiting(beside) == len(side.recorded(ours))


def test_two_watchers_at_once_read_everything_once(beside: Context, ours: Run, tmp_path: Path) -> None:
    """Leases keep them apart; should one have lost its own unawares, it stops at what the other has written."""
    side.write_access_log(tmp_path / "access.log", [ours])
    path = side.write_run(tmp_path / "logs", ours)
    with ThreadPoolExecutor() as threads:
        both = [threads.submit(watch.follow, beside) for _ in range(2)]
        for number in range(20):
            with path.open("ab") as file:
                file.write(side.spelled({"problem_id": f"p{number}"}))
            time.sleep(0.05)
        until(beside, lambda: waiting(beside) == len(side.recorded(ours)) + 20)
        beside.stopping.set()
        faults = [one.exception(timeout=5) for one in both]
    assert {fault.code for fault in faults if isinstance(fault, SluiceError)} <= {ErrorCode.LEASE_LOST}
    with reading(beside.engine) as session:
        places = session.scalars(select(LocalEnvelope.ordinal).order_by(LocalEnvelope.ordinal)).all()
    assert places == list(range(len(side.recorded(ours)) + 20))
    assert count(beside, WitnessLine) == sum(call["status_code"] is not None for call in side.requests(ours))


def test_a_format_that_tells_too_little_is_refused_before_anything_starts(tmp_path: Path) -> None:
    settings = Settings(proxy_log=tmp_path / "access.log", proxy_log_format="$status")
    with pytest.raises(SluiceError) as refused:
        watch.require(settings)
    assert refused.value.code is ErrorCode.BAD_INPUT
    watch.require(Settings(proxy_log_format="$status"))
    assert not watch.is_wanted(Settings())
