"""`sluice import` as a shell runs it, and the reading behind it: every row has an account, and comes in once."""

import gzip
import hashlib
import json
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
import pytest
import zstandard
from sqlalchemy import Engine, func, select, text

from service.cli import importing, intake
from service.cli.intake import check, take_in
from service.config import Settings
from service.domain.imports.formats import Format, RowFault
from service.domain.imports.identity import Naming
from service.errors import SluiceError
from service.store.engine import open_engine, reading, transaction
from service.store.models import Base, Import, Origin
from service.store.validator import local
from service.store.validator.local import NewEnvelope
from tests.domain.dialogues import agentic_run

NOBODY = Naming()
DIALOGUE = json.loads(agentic_run().payload())


def envelope(number: int) -> dict[str, Any]:
    return {
        "problem_id": f"00000000-0000-4000-8000-{number:012x}",
        "status": "SUCCESS",
        "execution_time": 1.0 + number,
        "inference_total": 4,
        "dialogue": DIALOGUE,
    }


def chat(number: int, **fields: Any) -> dict[str, Any]:
    said = [{"role": "user", "content": f"bag number {number}"}, {"role": "assistant", "content": "No."}]
    return {"messages": said, **fields}


def atif(number: int, version: str = "ATIF-v1.4") -> dict[str, Any]:
    steps = [{"source": "user", "message": f"bag number {number}"}, {"source": "agent", "message": "No."}]
    return {"schema_version": version, "agent": {"name": "teacher"}, "steps": steps}


def jsonl(*rows: Any) -> bytes:
    return b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows)


def write(path: Path, *rows: Any) -> Path:
    path.write_bytes(jsonl(*rows))
    return path


@pytest.fixture
def engine(database_url: str):
    opened = open_engine(database_url)
    yield opened
    opened.dispose()


def take(engine: Engine, path: Path, wanted: Format | None = None, naming: Naming = NOBODY) -> intake.Account:
    return take_in(engine, path, wanted, naming, Event())


def corpus(engine: Engine) -> dict[str, Any]:
    """Everything but the log of imports, without times and serial numbers."""
    queries = {
        "agents": "SELECT agent_version_id, agent_name, family, source FROM agent_versions",
        "runs": "SELECT eval_run_id, agent_version_id, phase, kind, status, source FROM evaluation_runs",
        "problems": "SELECT problem_id, kind, category FROM problems",
        "ledger": "SELECT eval_run_id, item_key, problem_id, judgement, state FROM harvest_ledger",
        "trajectories": "SELECT eval_run_id, item_key, problem_id, payload_sha256, kind FROM trajectories",
        "evidence": "SELECT evidence_digest, payload_sha256, body FROM evidence",
    }
    with reading(engine) as session:
        rows = {name: sorted(map(repr, session.execute(text(query)))) for name, query in queries.items()}
        counts = {
            name: session.scalar(select(func.count()).select_from(table))
            for name, table in Base.metadata.tables.items()
            if name != "imports"
        }
    return {**rows, "counts": counts}


@pytest.mark.parametrize("row_of", [envelope, atif, chat])
def test_the_same_rows_again_add_nothing(engine: Engine, tmp_path: Path, row_of: Any) -> None:
    rows = [row_of(number) for number in range(30)]
    first = take(engine, write(tmp_path / "a.jsonl", *rows))
    assert first.counts() == {"stored": 30, "present": 0}
    before = corpus(engine)

    shuffled = rows[:]
    random.Random(1).shuffle(shuffled)
    spelled = [dict(reversed(row.items())) for row in rows]
    for name, body in (
        ("a.jsonl", jsonl(*rows)),
        ("other name", jsonl(*rows)),
        ("order.jsonl", jsonl(*shuffled, *shuffled[:3])),
        ("a.jsonl.gz", gzip.compress(jsonl(*rows))),
        ("a.jsonl.zst", zstandard.compress(jsonl(*rows))),
        ("keys.jsonl", jsonl(*spelled)),
        ("list.json", json.dumps(rows, indent=2).encode()),
    ):
        (tmp_path / name).write_bytes(body)
        again = take(engine, tmp_path / name, naming=Naming("another name", "another family"))
        assert (again.stored, again.is_clean) == (0, True), name
    assert corpus(engine) == before


