"""The calls inside a model's reply, and one spelling for equal calls.

Not attribution: nothing here compares replies with what was executed. Replies are text by strangers, read as far as
it can be read; a reply that seems to hold a call nobody can read says so.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from service.domain.actions import Inference, NativeCall

OPENING, CLOSING, FENCE = "<tool_call>", "</tool_call>", "```"
MAX_DEPTH = 12
"""Arguments nested deeper are compared by their shape down to here."""

_NAME = re.compile(r'"name"\s*:\s*"([^"]*)"')
_TOLERANT = json.JSONDecoder(strict=False)


class _Read(NamedTuple):
    values: Sequence[Any]
    rest: str
    """Text after the last value."""


class ReplyCalls(NamedTuple):
    """Calls of one reply, in order. `unread`: names in text that looks like a call and could not be read."""

    calls: tuple[NativeCall, ...]
    unread: frozenset[str]


def calls_in(reply: Inference) -> ReplyCalls:
    """Calls a reply holds: its native `tool_calls`, then those in its text."""
    calls = [NativeCall(call.name, _decoded(call.arguments)) for call in reply.native_calls]
    if not reply.content:
        return ReplyCalls(tuple(calls), frozenset())
    unread: set[str] = set()
    for block in _blocks(reply.content):
        values, rest = _values(block)
        calls.extend(call for value in values for call in _calls(value))
        if rest:
            unread.update(_NAME.findall(rest))
    return ReplyCalls(tuple(calls), frozenset(unread))


def mentions(text: str, name: str, arguments: object) -> bool:
    """Whether text names a tool and every argument of a call, in whatever format: it may hold that call."""
    if not name or name not in text:
        return False
    values = arguments.values() if isinstance(arguments, dict) else (arguments,)
    return all(plain_text(str(value)) in text for value in values if isinstance(value, str | int | float))


def call_key(name: str, arguments: object) -> str:
    """One spelling for calls that mean the same.

    Key order, whitespace, numbers written as strings, lists of ids written as "a,b", JSON inside strings and absent
    values make no difference.
    """
    return f"{name.strip()} {_spelled(arguments, MAX_DEPTH)}"


def plain_text(text: str) -> str:
    """Text without the differences that re-wrapping makes."""
    return " ".join(text.split())


def _blocks(content: str) -> Iterator[str]:
    """Pieces of a reply that can hold calls: tagged blocks, else fenced ones, else the whole if it looks like JSON."""
    if OPENING in content:
        for piece in content.split(OPENING)[1:]:
            yield piece.split(CLOSING, 1)[0].strip()
    elif FENCE in content:
        for piece in content.split(FENCE)[1::2]:
            yield piece.removeprefix("json").strip()
    elif content.lstrip()[:1] in ("{", "["):
        yield content.strip()


def _values(block: str) -> _Read:
    """JSON values of a block; several may stand one after another."""
    try:
        return _Read((msgspec.json.decode(block),), "")
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
        pass
    values: list[Any] = []
    at = 0
    try:
        while at < len(block) and block[at] in "{[":
            value, at = _TOLERANT.raw_decode(block, at)
            values.append(value)
            while at < len(block) and block[at] in " \t\r\n,":
                at += 1
    except (ValueError, RecursionError):
        pass
    return _Read(values, block[at:])


def _calls(value: Any) -> Iterator[NativeCall]:
    for entry in value if isinstance(value, list) else (value,):
        if not isinstance(entry, dict):
            continue
        inner = entry.get("function")
        call = inner if isinstance(inner, dict) else entry
        name = call.get("name")
        if isinstance(name, str):
            arguments = call["parameters"] if "parameters" in call else call.get("arguments")
            yield NativeCall(name, _decoded(arguments))


def _decoded(arguments: Any) -> Any:
    """Arguments as an object where they are one, also when it was written as JSON text."""
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    values, _ = _values(arguments.strip())
    return values[0] if len(values) == 1 else arguments


def _spelled(value: object, depth: int) -> str:
    match value:
        case str():
            return _spelled_text(value, depth)
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return str(int(value)) if value.is_integer() else repr(value)
        case None:
            return ""
        case _ if depth == 0:
            return "..."
        case dict():
            pairs = ((str(key), _spelled(item, depth - 1)) for key, item in value.items())
            return "{" + ";".join(f"{key}={text}" for key, text in sorted(pairs) if text not in ("", "{}")) + "}"
        case list() | tuple():
            return ",".join(_spelled(item, depth - 1) for item in value)
        case _:
            return str(value)


def _spelled_text(text: str, depth: int) -> str:
    text = " ".join(text.split())
    if text[:1] in ("{", "[") and depth:
        try:
            return _spelled(msgspec.json.decode(text), depth - 1)
        except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
            return text
    if "," in text:
        text = ",".join(part.strip() for part in text.split(","))
    if "." in text and text.replace(".", "", 1).isdecimal():
        return text.rstrip("0").rstrip(".")
    return text
