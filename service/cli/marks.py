"""The marks in a snapshot's status, in figures and in words. Sets none: workers do."""

from collections.abc import Mapping
from typing import Any

import msgspec

from service.domain.rows.manifest import STATUS_NAME
from service.errors import SluiceError
from service.store.release.files import FileStore


class _Rows(msgspec.Struct):
    rows: int


class _Status(msgspec.Struct):
    marks: dict[str, _Rows] = {}


def marks_of(files: FileStore, snapshot_id: str) -> dict[str, int]:
    """Marked rows by reason; none for a snapshot whose files are not here."""
    try:
        content = files.path(snapshot_id, STATUS_NAME).read_bytes()
    except (SluiceError, FileNotFoundError):
        return {}
    return marks_in(content)


def marks_in(status: bytes) -> dict[str, int]:
    """Marked rows by reason, of a status document as it was served; none where it is no such document."""
    try:
        told = msgspec.json.decode(status, type=_Status)
    except msgspec.DecodeError:
        return {}
    return {reason: found.rows for reason, found in sorted(told.marks.items())}


def marks_in_words(marks: Mapping[str, Any]) -> str:
    """One line; empty without marks. A row may stand under several reasons."""
    return ", ".join(f"{reason} {rows}" for reason, rows in marks.items())
