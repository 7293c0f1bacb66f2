"""Rows as files: Parquet and JSONL.zst shards of one part. Knows no snapshots, and never holds more than a row group.

The same rows give the same bytes under the locked versions of pyarrow and zstandard (the Parquet footer names its
writer): order, compression level, row groups and threads are fixed, and no time is written.
"""

import hashlib
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from service.domain.rows.manifest import FileEntry, Part, PartContents, part_folder
from service.domain.rows.records import Row, as_plain, row_line
from service.errors import ErrorCode, SluiceError

ROWS_PER_GROUP = 1_000
BYTES_PER_GROUP = 16 * 1024 * 1024
"""A row group ends at this many bytes of JSON or `ROWS_PER_GROUP` rows, whichever is first; it bounds memory."""
ROWS_PER_SHARD = 50_000
ZSTD_LEVEL = 3

_TEXT = pa.string()
_MESSAGE = pa.struct(
    [
        ("role", _TEXT),
        ("content", _TEXT),
        (
            "tool_calls",
            pa.list_(
                pa.struct(
                    [
                        ("id", _TEXT),
                        ("type", _TEXT),
                        ("function", pa.struct([("name", _TEXT), ("arguments", _TEXT)])),
                    ]
                )
            ),
        ),
        ("tool_call_id", _TEXT),
        ("issuer", _TEXT),
        ("reconstructed", pa.bool_()),
        ("train", pa.bool_()),
        ("weight", pa.float64()),
    ]
)
_COLUMN_TYPES: dict[str, pa.DataType] = {
    "messages": pa.list_(_MESSAGE),
    "answer_ids": pa.list_(_TEXT),
    "reasoning_score": pa.float64(),
    "difficulty": pa.float64(),
    "query_confirmed": pa.bool_(),
    "tokens": pa.int64(),
}
ROW_SCHEMA = pa.schema([(name, _COLUMN_TYPES.get(name, _TEXT)) for name in Row.__struct_fields__])
"""One type for each column whatever a batch holds: a column of nulls alone is still text or a number."""


class _Shard:
    """Two open files with the same rows."""

    def __init__(self, root: Path, part: Part, number: int) -> None:
        stem = f"{part_folder(part.config)}/{part.split}-{number:05d}"
        self.part = part
        self.rows = 0
        self._root = root
        self._names = {"parquet": f"{stem}.parquet", "jsonl.zst": f"{stem}.jsonl.zst"}
        (root / stem).parent.mkdir(parents=True, exist_ok=True)
        self._parquet = pq.ParquetWriter(
            root / self._names["parquet"], ROW_SCHEMA, compression="zstd", compression_level=ZSTD_LEVEL
        )
        self._file = (root / self._names["jsonl.zst"]).open("xb")
        compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_checksum=True)
        self._jsonl = compressor.stream_writer(self._file, closefd=True)

    def write(self, rows: list[Row], lines: list[bytes]) -> None:
        """Append one row group."""
        table = pa.Table.from_pylist([as_plain(row) for row in rows], schema=ROW_SCHEMA)
        self._parquet.write_table(table, row_group_size=len(rows))
        self._jsonl.write(b"\n".join(lines) + b"\n")
        self.rows += len(rows)

    def close(self) -> None:
        self._parquet.close()
        self._jsonl.close()  # type: ignore[no-untyped-call]

    def entries(self) -> list[FileEntry]:
        """The two files, once closed."""
        return [
            FileEntry(
                name=name,
                config=self.part.config,
                split=self.part.split,
                format=form,
                rows=self.rows,
                bytes=(self._root / name).stat().st_size,
                sha256=sha256_of(self._root / name),
            )
            for form, name in self._names.items()
        ]


def sha256_of(path: Path) -> str:
    """Sha256 hex of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class PartWriter:
    """Writes the rows of one part, which must come in the order of their `row_id`."""

    def __init__(self, root: Path, part: Part) -> None:
        self.part = part
        self._root = root
        self._rows: list[Row] = []
        self._lines: list[bytes] = []
        self._pending_bytes = 0
        self._last_id = ""
        self._digests: list[str] = []
        self._entries: list[FileEntry] = []
        self._shard: _Shard | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shard is not None:
            self._shard.close()

    def add(self, row: Row) -> None:
        """Append a row.

        Raises:
            SluiceError: BAD_INPUT if rows come out of order or twice, or belong to another configuration.
        """
        if row.row_id <= self._last_id or row.config is not self.part.config:
            raise SluiceError(
                ErrorCode.BAD_INPUT,
                "rows must come once, in the order of row_id, to the part of their configuration",
                row_id=row.row_id,
                after=self._last_id,
                part=f"{self.part.config}/{self.part.split}",
            )
        line = row_line(row)
        self._last_id = row.row_id
        self._digests.append(hashlib.sha256(line).hexdigest())
        self._rows.append(row)
        self._lines.append(line)
        self._pending_bytes += len(line)
        if len(self._rows) >= ROWS_PER_GROUP or self._pending_bytes >= BYTES_PER_GROUP:
            self._flush()

    def _flush(self) -> None:
        if not self._rows:
            return
        if self._shard is None:
            self._shard = _Shard(self._root, self.part, len(self._entries) // 2)
        self._shard.write(self._rows, self._lines)
        self._rows, self._lines, self._pending_bytes = [], [], 0
        if self._shard.rows >= ROWS_PER_SHARD:
            self._close_shard()

    def _close_shard(self) -> None:
        if self._shard is not None:
            self._shard.close()
            self._entries += self._shard.entries()
            self._shard = None

    def finish(self) -> tuple[PartContents, tuple[FileEntry, ...]]:
        """Close the files and say what they hold."""
        self._flush()
        self._close_shard()
        return PartContents(part=self.part, row_digests=tuple(self._digests)), tuple(self._entries)
