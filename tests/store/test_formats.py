"""Formats as files of a snapshot: where they lie, what the manifest says of them, and what no file may hold."""

import io
import json
from collections.abc import Sequence
from pathlib import Path

import datasets
import msgspec
import zstandard

from service.domain.leaks.leakage import ProblemFacts
from service.domain.rows.manifest import build_manifest, id_of
from service.domain.rows.records import Row
from service.domain.rows.spec import FORMATS, ROW_FORMATS
from service.domain.rows.splits import Config, Split
from service.store.release.files import Contents, FileStore
from tests.domain.sample_rows import SPEC, make_row, problem
from tests.store.test_files import AUDIT, rows, tree

SECRET = "gold-of-eval"


def placed() -> list[tuple[Split, Row]]:
    """Rows of every configuration; the last two of train are a failure and a rejected row."""
    made = rows(8)
    for number, config in ((101, Config.NEGATIVE), (102, Config.REJECTED)):
        made.append((Split.TRAIN, msgspec.structs.replace(make_row(number), config=config)))
    return sorted(made, key=lambda pair: pair[1].row_id)


def facts(split: Split, row: Row) -> ProblemFacts:
    return ProblemFacts(
        row.problem_id, row.kind, row.category, "q", True, frozenset({SECRET if split is Split.EVAL else "77"})
    )


def publish(store: FileStore, formats: Sequence[str] = FORMATS) -> tuple[str, Contents]:
    with store.draft(formats) as draft:
        for split, row in placed():
            draft.add(split, row, facts(split, row))
        contents = draft.finish()
        manifest = build_manifest(
            SPEC, contents.parts, contents.files, {}, AUDIT, [], gold_digest=contents.gold_digest, kto=contents.kto
        )
        draft.publish(manifest, AUDIT)
    return manifest.snapshot_id, contents


def lines(store: FileStore, snapshot: str, name: str) -> list[dict]:
    content = store.path(snapshot, name).read_bytes()
    text = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(content)).read()
    return [json.loads(line) for line in text.splitlines()]


def test_every_format_has_the_parts_it_is_for(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    snapshot, contents = publish(store)
    derived = [entry.name for entry in contents.files if entry.format not in ROW_FORMATS]
    names = {name.removesuffix("-00000.jsonl.zst") for name in derived}
    dialogues = ("agentic/train", "agentic/eval", "unattributed/train")
    assert names == {
        *(f"formats/{form}/{part}" for form in ("atif", "sharegpt") for part in dialogues),
        *(f"formats/kto/{part}" for part in ("agentic/train", "unattributed/train", "negative/train")),
        *(f"formats/{name}" for name in ("prompts/train", "prompts/eval", "gold/train")),
    }
    manifest = store.manifest(snapshot)
    for entry in manifest.files:
        if entry.format != "parquet":
            assert len(lines(store, snapshot, entry.name)) == entry.rows
    # Of eight rows two (4 and 8) are eval; one failure and one rejected row are no rows to be followed.
    assert manifest.rows == {"train": 6, "eval": 2}
    assert {f"{part.config}/{part.split}": part.rows for part in manifest.parts} == {
        "agentic/train": 4,
        "agentic/eval": 2,
        "unattributed/train": 2,
        "negative/train": 1,
        "rejected/train": 1,
    }


def test_no_file_holds_the_gold_of_eval(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    snapshot, contents = publish(store)
    assert [entry.split for entry in contents.files if entry.format == "gold"] == [Split.TRAIN]
    gold = lines(store, snapshot, "formats/gold/train-00000.jsonl.zst")
    train = {row.problem_id for split, row in placed() if split is Split.TRAIN and row.config is not Config.REJECTED}
    assert {line["problem_id"] for line in gold} == train
    for name, content in tree(tmp_path / snapshot).items():
        is_packed = name.endswith(".zst")
        plain = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(content)).read() if is_packed else content
        assert SECRET.encode() not in plain, name


def test_each_problem_is_posed_once_a_split(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    twice = [(Split.TRAIN, make_row(number)) for number in (1, 2)]
    twice.append((Split.TRAIN, msgspec.structs.replace(make_row(3), problem_id="p1")))
    with store.draft(FORMATS) as draft:
        for split, row in sorted(twice, key=lambda pair: pair[1].row_id):
            draft.add(split, row, problem(row.problem_id))
        contents = draft.finish()
        assert {entry.rows for entry in contents.files if entry.format in ("prompts", "gold")} == {2}


def test_labels_are_counted_and_weighed(tmp_path: Path) -> None:
    _, contents = publish(FileStore(tmp_path))
    assert contents.kto is not None
    counted = {True: 0, False: 0}
    for entry in contents.files:
        if entry.format == "kto":
            counted[entry.config is not Config.NEGATIVE] += entry.rows
    assert (contents.kto.desirable, contents.kto.undesirable) == (counted[True], counted[False])
    assert min(counted.values()) > 0


def test_the_answers_are_part_of_the_name(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    snapshot, _ = publish(store)
    manifest = store.manifest(snapshot)
    assert manifest.gold_digest is not None
    assert id_of(manifest.spec_digest, manifest.parts, manifest.gold_digest) == snapshot
    assert id_of(manifest.spec_digest, manifest.parts, "other") != snapshot


def test_same_rows_same_bytes_in_every_format(tmp_path: Path) -> None:
    for name in ("a", "b"):
        publish(FileStore(tmp_path / name))
    assert tree(tmp_path / "a") == tree(tmp_path / "b")


def test_datasets_reads_kto_and_prompts(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "store")
    snapshot, contents = publish(store)
    for form in ("kto", "prompts"):
        names = [entry.name for entry in contents.files if entry.format == form and entry.split is Split.TRAIN]
        plain = tmp_path / f"{form}.jsonl"
        plain.write_text("".join(json.dumps(line) + "\n" for name in names for line in lines(store, snapshot, name)))
        read = datasets.load_dataset("json", data_files=str(plain), cache_dir=str(tmp_path / "cache"))["train"]
        assert len(read) == sum(entry.rows for entry in contents.files if entry.name in names)
        assert {"kto": "completion", "prompts": "prompt"}[form] in read.column_names
