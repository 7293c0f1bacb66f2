"""Reading files into the corpus: row by row, in batches, with an account of every row. Prints nothing.

An import may end at any row, and be run again: rows are known by their content, so what is stored is passed over.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Engine

from service.domain.imports.formats import Format, Refused, RowFault, excerpt, is_newer
from service.domain.imports.identity import Naming
from service.domain.imports.rows import LONGEST_ROW_BYTES, Imported, read_row
from service.source.archives import Archive, ArchiveBroken, ArchiveCaps, Line
from service.store.engine import transaction
from service.store.harvest import imports
from service.store.harvest.imports import Added, Unstorable

BATCH_ROWS = 200
BATCH_BYTES = 8 * 1024 * 1024
TOLD_ERRORS = 20
"""Rows at fault that are named, a file; all of them are counted."""
CAPS = ArchiveCaps(line_bytes=LONGEST_ROW_BYTES)


class RowError(NamedTuple):
    """One row that was not stored."""

    line: int
    fault: RowFault
    excerpt: str


@dataclass(slots=True)
class Account:
    """What became of the rows of one file. Every row that was read is counted once."""

    name: str
    format: Format | None = None
    file_sha256: str | None = None
    """None until the file was read to its end."""
    stored: int = 0
    present: int = 0
    """Rows that the corpus has already, or that came twice."""
    refused: Counter[RowFault] = field(default_factory=Counter)
    errors: list[RowError] = field(default_factory=list)
    newer_versions: Counter[str] = field(default_factory=Counter)
    """Rows of ATIF versions newer than this code knows; read like the others."""
    fault: str | None = None
    """Why the file was not read to its end."""

    @property
    def usable(self) -> int:
        """Rows that are in the corpus now, or would be after a dry run."""
        return self.stored + self.present

    @property
    def is_clean(self) -> bool:
        """Whether every row could be used."""
        return not self.refused and self.fault is None

    def refuse(self, line: int, fault: RowFault, body: bytes | None) -> None:
        """Count a row that is not stored, and name it if there is room."""
        self.refused[fault] += 1
        if len(self.errors) < TOLD_ERRORS:
            self.errors.append(RowError(line, fault, excerpt(body or b"")))

    def counts(self) -> dict[str, int]:
        """Rows by what became of them."""
        refused = {fault.value: rows for fault, rows in sorted(self.refused.items())}
        return {"stored": self.stored, "present": self.present, **refused}


class _Row(NamedTuple):
    line: int
    imported: Imported


Store = Callable[[Sequence[_Row], Account], None]


def check(path: Path, wanted: Format | None, naming: Naming, stopping: threading.Event) -> Account:
    """Read a file and store nothing; `stored` counts the rows that could be."""
    account = Account(str(path))
    seen: set[str] = set()

    def count(rows: Sequence[_Row], account: Account) -> None:
        for row in rows:
            known = row.imported.row_sha256 in seen
            seen.add(row.imported.row_sha256)
            account.stored += not known
            account.present += known

    _read(path, wanted, naming, stopping, account, count)
    return account


def take_in(engine: Engine, path: Path, wanted: Format | None, naming: Naming, stopping: threading.Event) -> Account:
    """Read a file into the corpus, a transaction for each batch of rows."""
    account = Account(str(path))
    with transaction(engine) as session:
        import_id = imports.begin(session, _storable(path.name))

    def store(rows: Sequence[_Row], account: Account) -> None:
        _store(engine, rows, account)

    _read(path, wanted, naming, stopping, account, store)
    if not stopping.is_set():
        with transaction(engine) as session:
            imports.finish(
                session,
                import_id,
                file_sha256=account.file_sha256,
                format_name=account.format,
                counts=account.counts(),
                fault=account.fault,
                at=datetime.now(UTC),
            )
    return account


def _read(
    path: Path, wanted: Format | None, naming: Naming, stopping: threading.Event, account: Account, store: Store
) -> None:
    archive = Archive(path, CAPS)
    account.format = wanted
    batch: list[_Row] = []
    held_bytes = 0
    try:
        for line in _rows(archive):
            if stopping.is_set():
                break
            row = _read_line(line, account, naming)
            if row is None:
                continue
            batch.append(row)
            held_bytes += len(row.imported.payload)
            if len(batch) >= BATCH_ROWS or held_bytes >= BATCH_BYTES:
                store(batch, account)
                batch, held_bytes = [], 0
    except ArchiveBroken as broken:
        account.fault = broken.fault.value
    except OSError as fault:
        account.fault = (fault.strerror or type(fault).__name__).lower()
    account.file_sha256 = archive.sha256
    store(batch, account)


def _rows(archive: Archive) -> Iterator[Line]:
    """The rows of a file: its lines, or those of its one document where it is one that spans lines or is a list."""
    lines = archive.lines()
    first = next(lines, None)
    if first is None:
        return
    if first.body is not None and _may_open_document(first.body):
        body = archive.document()
        rows = _document_rows(body) if body is not None else None
        if rows is not None or (body is None and first.body[:1] == b"["):
            yield from [Line(first.number, None)] if rows is None else rows
            return
        lines = archive.lines()
        first = next(lines)
    yield first
    yield from lines


def _may_open_document(line: bytes) -> bool:
    """Whether a line may begin a list of rows, or a row that goes on in the next line."""
    return line[:1] == b"[" or (line[:1] == b"{" and line[-1:] in b"{[,:")


def _document_rows(body: bytes) -> list[Line] | None:
    """The rows of a JSON document, numbered by their place in it; None where it is none."""
    try:
        if body.lstrip()[:1] != b"[":
            return [Line(1, bytes(msgspec.json.decode(body, type=msgspec.Raw)))]
        return [
            Line(place, bytes(row)) for place, row in enumerate(msgspec.json.decode(body, type=list[msgspec.Raw]), 1)
        ]
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
        return None


def _read_line(line: Line, account: Account, naming: Naming) -> _Row | None:
    """The row of a line; None where it was refused. The first row that can be read decides the file's format."""
    read = Refused(RowFault.TOO_LONG) if line.body is None else read_row(line.body, account.format, naming)
    if isinstance(read, Refused):
        account.refuse(line.number, read.fault, line.body)
        return None
    account.format = read.format
    if read.schema_version is not None and is_newer(read.schema_version):
        account.newer_versions[read.schema_version] += 1
    return _Row(line.number, read)


