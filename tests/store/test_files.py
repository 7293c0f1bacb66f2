"""Published folders: whole or absent, byte for byte reproducible, readable by the tools people use."""

import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import datasets
import pyarrow.parquet as pq
import pytest
import zstandard

from service.domain.rows.manifest import build_manifest
from service.domain.rows.records import Row, row_line
from service.domain.rows.spec import ROW_FORMATS
from service.domain.rows.splits import Config, Split
from service.errors import ErrorCode, SluiceError
from service.store.release import shards
from service.store.release.files import FileStore
from tests.domain.sample_rows import SPEC, make_row, problem

AUDIT = {"ok": True, "checks": [], "figures": {}}


def rows(count: int = 12) -> list[tuple[Split, Row]]:
    """Rows in order: every fourth of eval, every third of those left unattributed."""
    made = [
        (Split.EVAL, make_row(number))
        if number % 4 == 0
        else (Split.TRAIN, make_row(number, Config.UNATTRIBUTED if number % 3 == 0 else Config.AGENTIC))
        for number in range(1, count + 1)
    ]
    return sorted(made, key=lambda pair: pair[1].row_id)


def publish(store: FileStore, placed: Iterable[tuple[Split, Row]]) -> tuple[str, bool]:
    with store.draft(ROW_FORMATS) as draft:
        for split, row in placed:
            draft.add(split, row, problem())
        contents = draft.finish()
        manifest = build_manifest(SPEC, contents.parts, contents.files, {}, AUDIT, ["race-1"])
        return manifest.snapshot_id, draft.publish(manifest, AUDIT)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_same_rows_same_bytes_in_two_stores(tmp_path: Path):
    first, second = FileStore(tmp_path / "a"), FileStore(tmp_path / "b")
    assert publish(first, rows()) == publish(second, rows())
    assert tree(first.root) == tree(second.root)


def test_publishing_twice_changes_nothing(tmp_path: Path):
    store = FileStore(tmp_path)
    snapshot, new = publish(store, rows())
    assert new
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert publish(store, rows()) == (snapshot, False)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == before
    assert store.ids() == [snapshot]
    assert [path.name for path in tmp_path.iterdir()] == [snapshot]  # no draft is left


def test_files_are_as_the_manifest_says_and_only_parts_with_rows_have_any(tmp_path: Path):
    store = FileStore(tmp_path)
    snapshot, _ = publish(store, rows())
    manifest = store.manifest(snapshot)
    assert {entry.name for entry in manifest.files} == {
        f"data/{part}-00000.{form}"
        for part in ("agentic/train", "agentic/eval", "unattributed/train")
        for form in ("parquet", "jsonl.zst")
    }
    for entry in manifest.files:
        content = store.path(snapshot, entry.name).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (entry.bytes, entry.sha256)
    # Of 12 rows, 3 (4, 8, 12) are eval; of the other 9, numbers 3, 6 and 9 are unattributed.
    assert manifest.rows == {"train": 9, "eval": 3}
    documents = {"manifest.json", "audit.json", "README.md", "croissant.json", "status.json"}
    listed = {entry.name for entry in manifest.files} | documents
    assert set(tree(tmp_path / snapshot)) == listed


def test_jsonl_lines_are_the_rows(tmp_path: Path):
    store = FileStore(tmp_path)
    snapshot, _ = publish(store, rows())
    content = store.path(snapshot, "data/agentic/train-00000.jsonl.zst").read_bytes()
    text = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(content)).read()
    expected = [row for split, row in rows() if split is Split.TRAIN and row.config == "agentic"]
    assert text.splitlines() == [row_line(row) for row in expected]


def test_datasets_reads_the_parquet_and_the_folder(tmp_path: Path):
    store = FileStore(tmp_path / "store")
    snapshot, _ = publish(store, rows())
    cache = str(tmp_path / "cache")
    path = str(store.path(snapshot, "data/agentic/train-00000.parquet"))
    alone = datasets.load_dataset("parquet", data_files={"train": path}, cache_dir=cache)["train"]
    expected = [row for split, row in rows() if split is Split.TRAIN and row.config == "agentic"]
    assert alone["row_id"] == [row.row_id for row in expected]
    # What datasets gives back is the row, nulls and nested calls included.
    assert alone[0] == json.loads(row_line(expected[0]))
    folder = str(store.root / snapshot)
    agentic = datasets.load_dataset(folder, cache_dir=cache)
    assert {name: split.num_rows for name, split in agentic.items()} == {"train": 6, "eval": 3}
    unattributed = datasets.load_dataset(folder, "unattributed", cache_dir=cache)
    assert {name: split.num_rows for name, split in unattributed.items()} == {"train": 3}


