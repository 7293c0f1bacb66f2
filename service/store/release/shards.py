"""Rows as files: shards of one part in every format asked for. Knows no snapshots, and holds a row group at most.

The same rows give the same bytes under the locked versions of pyarrow and zstandard (the Parquet footer names its
writer): order, compression level, row groups and threads are fixed, and no time is written.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from service.domain.rows.formats import atif, kto, sharegpt
from service.domain.rows.manifest import FileEntry, Part, PartContents, part_folder
from service.domain.rows.records import Row, as_plain, row_line
from service.domain.rows.splits import TRAINED, Config, Split
from service.errors import ErrorCode, SluiceError

ROWS_PER_GROUP = 1_000
BYTES_PER_GROUP = 4 * 1024 * 1024
"""A row group ends at so many bytes of JSON or `ROWS_PER_GROUP` rows. Each part holds one in memory."""
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


Documents = Callable[[Row], Iterable[dict[str, Any]]]
DERIVED: dict[str, Documents] = {
    "kto": kto.examples,
    "atif": lambda row: (atif.document(row),),
    "sharegpt": lambda row: (sharegpt.document(row),),
}
"""What a row becomes in each format that is not its own."""


def is_written(form: str, part: Part) -> bool:
    """Whether a part is given in a format: labels are of train alone, dialogues of rows to be followed."""
    if form == "kto":
        return part.split is Split.TRAIN and part.config is not Config.REJECTED
    return part.config in TRAINED or form not in DERIVED


class _Sheet(Protocol):
    """One open file."""

    rows: int

    def write(self, rows: Sequence[Row], lines: Sequence[bytes]) -> None: ...

    def close(self) -> None: ...


class _Parquet:
    """Rows as they are, in one schema."""

    def __init__(self, path: Path) -> None:
        self.rows = 0
        self._writer = pq.ParquetWriter(path, ROW_SCHEMA, compression="zstd", compression_level=ZSTD_LEVEL)

    def write(self, rows: Sequence[Row], lines: Sequence[bytes]) -> None:
        """Append one row group."""
        table = pa.Table.from_pylist([as_plain(row) for row in rows], schema=ROW_SCHEMA)
        self._writer.write_table(table, row_group_size=len(rows))
        self.rows += len(rows)

    def close(self) -> None:
        self._writer.close()


class JsonLines:
    """Compressed lines of JSON."""

    def __init__(self, path: Path, documents: Documents | None = None) -> None:
        """`documents`: what a row becomes; None: its own line."""
        self.rows = 0
        self._documents = documents
        compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_checksum=True)
        self._stream = compressor.stream_writer(path.open("xb"), closefd=True)

    def write(self, rows: Sequence[Row], lines: Sequence[bytes]) -> None:
        """Append rows, given with their own lines."""
        documents = self._documents
        for row, line in zip(rows, lines, strict=True):
            spelled = (line,) if documents is None else map(msgspec.json.encode, documents(row))
            for each in spelled:
                self.append(each)

    def append(self, line: bytes) -> None:
        """Append one line."""
        self._stream.write(line + b"\n")
        self.rows += 1

    def close(self) -> None:
        """Write what is left."""
        self._stream.close()  # type: ignore[no-untyped-call]


class _Shard:
    """Open files of the same rows, one a format."""

    def __init__(self, root: Path, part: Part, number: int, formats: Collection[str]) -> None:
        self.part = part
        self.rows = 0
        self._root = root
        self._names = {form: _name(form, part, number) for form in formats if is_written(form, part)}
        self._open = ExitStack()
        self._sheets: dict[str, _Sheet] = {}
        for form, name in self._names.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            sheet = _Parquet(root / name) if form == "parquet" else JsonLines(root / name, DERIVED.get(form))
            self._sheets[form] = sheet
            self._open.callback(sheet.close)

    def write(self, rows: list[Row], lines: list[bytes]) -> None:
        """Append one row group."""
        for sheet in self._sheets.values():
            sheet.write(rows, lines)
        self.rows += len(rows)

    def close(self) -> None:
        self._open.close()

    def entries(self) -> list[FileEntry]:
        """The files, once closed; one that came to hold nothing is removed."""
        entries = []
        for form, name in self._names.items():
            rows = self._sheets[form].rows
            if rows:
                entries.append(file_entry(self._root, name, form, self.part.config, self.part.split, rows))
            else:
                (self._root / name).unlink()
        return entries


def _name(form: str, part: Part, number: int) -> str:
    folder = f"formats/{form}/{part.config}" if form in DERIVED else part_folder(part.config)
    ending = "parquet" if form == "parquet" else "jsonl.zst"
    return f"{folder}/{part.split}-{number:05d}.{ending}"


def file_entry(root: Path, name: str, form: str, config: Config | None, split: Split, rows: int) -> FileEntry:
    """What the manifest says of a closed file."""
    path = root / name
    return FileEntry(
        name=name,
        config=config,
        split=split,
        format=form,
        rows=rows,
        bytes=path.stat().st_size,
        sha256=sha256_of(path),
    )


def sha256_of(path: Path) -> str:
    """Sha256 hex of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class PartWriter:
    """Writes the rows of one part, which must come in the order of their `row_id`."""

    def __init__(self, root: Path, part: Part, formats: Collection[str]) -> None:
        self.part = part
        self._root = root
        self._formats = formats
        self._shards = 0
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
            self._shard = _Shard(self._root, self.part, self._shards, self._formats)
            self._shards += 1
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