def test_an_import_that_was_cut_anywhere_goes_on_to_the_same_corpus(
    engine: Engine, new_database: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "BATCH_ROWS", 3)
    rows = [*map(envelope, range(10)), b"{", envelope(3)]
    path = write(tmp_path / "rows.jsonl", *rows)
    with new_database() as url:
        undisturbed = open_engine(url)
        take(undisturbed, path)
        expected = corpus(undisturbed)
        undisturbed.dispose()

    class Cut(BaseException):
        """As a kill would: nothing after it runs."""

    add = intake.imports.add
    for batches in range(4):
        left = iter(range(batches))

        def cutting(*arguments: Any, left: Any = left) -> Any:
            added = add(*arguments)
            if next(left, None) is None:
                raise Cut  # before the commit of this batch
            return added

        monkeypatch.setattr(intake.imports, "add", cutting)
        with pytest.raises(Cut):
            take(engine, path)
    monkeypatch.setattr(intake.imports, "add", add)
    account = take(engine, path)
    assert account.stored + account.present == 11
    assert corpus(engine) == expected


def test_two_imports_of_the_same_rows_at_once_are_one(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "BATCH_ROWS", 7)
    rows = [row for number in range(40) for row in (envelope(number), envelope(number))]
    paths = []
    for name in ("a", "b"):
        random.Random(name).shuffle(rows)
        paths.append(write(tmp_path / name, *rows))
    with ThreadPoolExecutor() as pool:
        accounts = list(pool.map(lambda path: take(engine, path), paths))
    assert [account.usable for account in accounts] == [80, 80]
    assert sum(account.stored for account in accounts) == 40
    assert corpus(engine)["counts"]["trajectories"] == 40


def test_every_row_has_an_account(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "TOLD_ERRORS", 4)
    nul = {**envelope(3), "status": "a\0b", "error": {"type": "\0"}}
    rows = [b"", envelope(1), b"{", b"[1]", chat(1), b"\xff\x1b[31m" + b"x" * 500, nul, envelope(1), b"null"]
    account = take(engine, write(tmp_path / "rows.jsonl", *rows))
    assert account.format is Format.ENVELOPE
    assert account.counts() == {"stored": 2, "present": 1, "not_an_object": 2, "not_json": 2, "other_format": 1}
    assert [(error.line, error.fault) for error in account.errors] == [
        (3, RowFault.NOT_JSON),
        (4, RowFault.NOT_AN_OBJECT),
        (5, RowFault.OTHER_FORMAT),
        (6, RowFault.NOT_JSON),
    ]
    assert all(len(error.excerpt) <= 80 and error.excerpt.isprintable() for error in account.errors)


