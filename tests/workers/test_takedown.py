"""A takedown: no content of it anywhere any more, whatever dies on the way, and every other row as it was."""

import io
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pyarrow.parquet as pq
import pytest
import zstandard
from sqlalchemy import select
from starlette.testclient import TestClient
from typer.testing import CliRunner

from service.api import create_app
from service.cli.app import app
from service.cli.reaudit import reaudit
from service.config import Settings
from service.domain.rows.records import row_id
from service.domain.sn15.tombstones import Subject, TombstoneReason
from service.embedded import Services
from service.store.corpus import tombstones
from service.store.corpus.tombstones import Word
from service.store.engine import reading, transaction
from service.store.models import Evidence, Payload, Trajectory
from service.store.release import invariants
from tests.workers import late
from workers.context import Context, open_context
from workers.marking import mark


@pytest.fixture
def corpus(
    new_database: Callable[[], AbstractContextManager[str]],
    services: Services,
    source_url: str,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Context]:
    """A harvested corpus with its snapshot, where the command line finds it."""
    folder = tmp_path_factory.mktemp("takedown")
    with new_database() as url:
        settings = Settings(source_url=source_url, data_dir=folder, database_url=url, redis_url=services.redis_url)
        context = open_context(settings, url, services.redis_url)
        late.harvest(context)
        for name, value in {"DATABASE_URL": url, "REDIS_URL": services.redis_url, "DATA_DIR": str(folder)}.items():
            monkeypatch.setenv(f"SLUICE_{name}", value)
        yield context
        context.engine.dispose()


def redact(*arguments: str) -> dict:
    ran = CliRunner().invoke(app, ["redact", *arguments, "--reason", "asked for", "--json"], catch_exceptions=False)
    assert ran.exit_code == 0
    return json.loads(ran.stdout)


def lines(context: Context, snapshot_id: str) -> dict[str, dict[str, dict]]:
    """Lines of every compressed file by what names them."""
    told = {}
    for entry in context.files.manifest(snapshot_id).files:
        if entry.format != "parquet":
            content = context.files.path(snapshot_id, entry.name).read_bytes()
            text = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(content)).read()
            rows = [json.loads(line) for line in text.splitlines()]
            names = [row.get("row_id") or row.get("session_id") or row["problem_id"] for row in rows]
            told[entry.name] = {f"{name} {row.get('turn')}": row for name, row in zip(names, rows, strict=True)}
    return told


def test_content_is_gone_from_files_store_and_api_and_the_rest_is_as_it_was(corpus: Context) -> None:
    snapshot_id = late.newest(corpus)
    key = min(late.keys(corpus, snapshot_id))
    name = row_id(key)
    before = lines(corpus, snapshot_id)
    told = redact(key)
    assert told == {"redacted": 1, "snapshots": [snapshot_id]}
    after = lines(corpus, snapshot_id)
    for file, rows in before.items():
        for label, row in rows.items():
            if not label.startswith(name):
                assert after[file][label] == row
            elif file.startswith("data/"):
                assert after[file][label]["messages"] == []
                assert after[file][label]["answer_ids"] == []
                assert after[file][label]["problem_id"] == row["problem_id"]
            else:
                assert label not in after[file]
    for entry in corpus.files.manifest(snapshot_id).files:
        if entry.format == "parquet":
            for row in pq.read_table(corpus.files.path(snapshot_id, entry.name)).to_pylist():
                assert row["row_id"] != name or row["messages"] == []
    status = corpus.files.document(snapshot_id, "status.json")
    assert status["redacted_rows"] == [name]
    changed = {file for file, rows in before.items() if rows != after[file]}
    parquet = {file.replace("jsonl.zst", "parquet") for file in changed if file.startswith("data/")}
    assert set(status["files"]) == changed | parquet
    with reading(corpus.engine) as session:
        number, zstd = session.execute(
            select(Trajectory.trajectory_id, Payload.zstd)
            .join(Evidence, Evidence.trajectory_id == Trajectory.trajectory_id)
            .join(Payload, Payload.payload_sha256 == Evidence.payload_sha256)
            .where(Trajectory.eval_run_id == key.partition("/")[0], Trajectory.problem_id == key.partition("/")[2])
        ).one()
    assert zstandard.decompress(zstd) == b""
    client = TestClient(create_app(corpus.engine, corpus.settings))
    answer = client.get(f"/v1/trajectories/{number}").json()
    assert (answer["withheld"], answer["content"], answer["judgement"]) == ("redacted", None, None)
    assert answer["verdict"]["answer"] is None
    told = client.get(f"/v1/trajectories/{number}/verdict").json()
    assert told["withheld"] == "redacted"
    assert all(entry["what"] is None for entry in told["entries"])