def _store(engine: Engine, rows: Sequence[_Row], account: Account) -> None:
    """Store a batch; a row that the database does not take holds up no other."""
    if not rows:
        return
    try:
        with transaction(engine) as session:
            added: Added = imports.add(session, [row.imported for row in rows], datetime.now(UTC))
    except Unstorable:
        if len(rows) == 1:
            account.refuse(rows[0].line, RowFault.UNSTORABLE, rows[0].imported.payload)
            return
        middle = len(rows) // 2
        _store(engine, rows[:middle], account)
        _store(engine, rows[middle:], account)
        return
    for row in rows:
        if row.imported.eval_run_id in added.local:
            account.refuse(row.line, RowFault.LOCAL, b"")
    account.stored += added.stored
    account.present += added.present


def _storable(name: str) -> str:
    """A file's name as text; on Linux it may hold bytes that are none."""
    return name.encode(errors="replace").decode()[:255]


def as_plain(account: Account) -> dict[str, Any]:
    """An account as plain JSON values."""
    return {
        "name": account.name.encode(errors="replace").decode(),
        "sha256": account.file_sha256,
        "format": account.format,
        **{"stored": account.stored, "present": account.present},
        "refused": {fault.value: rows for fault, rows in sorted(account.refused.items())},
        "errors": [error._asdict() for error in account.errors],
        "newer_versions": dict(sorted(account.newer_versions.items())),
        "fault": account.fault,
    }
