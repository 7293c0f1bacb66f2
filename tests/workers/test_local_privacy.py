"""Local bytes never leave: everything of the validator's is marked, and no mark is found outside the local tables."""

import io
import json
import logging
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import redis
import zstandard
from sqlalchemy import Engine, func, select, text
from starlette.testclient import TestClient

from service.api import create_app
from service.api.app import build_api
from service.config import Settings
from service.replay.archive import read_archive
from service.replay.recorded import Run
from service.store.engine import reading
from service.store.models import Base, Lease, LocalEnvelope, LocalGrading, Trajectory, WitnessLine
from service.store.release import snapshots
from service.store.validator import gradings
from service.store.work.leases import LeaseName
from tests.workers import validator_side as side
from tests.workers.harness import Pipeline

MARK = "zqxlocalzqx"
"""Nothing generated holds it, and neither escaping nor encoding changes it."""
LOCAL_TABLES = {"local_envelopes", "witness_lines", "local_gradings", "tail_positions"}
PAGES = ("/", "/partials/overview", "/docs", "/openapi.json")


def marked(value: Any) -> Any:
    """The value with a mark in every text and every name of it; numbers stay."""
    if isinstance(value, str):
        return f"{value} {MARK}"
    if isinstance(value, dict):
        return {**{name: marked(member) for name, member in value.items()}, MARK: MARK}
    return [marked(member) for member in value] if isinstance(value, list) else value


def marked_line(row: dict[str, Any], **kept: Any) -> bytes:
    """A line whose texts are all marked, but for what it is found by."""
    return side.spelled({**marked(row), **kept})


def write_marked_run(folder: Path, run: Run) -> int:
    """A run of which every line is marked, beside lines of every kind of fault; returns the lines about its items."""
    path = folder / f"eval_{run.eval_run_id}" / "output.jsonl"
    path.parent.mkdir(parents=True)
    lines = []
    for number, item in enumerate(side.recorded(run)):
        row = side.envelope(item)
        if number % 3 == 0:
            lines.append(side.spelled(row))  # the true one first: a conflict
        lines.append(marked_line(row, problem_id=item.problem_id, status=row["status"]))
    faults = [
        marked_line({"problem_id": "", "status": ""}),
        f'{{"problem_id": "{MARK}", "dialogue": [{{"think": "{MARK}\n'.encode(),
        f'\0\0{{"problem_id": "{MARK}", "execution_time": NaN}}\n'.encode(),
        f'{{"problem_id": "{MARK}2", "status": {{"{MARK}": 1}}}}\n'.encode(),
        f'{{"problem_id": "{MARK}3", "x": "'.encode() + MARK.encode() * 500_000 + b'"}\n',
        MARK.encode() + b"\xff\n",
    ]
    path.write_bytes(b"".join(lines + faults) + f'{{"problem_id": "{MARK}4", "cut'.encode())
    for name in (f"eval_{MARK}", f"eval_{MARK}\n\x1b[31m", f"environment-runs/{MARK}/sandbox"):
        other = folder / name / ("sandbox_output.jsonl" if "sandbox" in name else "output.jsonl")
        other.parent.mkdir(parents=True)
        other.write_bytes(b"".join(faults))
    (folder / f"eval_{MARK}link").symlink_to(path.parent)
    (folder / f"eval_{MARK}file").mkdir()
    (folder / f"eval_{MARK}file" / "output.jsonl").symlink_to("/etc/hostname")
    return len(lines)


def write_marked_episodes(folder: Path, run: Run) -> int:
    path = folder / "environment-runs" / run.eval_run_id / "episode_results.jsonl"
    path.parent.mkdir(parents=True)
    rows = [side.result(run, item) for item in run.items]
    kept = [{"eval_run_id": row["eval_run_id"], "task_id": row["task_id"]} for row in rows]
    path.write_bytes(b"".join(marked_line(row, **names) for row, names in zip(rows, kept, strict=True)))
    return len(rows)


