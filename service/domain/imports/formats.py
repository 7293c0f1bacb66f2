"""The formats a file may have, how a row shows its format, and why a row is refused. Reads no row's content."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from service.domain.trajectory import ExecutionKind
from service.domain.wire import atif as atif_wire

EXCERPT_CHARACTERS = 80


class Format(StrEnum):
    """A format of imported files."""

    ENVELOPE = "envelope"
    """The sandbox's `output.jsonl`: the dialogue of one problem with what the executor says around it."""
    ATIF = "atif"
    MESSAGES = "messages"


KINDS: Mapping[Format, ExecutionKind] = {
    Format.ENVELOPE: ExecutionKind.LEGACY,
    Format.ATIF: ExecutionKind.ATIF,
    Format.MESSAGES: ExecutionKind.MESSAGES,
}


class RowFault(StrEnum):
    """Why a row is not stored."""

    TOO_LONG = "too_long"
    """More bytes than any trajectory may have."""
    TOO_DEEP = "too_deep"
    NOT_JSON = "not_json"
    NOT_AN_OBJECT = "not_an_object"
    UNKNOWN_FORMAT = "unknown_format"
    """None of the formats' fields are there."""
    OTHER_FORMAT = "other_format"
    """Of another format than the file's first row, or than was asked for."""
    UNKNOWN_VERSION = "unknown_version"
    """ATIF of another major version than 1."""
    NO_TRAJECTORY = "no_trajectory"
    """The field of the steps is absent or of the wrong type."""
    TOO_MANY_STEPS = "too_many_steps"
    NO_PROBLEM = "no_problem"
    """It names no problem and holds no query that one could be known by."""
    LOCAL = "local"
    """It stands in the validator's own logs that this corpus watches, and what stands there is never served."""
    UNSTORABLE = "unstorable"
    """The database did not take it."""


class Refused(NamedTuple):
    """A row that is not stored."""

    fault: RowFault


def format_of(row: Mapping[str, Any]) -> Format | None:
    """The format a row's fields show; None where they show none."""
    if "dialogue" in row and ("problem_id" in row or "status" in row):
        return Format.ENVELOPE
    if "atif_json" in row or ("schema_version" in row and "steps" in row):
        return Format.ATIF
    return Format.MESSAGES if "messages" in row else None


def is_newer(schema_version: str | None) -> bool:
    """Whether a 1.x version of ATIF is newer than any this code was written for."""
    minor = atif_wire.minor_version(schema_version)
    return minor is not None and minor > atif_wire.NEWEST_MINOR


def excerpt(line: bytes) -> str:
    """The beginning of a line by strangers, escaped, in at most 80 printable characters."""
    text = line[:EXCERPT_CHARACTERS].decode(errors="replace")
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    shown = shown[: EXCERPT_CHARACTERS - 3]
    return f"{shown}..." if len(line) > len(shown) else shown
