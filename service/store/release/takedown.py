"""Take rows that were redacted out of a published snapshot's files. Decides nothing: what was redacted is given.

A row keeps its place without content; a line of a derived format that is of it goes. Each file is replaced whole. The
snapshot keeps its id and its manifest, which say what was published; its status says which rows were redacted, and what
each file is now.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import select
from sqlalchemy.orm import Session

from service.domain.rows.manifest import FileEntry
from service.domain.rows.records import Row, as_plain, row_id, row_line, trajectory_key, withheld
from service.domain.rows.spec import ROW_FORMATS
from service.store.corpus.tombstones import redacted
from service.store.models import SnapshotRow, Trajectory
from service.store.release.files import FileStore
from service.store.release.published import jsonl_lines
from service.store.release.shards import ROW_SCHEMA, ZSTD_LEVEL, JsonLines, sha256_of

FRESH = ".redacted"
"""Ending of a file that is to take the place of one; what a dead writer left of it is written over."""


class _Names(msgspec.Struct):
    row_id: str | None = None
    session_id: str | None = None


def status_of(session: Session, files: FileStore, snapshot_id: str, present: Mapping[str, Any]) -> dict[str, Any]:
    """Redact what has to be of one snapshot's files, and say so: `redacted_rows` and `files` of its status.

    Args:
        session: open transaction.
        files: the published files.
        snapshot_id: the snapshot.
        present: its status.

    Returns:
        What the status has to say now; empty where nothing was redacted since, of which no file is read.
    """
    rows = session.execute(
        select(Trajectory.eval_run_id, Trajectory.problem_id)
        .join(SnapshotRow, SnapshotRow.trajectory_id == Trajectory.trajectory_id)
        .where(SnapshotRow.snapshot_id == snapshot_id, Trajectory.trajectory_id.in_(redacted()))
    )
    row_ids = sorted(row_id(trajectory_key(*row)) for row in rows)
    if row_ids == present.get("redacted_rows", []):
        return {}
    return {"redacted_rows": row_ids, "files": redact(files, snapshot_id, row_ids)}


def redact(files: FileStore, snapshot_id: str, row_ids: Collection[str]) -> dict[str, dict[str, Any]]:
    """Rewrite every file that holds content of one of the rows; again it changes nothing.

    Returns:
        What each file is now that is not as it was published: `rows`, `bytes` and `sha256` by name.
    """
    now = {}
    for entry in files.manifest(snapshot_id).files:
        path = files.path(snapshot_id, entry.name)
        fresh = path.with_name(path.name + FRESH)
        fresh.unlink(missing_ok=True)
        rows = _parquet(path, fresh, row_ids) if entry.format == "parquet" else _lines(path, fresh, entry, row_ids)
        fresh.replace(path)
        sha256 = sha256_of(path)
        if sha256 != entry.sha256:
            now[entry.name] = {"rows": rows, "bytes": path.stat().st_size, "sha256": sha256}
    return now


def _lines(path: Path, fresh: Path, entry: FileEntry, row_ids: Collection[str]) -> int:
    """Write compressed lines anew; how many there are then."""
    lines = JsonLines(fresh)
    try:
        for line in jsonl_lines(path):
            names = msgspec.json.decode(line, type=_Names)
            if (names.row_id or names.session_id) not in row_ids:
                lines.append(line)
            elif entry.format in ROW_FORMATS:
                lines.append(row_line(withheld(msgspec.json.decode(line, type=Row))))
    finally:
        lines.close()
    return lines.rows


def _parquet(path: Path, fresh: Path, row_ids: Collection[str]) -> int:
    """Write rows anew, row group by row group; how many there are."""
    rows = 0
    with (
        pq.ParquetFile(path) as file,
        pq.ParquetWriter(fresh, ROW_SCHEMA, compression="zstd", compression_level=ZSTD_LEVEL) as writer,
    ):
        for number in range(file.num_row_groups):
            plain = [_plain(row, row_ids) for row in file.read_row_group(number).to_pylist()]
            writer.write_table(pa.Table.from_pylist(plain, schema=ROW_SCHEMA), row_group_size=len(plain))
            rows += len(plain)
    return rows


def _plain(row: dict[str, Any], row_ids: Collection[str]) -> dict[str, Any]:
    return as_plain(withheld(msgspec.convert(row, Row))) if row["row_id"] in row_ids else row