def write_marked_access_log(path: Path, run: Run) -> None:
    """True requests with a marked argument more, strange ones, and garbage."""
    lines = []
    for call in side.requests(run):
        if call["status_code"] is not None:
            lines.append(side.access_line(call, agent=MARK))
            params = {**call.get("params", {}), MARK: MARK}
            lines.append(side.access_line({**call, "params": params}, agent=MARK))
            lines.append(side.access_line({**call, "path": f"/{MARK}"}))
    lines += [f"{MARK}\n", f'{MARK} - {MARK} [{MARK}] "{MARK}" {MARK}\n', "\0\n"]
    path.write_text("".join(lines))


@pytest.fixture
def beside(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Workers log everything and watch a folder; what is given back fills it, and tells how many lines are graded."""
    recording, logs = read_archive(archive), tmp_path / f"logs-{MARK}"
    logs.mkdir()
    run = max(side.legacy_runs(recording), key=lambda one: len(side.requests(one)))
    episodes = side.envpack_runs(recording)[0]
    monkeypatch.setenv("SLUICE_VALIDATOR_LOGS", str(logs))
    monkeypatch.setenv("SLUICE_PROXY_LOG", str(tmp_path / "access.log"))
    monkeypatch.setenv("SLUICE_LOG_LEVEL", "DEBUG")

    def fill() -> int:
        write_marked_access_log(tmp_path / "access.log", run)
        return write_marked_run(logs, run) + write_marked_episodes(logs, episodes)

    return fill


def run_until_graded(work: Pipeline, fill: Callable[[], int]) -> None:
    """Harvest, judge and release, let the validator write meanwhile, and grade, until nothing is left to do."""
    deadline = time.monotonic() + 120
    lines: int | None = None
    with work.worker() as process:
        while not (lines is not None and _graded(work.engine, lines) and work.done_since(0)):
            assert process.poll() is None, "the worker died"
            assert time.monotonic() < deadline
            time.sleep(0.2)
            if lines is None and _is_watched(work.engine):
                time.sleep(1.0)  # until the kernel has been asked to tell of changes
                lines = fill()


def _is_watched(engine: Engine) -> bool:
    with reading(engine) as session:
        return session.scalar(select(Lease.token).where(Lease.name == LeaseName.WATCH)) is not None


def _graded(engine: Engine, lines: int) -> bool:
    with reading(engine) as session:
        done = session.scalar(select(func.count()).where(LocalEnvelope.graded_at.is_not(None)))
        return done == lines and not gradings.due(session, 1)


def everything_served(work: Pipeline, settings: Settings) -> Iterator[tuple[str, bytes]]:
    """Every path of the service, with every id there is."""
    app = build_api(work.engine, settings)
    with reading(work.engine) as session:
        graded = session.scalars(select(LocalGrading.trajectory_id)).all()
        others = session.scalars(select(Trajectory.trajectory_id).limit(20)).all()
        (snapshot, *_) = snapshots.listing(session)
    files = [path.relative_to(work.data_dir / "snapshots" / snapshot.snapshot_id) for path in snapshot_files(work)]
    ids: dict[str, list[Any]] = {
        "snapshot_id": [snapshot.snapshot_id],
        "trajectory_id": [*graded, *others],
        "name": [str(name) for name in files],
    }
    client = TestClient(create_app(work.engine, settings), raise_server_exceptions=False)
    for path in [*app.openapi()["paths"], *PAGES]:
        urls = [path]
        for name in re.findall(r"{(\w+)}", path):
            urls = [url.replace(f"{{{name}}}", str(value)) for url in urls for value in ids.get(name, ["1"])]
        for url in urls:
            answer = client.get(url)
            assert answer.status_code < 500, url
            yield url, answer.content + str(answer.headers).encode()
    for way in ("messages", "atif"):
        yield way, client.get(f"/v1/trajectories/{graded[0]}?format={way}").content
    yield "an error", client.get(f"/v1/trajectories?problem_id={graded[0]}&agent=x").content


def snapshot_files(work: Pipeline) -> list[Path]:
    return [path for path in (work.data_dir / "snapshots").rglob("*") if path.is_file()]


def plain(path: Path) -> bytes:
    """What a reader of a published file reads."""
    content = path.read_bytes()
    if path.suffix == ".zst":
        with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(content)) as reader:
            return reader.read()
    if path.suffix == ".parquet":
        return json.dumps(pq.read_table(path).to_pylist(), default=str).encode()
    return content


def everything_stored(work: Pipeline) -> Iterator[tuple[str, bytes]]:
    """Every row of every table, compressed bytes unpacked."""
    with work.engine.connect() as connection:
        for name, table in Base.metadata.tables.items():
            rows = connection.execute(text(f"SELECT CAST(t AS text) FROM {name} t")).scalars()
            yield name, "\n".join(rows).encode()
            if "zstd" in table.columns:
                packed = connection.execute(select(table.c.zstd).where(table.c.zstd.is_not(None))).scalars()
                yield name, b"\n".join(zstandard.decompress(one) for one in packed)


def everything_queued(redis_url: str) -> Iterator[tuple[str, bytes]]:
    with redis.Redis.from_url(redis_url) as client:
        for key in client.scan_iter():
            kind = client.type(key)
            read = {b"string": client.get, b"hash": client.hgetall, b"list": lambda one: client.lrange(one, 0, -1)}
            yield repr(key), key + repr(read[kind](key) if kind in read else b"").encode()


def test_no_mark_leaves(
    beside: Callable[[], int],
    work: Pipeline,
    redis_url: str,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    caplog.set_level(logging.DEBUG)
    run_until_graded(work, beside)
    leaks: list[str] = []

    def look(place: str, content: bytes) -> None:
        if MARK.encode() in content:
            at = content.index(MARK.encode())
            leaks.append(f"{place}: {content[max(0, at - 80) : at + 40]!r}")

    worker_log = "".join(capfd.readouterr())
    assert "DEBUG" in worker_log
    look("the worker's log", worker_log.encode())
    local = b""
    for name, content in everything_stored(work):
        if name in LOCAL_TABLES:
            local += content
        else:
            look(f"table {name}", content)
    assert local.count(MARK.encode()) > 1_000
    settings = Settings(data_dir=work.data_dir, database_url=work.database_url, redis_url=redis_url)
    served = 0
    for url, content in everything_served(work, settings):
        served += 1
        look(url, content)
    assert served > 60
    files = snapshot_files(work)
    assert len(files) > 5
    for path in files:
        look(str(path.relative_to(work.data_dir)), path.name.encode() + plain(path))
    for key, content in everything_queued(redis_url):
        look(f"queue {key}", content)
    for log_file in tmp_path_factory.getbasetemp().glob("services*/**/*.log"):
        look(log_file.name, log_file.read_bytes())
    look("the service's log", caplog.text.encode())
    for command in (["stats", "--json"], ["snapshot", "list", "--json"], ["doctor", "--json"]):
        look(" ".join(command), _said(command, settings))
    assert leaks == []
    _verdicts_stand(work)


def _said(command: list[str], settings: Settings) -> bytes:
    """All that a command prints, the validator's folder being set."""
    ran = subprocess.run(
        [sys.executable, "-c", "from service.cli import main; main()", *command],
        env=settings.environment(),
        capture_output=True,
        timeout=60,
    )
    return ran.stdout + ran.stderr


def _verdicts_stand(work: Pipeline) -> None:
    """New evidence led to new verdicts, which differ from those before in trust and in what follows from it."""
    query = """
        SELECT count(*), count(DISTINCT trajectory_id), count(*) FILTER (WHERE trust = 'contradicted'),
               count(DISTINCT (trajectory_id, jsonb_path_query_array(calls, '$[*].issuer')))
        FROM verdicts WHERE trajectory_id IN (SELECT trajectory_id FROM local_gradings)
    """
    with work.engine.connect() as connection:
        verdicts, items, contradicted, attributions = connection.execute(text(query)).one()
        lines = connection.scalar(select(func.count()).select_from(WitnessLine))
    assert items > 0
    assert items <= verdicts <= 2 * items
    assert contradicted > 0  # the lines of this log are marked, so they are not what was released
    assert attributions == items  # who issued a call is not the validator's to say
    assert lines
