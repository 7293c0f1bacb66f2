"""Reading JSON that strangers wrote: what is broken is named, the rest is read. Knows nothing of trajectories."""

import json
import math
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec


class Defect(StrEnum):
    """What was wrong with the bytes of a payload."""

    BARE_NAN = "bare_nan"
    """NaN or Infinity as a bare word, which is no JSON; read as null."""
    NUL_BYTES = "nul_bytes"
    BAD_UTF8 = "bad_utf8"
    """Bytes that are no UTF-8, or escapes that name half a character."""
    MALFORMED_JSON = "malformed_json"
    """Not JSON, cut off, or nested too deep to be read."""
    NOT_A_LIST = "not_a_list"
    """A legacy payload is a list of steps; this is something else."""
    NOT_AN_OBJECT = "not_an_object"
    """An envpack payload is one object; this is something else."""
    OVERSIZED = "oversized"
    """More than any agent can produce within its limits; not read any further."""
    TOO_DEEP = "too_deep"
    """Arguments or a result nested deeper than any tool needs; not read any further."""
    BAD_STEP = "bad_step"
    """A step, or a part of it, has the wrong type; that part was left out."""
    BAD_PROXY_CALL = "bad_proxy_call"
    """A line of the log has the wrong type; it was left out, so the log is not complete."""


MOST_SALVAGED = 10_000
"""Most parts that are tried one by one where something is wrong. Honest payloads have some hundreds; a payload at the
limit of its size could hold millions, each of which costs an exception."""


def bounded(levels: int) -> Any:
    """The type of JSON values in which lists and objects nest no more than so many levels: reading as it checks."""
    scalar = str | int | float | bool | None
    value: Any = scalar
    for _ in range(levels):
        value = scalar | list[value] | dict[str, value]
    return value


class Found(dict[Defect, None]):
    """The defects found in one payload, in order, and how many of its parts may still be tried."""

    def __init__(self, defects: Iterable[Defect] = ()) -> None:
        super().__init__(dict.fromkeys(defects))
        self._left = MOST_SALVAGED

    def affordable(self, items: list[Any]) -> list[Any]:
        """The items; none of them where they are too many, and the payload is oversized."""
        self._left -= len(items)
        if self._left >= 0:
            return items
        self[Defect.OVERSIZED] = None
        return []


class Salvage(NamedTuple):
    """`value` is None where nothing could be read, and holds no NaN, infinity or half character."""

    value: Any
    defects: tuple[Defect, ...]


def salvage(payload: bytes) -> Salvage:
    """Read JSON that a strict reader refused. Never raises."""
    defects: dict[Defect, None] = {}
    if b"\0" in payload:
        defects[Defect.NUL_BYTES] = None
        payload = payload.replace(b"\0", b"")
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        defects[Defect.BAD_UTF8] = None
        text = payload.decode(errors="replace")

    def unnumber(_word: str) -> None:
        defects[Defect.BARE_NAN] = None

    def number(word: str) -> float | None:
        value = float(word)
        if math.isfinite(value):
            return value
        defects[Defect.BARE_NAN] = None
        return None

    try:
        value = json.loads(text, parse_constant=unnumber, parse_float=number)
        if "\\ud" in text.lower():
            spelled = json.dumps(value, ensure_ascii=False)
            whole = spelled.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            if whole != spelled:
                defects[Defect.BAD_UTF8] = None
                value = json.loads(whole)
    except (ValueError, RecursionError):
        return Salvage(None, (*defects, Defect.MALFORMED_JSON))
    return Salvage(value, tuple(defects))


def read(payload: bytes) -> Salvage:
    """The JSON value of a payload: strictly and fast, or leniently when something is wrong. Never raises."""
    try:
        return Salvage(msgspec.json.decode(payload), ())
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
        return salvage(payload)


def words(value: Any) -> str | None:
    """The text of a message: a string, or the text parts of a list of parts; None where it is neither."""
    if value is None or isinstance(value, str):
        return value or ""
    if not isinstance(value, list):
        return None
    parts = [part.get("text") if isinstance(part, dict) else part for part in value]
    return "\n".join(part for part in parts if isinstance(part, str))


def arguments(value: Any) -> dict[str, Any] | str:
    """Arguments of a call as an object where they are one, also when it was written as JSON text."""
    if value is None:
        return {}
    read_value = parsed(value)
    if isinstance(read_value, dict):
        return read_value
    return value if isinstance(value, str) else msgspec.json.encode(value).decode(errors="replace")


def parsed(value: Any) -> Any:
    """JSON text of an object or a list as what it says; anything else as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
        return value


def storable(text: str) -> str:
    """Text that a database can hold: JSON may name the character NUL, PostgreSQL may not."""
    return text.replace("\0", "\ufffd") if "\0" in text else text


def is_deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects nest more than so many levels. Recurses into none of them."""
    layer = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        inner = [part for each in layer for part in (each.values() if isinstance(each, dict) else each)]
        layer = [part for part in inner if isinstance(part, dict | list)]
        if not layer:
            return False
    return bool(layer)