def test_column_types_do_not_depend_on_the_rows(tmp_path: Path):
    store = FileStore(tmp_path)
    snapshot, _ = publish(store, rows())
    # Every reasoning score and difficulty of these rows is null.
    schema = pq.read_schema(store.path(snapshot, "data/agentic/eval-00000.parquet"))
    assert schema.remove_metadata().equals(shards.ROW_SCHEMA)
    assert str(schema.field("reasoning_score").type) == "double"


def test_groups_and_shards_have_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shards, "ROWS_PER_GROUP", 2)
    monkeypatch.setattr(shards, "ROWS_PER_SHARD", 4)
    store = FileStore(tmp_path)
    snapshot, _ = publish(store, [(Split.TRAIN, row) for _, row in rows() if row.config == "agentic"])
    # 9 agentic rows (12 less numbers 3, 6 and 9): shards of 4, 4 and 1.
    entries = [entry for entry in store.manifest(snapshot).files if entry.format == "parquet"]
    assert [(entry.name[-13:], entry.rows) for entry in entries] == [
        ("00000.parquet", 4), ("00001.parquet", 4), ("00002.parquet", 1),
    ]  # fmt: skip
    assert pq.ParquetFile(store.path(snapshot, entries[0].name)).num_row_groups == 2


def test_rows_out_of_order_or_twice_are_refused_and_leave_nothing(tmp_path: Path):
    store = FileStore(tmp_path)
    for bad in (rows()[::-1], [rows()[0]] * 2):
        with pytest.raises(SluiceError) as caught:
            publish(store, bad)
        assert caught.value.code is ErrorCode.BAD_INPUT
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "data/agentic/../../manifest.json", "data/agentic", "", "nothing", ".", "a\0b"]
)
def test_only_listed_files_can_be_named(tmp_path: Path, name: str):
    store = FileStore(tmp_path)
    snapshot, _ = publish(store, rows(4))
    with pytest.raises(SluiceError) as caught:
        store.path(snapshot, name)
    assert caught.value.code is ErrorCode.NOT_FOUND


@pytest.mark.parametrize("snapshot", ["..", "", "0" * 64, "../" + "0" * 61, ".draft-1"])
def test_only_published_ids_can_be_named(tmp_path: Path, snapshot: str):
    with pytest.raises(SluiceError) as caught:
        FileStore(tmp_path).manifest(snapshot)
    assert caught.value.code is ErrorCode.NOT_FOUND


def test_only_the_status_changes(tmp_path: Path):
    store = FileStore(tmp_path)
    snapshot, _ = publish(store, rows(4))
    before = tree(tmp_path)
    assert store.document(snapshot, "status.json")["state"] == "published"
    store.set_status(snapshot, {"state": "contaminated"})
    assert store.document(snapshot, "status.json") == {"state": "contaminated"}
    changed = {name for name, content in tree(tmp_path).items() if before.get(name) != content}
    assert changed == {f"{snapshot}/status.json"}


def test_a_draft_in_use_is_not_swept(tmp_path: Path):
    store = FileStore(tmp_path)
    with store.draft() as slow:
        slow.add(*rows()[0], problem())
        publish(store, rows())
        slow.finish()
        assert len(list(tmp_path.glob(".draft-*"))) == 1


WRITER = """
import sys
from pathlib import Path
from service.store.release.files import FileStore
from tests.store.test_files import publish, rows

def announced():
    for number, pair in enumerate(rows(200)):
        print(number, flush=True)
        yield pair

print(*publish(FileStore(Path(sys.argv[1])), announced()), flush=True)
"""


@pytest.mark.parametrize("lines", [1, 60, 199, 200])
def test_killed_while_publishing_then_published_again(tmp_path: Path, lines: int):
    """Killed after the row of that number: nothing or all is visible, and the next run ends as an undisturbed one."""
    undisturbed = FileStore(tmp_path / "calm")
    snapshot, _ = publish(undisturbed, rows(200))
    root = tmp_path / "killed"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(root)], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    for _ in range(lines):
        writer.stdout.readline()
    time.sleep(0.02 if lines == 200 else 0)
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    store = FileStore(root)
    assert store.ids() in ([], [snapshot])
    for published in store.ids():
        assert tree(root / published) == tree(undisturbed.root / published)
    publish(store, rows(200))
    assert tree(root) == tree(undisturbed.root)
    assert [path.name for path in root.iterdir()] == [snapshot]


def test_manifest_file_is_plain_json(tmp_path: Path):
    store = FileStore(tmp_path)
    snapshot, _ = publish(store, rows(4))
    content = json.loads(store.path(snapshot, "manifest.json").read_text())
    assert content["snapshot_id"] == snapshot
    assert content["spec"]["rules"] == "sluice-1/1"
