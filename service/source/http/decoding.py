"""Untrusted JSON to plain values that Postgres can hold, and typed reads of single fields. Knows no field name.

Bare NaN becomes None, NUL and lone surrogates become U+FFFD, an integer beyond 64 bits a float; a field of the wrong
type reads as absent.
"""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import orjson

from service.domain.imports.identity import PREFIX

MAX_DEPTH = 100
"""Listings nest a handful of levels; what is deeper was made to hurt."""
MAX_KEY_BYTES = 500
"""Ids are UUIDs and short names. Two of this size and their row pointers fit one entry of a Postgres index."""
MAX_LABEL_CHARACTERS = 200
MAX_COUNT = 2**31 - 1
"""What a column of integers holds."""
YEARS = range(1970, 2200)
"""A time outside them is a mistake, and near the ends of the calendar some clocks cannot tell it."""
MAX_DETAIL_LEVELS = 32
MAX_DETAIL_BYTES = 64 * 1024
_LONGEST_INTEGER = len(str(-(2**63)))


class Malformed(ValueError):
    """Not JSON, or not of the outline that was needed."""


class Row(dict[str, Any]):
    """A JSON object whose fields are read by type. Wrong types are absent, never an error, except in `needed`."""

    def needed(self, name: str) -> str:
        """A key that the row is worthless without.

        Raises:
            Malformed: it is absent, empty, no text or no key.
        """
        value = self.key(name)
        if not value:
            raise Malformed(f"no {name}")
        return value

    def key(self, name: str) -> str | None:
        """A string that rows are found by.

        Raises:
            Malformed: it is longer than any id; cut, it would be another row's.
        """
        value = self.text(name)
        return None if value is None else key(value, name)

    def text(self, name: str) -> str | None:
        """A string."""
        value = self.get(name)
        return value if isinstance(value, str) else None

    def label(self, name: str) -> str | None:
        """A string to be shown, cut where it is longer than any name."""
        value = self.text(name)
        return None if value is None else value[:MAX_LABEL_CHARACTERS]

    def number(self, name: str) -> float | None:
        """A finite number."""
        value = self.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        try:
            return float(value) if math.isfinite(value) else None
        except OverflowError:
            return None

    def count(self, name: str) -> int | None:
        """An integer that fits 32 bits."""
        value = self.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_COUNT else None

    def flag(self, name: str, default: bool) -> bool:
        """A boolean, or the default."""
        value = self.get(name)
        return value if isinstance(value, bool) else default

    def moment(self, name: str) -> datetime | None:
        """A timestamp in UTC, which is also what one without an offset means; absent where it is no time of ours."""
        try:
            given = datetime.fromisoformat(self.text(name) or "")
            moment = given.astimezone(UTC) if given.tzinfo else given.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            return None
        return moment if moment.year in YEARS else None

    def row(self, name: str) -> "Row":
        """A nested object; empty where there is none."""
        value = self.get(name)
        return Row(value) if isinstance(value, dict) else Row()

    def details(self, name: str) -> dict[str, Any]:
        """A nested object to keep as it is, without what lies deeper than 32 levels; empty where it is too large."""
        kept: dict[str, Any] = _pruned(self.row(name), MAX_DETAIL_LEVELS)
        return kept if len(orjson.dumps(kept)) <= MAX_DETAIL_BYTES else {}

    def rows(self, name: str) -> list[Any]:
        """A nested list, of anything."""
        value = self.get(name)
        return value if isinstance(value, list) else []


def key(value: str, name: str) -> str:
    """The value, if it is short enough to find rows by and is no name of ours.

    Raises:
        Malformed: it is not.
    """
    if value.startswith(PREFIX):
        raise Malformed(f"{name} names an import")
    if len(value.encode("utf-8", "replace")) > MAX_KEY_BYTES:
        raise Malformed(f"{name} too long")
    return value


def decode(body: bytes) -> Any:
    """Parse an answer.

    Raises:
        Malformed: it is not JSON, even leniently read, or nests too deep.
    """
    if b"\\u0000" not in body:
        try:
            return _bounded(orjson.loads(body), MAX_DEPTH)
        except orjson.JSONDecodeError:
            pass
    try:
        return _bounded(_clean(json.loads(body, parse_int=_integer)), MAX_DEPTH)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not JSON: {type(error).__name__}") from None


def _bounded(value: Any, levels: int) -> Any:
    """The value, if it nests no deeper than `levels`."""
    layer = [value] if _nests(value) else []
    for _ in range(levels):
        if not layer:
            return value
        members = chain.from_iterable(parent.values() if type(parent) is dict else parent for parent in layer)
        layer = [member for member in members if type(member) is dict or type(member) is list]
    raise Malformed("nested too deep")


def _pruned(value: Any, levels: int) -> Any:
    """The value without objects and lists that lie deeper than `levels` of them."""
    if isinstance(value, dict):
        return {name: _pruned(member, levels - 1) for name, member in value.items() if levels > 1 or not _nests(member)}
    if isinstance(value, list):
        return [_pruned(member, levels - 1) for member in value if levels > 1 or not _nests(member)]
    return value


def _nests(value: Any) -> bool:
    return isinstance(value, dict | list)


def _integer(text: str) -> int | float:
    """As orjson reads one: exact within 64 bits, signed or not, and a float beyond, infinite in the end."""
    if len(text) <= _LONGEST_INTEGER and -(2**63) <= int(text) < 2**64:
        return int(text)
    return float(text)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8", "replace")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_clean(name): _clean(member) for name, member in value.items()}
    return [_clean(member) for member in value] if isinstance(value, list) else value
