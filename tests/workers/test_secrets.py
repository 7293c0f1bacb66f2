"""A key in a dialogue is in no snapshot, in whatever format; of train the row that held it is told of without it."""

import gzip
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow.parquet as pq
import zstandard

from service.domain.rows.records import row_id, trajectory_key
from service.domain.rows.splits import TRAINED
from service.replay.recorded import LegacyItem, Run
from service.replay.server import Replay
from service.store.engine import reading
from service.store.release import snapshots
from tests.workers import late
from workers.context import Context

KEY = "hf_" + "aB3" * 12
LATER = datetime(2026, 7, 1, tzinfo=UTC)


def test_a_key_is_withheld_and_counted(context: Context, replay: Replay) -> None:
    late.harvest(context)
    first = late.newest(context)
    with reading(context.engine) as session:
        split_of = {row.trajectory_id: row.split for row in snapshots.members(session, first) if row.config in TRAINED}
    assert set(split_of.values()) == {"train", "eval"}
    planted = {split: plant(context, replay, first, split) for split in ("train", "eval")}
    late.again(context, items=True)
    newest = late.newest(context)
    keys = late.keys(context, newest)
    assert not keys & set(planted.values())
    manifest = context.files.manifest(newest)
    assert manifest.funnel["selection"]["secret_found"] == 2
    served = manifest.funnel["pools"]["train"] + manifest.funnel["pools"]["eval"]
    assert served == manifest.funnel["rows"] + sum(manifest.funnel["selection"].values())
    assert sum(manifest.rows.values()) == manifest.funnel["rows"]
    told = rejected(context, newest)
    assert told[row_id(planted["train"])] == ("secret_found", [])
    assert row_id(planted["eval"]) not in told
    for entry in manifest.files:
        content = context.files.path(newest, entry.name).read_bytes()
        if entry.format != "parquet":
            content = zstandard.ZstdDecompressor().stream_reader(content).read()
            assert KEY.encode() not in content, entry.name


def plant(context: Context, replay: Replay, snapshot_id: str, split: str) -> str:
    """Write the key into the results that a published row shows; its trajectory's key."""
    with reading(context.engine) as session:
        rows = {
            row.problem_id
            for row in snapshots.members(session, snapshot_id)
            if row.split == split and row.config in TRAINED
        }
    published = late.keys(context, snapshot_id)
    run, item = next(
        (run, item)
        for run in replay.archive.runs.values()
        for item in run.items
        if isinstance(item, LegacyItem)
        and item.problem_id in rows
        and f"{run.eval_run_id}/{item.problem_id}" in published
    )
    return rewrite(replay, run, item)


def rewrite(replay: Replay, run: Run, item: LegacyItem) -> str:
    body = gzip.decompress(item.packed or b"").replace(b'"title": "', b'"title": "' + KEY.encode() + b" ")
    assert KEY.encode() in body
    packed = gzip.compress(body, mtime=0)
    items = [
        replace(one, packed=packed, updated_at=LATER) if late.key_of(one) == item.problem_id else one
        for one in run.items
    ]
    replay.archive.replace(replace(run, items=tuple(items)))
    return key_of(run, item)


def key_of(run: Run, item: LegacyItem) -> str:
    return trajectory_key(run.eval_run_id, item.problem_id)


def rejected(context: Context, snapshot_id: str) -> dict[str, tuple[str, list]]:
    """Reason and messages of each rejected row."""
    entries = context.files.manifest(snapshot_id).files
    (name,) = (entry.name for entry in entries if entry.format == "parquet" and entry.config == "rejected")
    rows = pq.read_table(context.files.path(snapshot_id, name)).to_pylist()
    return {row["row_id"]: (row["reason"], row["messages"]) for row in rows}
