"""The rows of a published snapshot read back from its files, one at a time. Checks nothing and writes nothing."""

import heapq
import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow.parquet as pq
import zstandard

from service.domain.rows.manifest import FileEntry, Manifest
from service.domain.rows.records import Row, row_line
from service.store.release.files import FileStore

PREFERRED = ("jsonl.zst", "parquet")
"""Formats that hold whole rows, the cheaper one to read first."""
ROWS_READ = 64
"""Of Parquet, held at once."""


class PublishedRow(NamedTuple):
    """One row as it was published."""

    row_id: str
    entry: FileEntry
    line: bytes
    """What its digest is taken of."""


class _Id(msgspec.Struct):
    row_id: str


def row_files(manifest: Manifest) -> list[FileEntry]:
    """Files that hold every row once, in the format that is cheapest to read."""
    for form in PREFERRED:
        found = [entry for entry in manifest.files if entry.format == form]
        if found:
            return found
    return []


def lines(files: FileStore, snapshot_id: str, entry: FileEntry) -> Iterator[bytes]:
    """The rows of one such file as lines, without their ends."""
    path = files.path(snapshot_id, entry.name)
    return jsonl_lines(path) if entry.format == "jsonl.zst" else _of_parquet(path)


def rows(files: FileStore, snapshot_id: str) -> Iterator[PublishedRow]:
    """All rows of a snapshot in the order of `row_id`, whatever parts they are in.

    Raises:
        SluiceError: NOT_FOUND when there is no such snapshot.
    """
    entries = row_files(files.manifest(snapshot_id))
    return heapq.merge(*(_rows(files, snapshot_id, entry) for entry in entries), key=lambda row: row.row_id)


def _rows(files: FileStore, snapshot_id: str, entry: FileEntry) -> Iterator[PublishedRow]:
    for line in lines(files, snapshot_id, entry):
        yield PublishedRow(msgspec.json.decode(line, type=_Id).row_id, entry, line)


def jsonl_lines(path: Path) -> Iterator[bytes]:
    """Lines of a compressed file, without their ends."""
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
        for line in io.BufferedReader(stream):
            yield line.rstrip(b"\n")


def _of_parquet(path: Path) -> Iterator[bytes]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=ROWS_READ):
            for row in batch.to_pylist():
                yield row_line(msgspec.convert(row, Row))