def test_an_import_is_logged(engine: Engine, tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", atif(1), atif(2, "ATIF-v1.9"), b"{")
    account = take(engine, path)
    assert account.newer_versions == {"ATIF-v1.9": 1}
    with reading(engine) as session:
        (row,) = session.scalars(select(Import))
    assert (row.name, row.format, row.counts) == ("rows.jsonl", "atif", {"stored": 2, "present": 0, "not_json": 1})
    assert row.file_sha256 == account.file_sha256
    assert row.finished_at is not None


def test_a_document_over_many_lines_is_one_row(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "trajectory.json").write_text(json.dumps(atif(1), indent=2))
    assert take(engine, tmp_path / "trajectory.json").counts() == {"stored": 1, "present": 0}
    # A file whose first line only looks so is read by its lines.
    assert take(engine, write(tmp_path / "cut.jsonl", b'{"a": {', atif(2))).counts() == {
        "stored": 1,
        "present": 0,
        "not_json": 1,
    }


def test_a_cut_archive_gives_what_came(engine: Engine, tmp_path: Path) -> None:
    body = gzip.compress(jsonl(*(chat(number, note=random.Random(number).random()) for number in range(2_000))))
    (tmp_path / "cut.gz").write_bytes(body[:-20])
    account = take(engine, tmp_path / "cut.gz")
    assert account.fault == "truncated"
    assert account.file_sha256 is not None
    assert account.stored > 1_000


def test_a_row_that_the_database_does_not_take_holds_up_no_other(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_row = intake.read_row

    def spoiling(*arguments: Any) -> Any:
        row = read_row(*arguments)
        return msgspec.structs.replace(row, problem_id="a\0b") if b"1.5" in arguments[0] else row

    monkeypatch.setattr(intake, "read_row", spoiling)
    rows = [*map(envelope, range(5)), {**envelope(9), "execution_time": 1.5}]
    account = take(engine, write(tmp_path / "rows.jsonl", *rows))
    assert account.counts() == {"stored": 5, "present": 0, "unstorable": 1}


def test_what_the_validators_own_logs_hold_is_not_imported(engine: Engine, tmp_path: Path) -> None:
    own, given = (json.dumps(envelope(number)).encode() for number in (1, 2))
    now = datetime.now(UTC)
    line = NewEnvelope("run", None, "sandbox", 0, hashlib.sha256(own).hexdigest(), own, len(own), None, [], now, now)
    with transaction(engine) as session:
        local.add_envelopes(session, [line], now)
    account = take(engine, write(tmp_path / "output.jsonl", own, given, own))
    assert account.counts() == {"stored": 1, "present": 0, "local": 2}
    assert {error.excerpt for error in account.errors} == {""}


def test_nor_what_they_hold_spelled_otherwise(engine: Engine, tmp_path: Path) -> None:
    own, now = json.dumps(envelope(1)).encode(), datetime.now(UTC)
    problem_id = envelope(1)["problem_id"]
    line = NewEnvelope(
        "run", problem_id, "sandbox", 0, hashlib.sha256(own).hexdigest(), own, len(own), None, [], now, now
    )
    with transaction(engine) as session:
        local.add_envelopes(session, [line], now)
    tight = json.dumps(dict(reversed(envelope(1).items())), separators=(",", ":")).encode()
    other = {**envelope(1), "dialogue": DIALOGUE[:-1]}
    account = take(engine, write(tmp_path / "output.jsonl", tight, other))
    assert account.counts() == {"stored": 1, "present": 0, "local": 1}


def test_a_dry_run_counts_the_same(engine: Engine, tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", *map(chat, range(5)), chat(2), b"{")
    dry = check(path, None, NOBODY, Event())
    assert dry.counts() == take(engine, path).counts() == {"stored": 5, "present": 1, "not_json": 1}


def sluice(database_url: str, redis_url: str, *arguments: str, **extra: Any) -> subprocess.CompletedProcess[str]:
    settings = Settings(database_url=database_url, redis_url=redis_url, **extra)
    command = [sys.executable, "-c", "from service.cli import main; main()", "import", *arguments]
    return subprocess.run(command, env=settings.environment(), capture_output=True, text=True, timeout=120, check=False)


def test_exit_status_and_what_is_printed(database_url: str, redis_url: str, tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return sluice(database_url, redis_url, *arguments)

    good = write(tmp_path / "good.jsonl", chat(1), chat(2))
    mixed = write(tmp_path / "mixed.jsonl", chat(3), envelope(1), b"\x1b]0;x\x07")
    bad = write(tmp_path / "bad.jsonl", b"nonsense")
    ran = run(str(good), str(mixed))
    assert ran.returncode == 1
    assert f"{mixed}:2: other_format: " in ran.stderr
    assert f"{mixed}:3: not_json: \\x1b]0;x\\x07" in ran.stderr
    assert run(str(bad)).returncode == 2
    told = json.loads(run("--json", "--dry-run", str(mixed)).stdout)
    assert told["files"][0]["refused"] == {"not_json": 1, "other_format": 1}


def test_a_corpus_stays_with_its_own_source_whatever_is_imported(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    for number, source_name in enumerate(("made up", "real")):
        path = write(tmp_path / f"{number}.jsonl", chat(number))
        ran = sluice(database_url, redis_url, str(path), source_name=source_name)
        assert (ran.returncode, ran.stderr) == (0, "")
    engine = open_engine(database_url)
    with reading(engine) as session:
        assert session.scalars(select(Origin.name)).all() == ["made up"]
    engine.dispose()


def test_the_validators_own_logs_are_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = tmp_path / "logs"
    (logs / "eval_1").mkdir(parents=True)
    path = write(logs / "eval_1" / "output.jsonl", envelope(1))
    (tmp_path / "link").symlink_to(logs / "eval_1")
    monkeypatch.setenv("SLUICE_VALIDATOR_LOGS", str(logs))
    for named in (path, tmp_path / "link" / "output.jsonl"):
        with pytest.raises(SluiceError, match="only grade released items"):
            importing.command([named], dry_run=True)


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    def peak_kib(rows: int) -> int:
        path = tmp_path / f"{rows}.gz"
        with gzip.open(path, "wb", compresslevel=1) as file:
            for number in range(rows):
                file.write(jsonl(envelope(number)))
        code = f"""
import threading
from pathlib import Path
from service.cli.intake import check
from service.domain.imports.identity import Naming
account = check(Path({str(path)!r}), None, Naming(), threading.Event())
assert account.stored == {rows}
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
        return int(ran.stdout)

    few, many = peak_kib(300), peak_kib(3_000)  # 27 MiB more of rows
    assert many - few < 8 * 1024
    assert many < 200 * 1024