def test_everything_still_verifies(corpus: Context) -> None:
    snapshot_id = late.newest(corpus)
    redact(min(late.keys(corpus, snapshot_id)))
    assert reaudit(corpus.engine, corpus.files, snapshot_id).ok
    with reading(corpus.engine) as session:
        assert all(check.ok for check in invariants.checks(session, corpus.files, bytes_too=True))
    client = TestClient(create_app(corpus.engine, corpus.settings))
    for entry in corpus.files.entries(snapshot_id):
        answer = client.get(f"/v1/snapshots/{snapshot_id}/files/{entry.name}")
        assert answer.headers["etag"] == f'"{entry.sha256}"'
        assert len(answer.content) == entry.bytes
    entry = corpus.files.entries(snapshot_id)[0]
    path = corpus.files.path(snapshot_id, entry.name)
    path.write_bytes(path.read_bytes() + b"x")
    assert not reaudit(corpus.engine, corpus.files, snapshot_id).ok


def test_again_it_changes_nothing_and_workers_say_the_same(corpus: Context) -> None:
    snapshot_id = late.newest(corpus)
    key = min(late.keys(corpus, snapshot_id))
    redact(key)
    mark(corpus)
    status = corpus.files.document(snapshot_id, "status.json")
    assert status["state"] == "marked"
    assert list(status["marks"]) == ["redacted"]
    assert redact(key)["snapshots"] == []
    mark(corpus)
    assert corpus.files.document(snapshot_id, "status.json") == status


def test_a_run_and_a_miner_go_as_a_whole_and_no_later_snapshot_has_them(corpus: Context) -> None:
    first = late.newest(corpus)
    keys = sorted(late.keys(corpus, first))
    run = keys[0].partition("/")[0]
    redact("--run", run)
    late.release(corpus)
    newer = late.newest(corpus)
    assert newer != first
    assert not {key for key in late.keys(corpus, newer) if key.startswith(run)}
    status = corpus.files.document(first, "status.json")
    assert {row_id(key) for key in keys if key.startswith(run)} <= set(status["redacted_rows"])


def test_no_listing_gives_back_what_was_taken_down(corpus: Context) -> None:
    run = min(late.keys(corpus, late.newest(corpus))).partition("/")[0]
    redact("--run", run)
    for reason in (TombstoneReason.RUN_INVALIDATED, None):
        with transaction(corpus.engine) as session:
            tombstones.settle(session, Subject.RUN, [Word(run, reason, "runs", {})])
    with reading(corpus.engine) as session:
        taken = set(session.scalars(tombstones.redacted()))
        of_run = set(session.scalars(select(Trajectory.trajectory_id).where(Trajectory.eval_run_id == run)))
    assert taken == of_run
    assert taken


class Killed(BaseException):
    pass


PLACES = ("takedown._parquet", "takedown.sha256_of", "files.FileStore.set_status")


@pytest.mark.parametrize("place", [f"service.store.release.{name}" for name in PLACES])
def test_killed_anywhere_it_is_made_good(corpus: Context, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot_id = late.newest(corpus)
    key = min(late.keys(corpus, snapshot_id))

    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(place, die)
        with pytest.raises(Killed):
            redact(key)
    mark(corpus)
    status = corpus.files.document(snapshot_id, "status.json")
    assert status["redacted_rows"] == [row_id(key)]
    assert reaudit(corpus.engine, corpus.files, snapshot_id).ok
    assert not list((corpus.settings.snapshot_dir / snapshot_id).rglob("*.redacted"))


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["no-run/no-problem"], "there is no trajectory"),
        (["--run", "none"], "there is no run"),
        (["--hotkey", "none"], "there is no agent of miner"),
        ([], "nothing is named"),
    ],
)
def test_what_nobody_has_is_said_so(corpus: Context, arguments: list[str], fault: str) -> None:
    ran = CliRunner().invoke(app, ["redact", *arguments, "--reason", "x"])
    assert fault in str(ran.exception)
