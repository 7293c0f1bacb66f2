"""Untrusted JSON to plain values that Postgres can hold, and typed reads of single fields. Knows no field name.

Bare NaN becomes None, NUL and lone surrogates become U+FFFD; a field of the wrong type reads as absent.
"""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

MAX_DEPTH = 100
"""Listings nest a handful of levels; what is deeper was made to hurt."""


class Malformed(ValueError):
    """Not JSON, or not of the outline that was needed."""


class Row(dict[str, Any]):
    """A JSON object whose fields are read by type. Wrong types are absent, never an error, except in `needed`."""

    def needed(self, name: str) -> str:
        """A text that the row is worthless without.

        Raises:
            Malformed: it is absent, empty or no text.
        """
        value = self.text(name)
        if not value:
            raise Malformed(f"no {name}")
        return value

    def text(self, name: str) -> str | None:
        """A string."""
        value = self.get(name)
        return value if isinstance(value, str) else None

    def number(self, name: str) -> float | None:
        """A finite number."""
        value = self.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value) if math.isfinite(value) else None

    def count(self, name: str) -> int | None:
        """An integer that fits 64 bits."""
        value = self.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None

    def flag(self, name: str, default: bool) -> bool:
        """A boolean, or the default."""
        value = self.get(name)
        return value if isinstance(value, bool) else default

    def moment(self, name: str) -> datetime | None:
        """A timestamp in UTC, which is also what one without an offset means."""
        try:
            moment = datetime.fromisoformat(self.text(name) or "")
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            return None

    def row(self, name: str) -> "Row":
        """A nested object; empty where there is none."""
        value = self.get(name)
        return Row(value) if isinstance(value, dict) else Row()

    def rows(self, name: str) -> list[Any]:
        """A nested list, of anything."""
        value = self.get(name)
        return value if isinstance(value, list) else []


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
        return _bounded(_clean(json.loads(body)), MAX_DEPTH)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not JSON: {type(error).__name__}") from None


def _bounded(value: Any, levels: int) -> Any:
    """The value, if it nests no deeper than `levels`."""
    layer = [value]
    for _ in range(levels):
        layer = [child for parent in layer for child in _children(parent)]
        if not layer:
            return value
    raise Malformed("nested too deep")


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8", "replace")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_clean(name): _clean(member) for name, member in value.items()}
    return [_clean(member) for member in value] if isinstance(value, list) else value
