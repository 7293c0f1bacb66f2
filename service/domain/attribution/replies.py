"""The calls inside a model's reply, and one spelling for equal calls.

Not attribution: nothing here compares replies with what was executed. Replies are text by strangers, read as far as
it can be read; a reply that seems to hold a call nobody can read says so.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from service.domain.actions import Inference, NativeCall
from service.domain.attribution.call_forms import CLOSING, OPENING, decoded, keyword_arguments, loose, tagged

__all__ = [
    "CLOSING",
    "OPENING",
    "ReplyCalls",
    "call_key",
    "calls_in",
    "mentions",
    "opens",
    "plain_text",
    "unescaped",
    "values_key",
]

MAX_DEPTH = 12
"""Arguments nested deeper are compared by their shape down to here."""
DEFAULTS = frozenset({("page", "1"), ("status", "success")})
"""Arguments that the published tools take to be so where they are not given."""

ALIASES: Mapping[str, str] = {"query": "q", "product_id": "product_ids"}
"""Arguments that the tools take under either name."""

_NAME = re.compile(r'"name"\s*:\s*"([^"]*)"')
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[nrt\"'/\\])")
_ESCAPED: Mapping[str, str] = {"n": "\n", "r": "\n", "t": "\t"}
_SURROGATE = re.compile("[\ud800-\udfff]")


class ReplyCalls(NamedTuple):
    """Calls of one reply, in order. `unread`: names in text that looks like a call and could not be read."""

    calls: tuple[NativeCall, ...]
    unread: frozenset[str] = frozenset()
    rest: str = ""
    """The text that is none of the calls."""


SILENT = ReplyCalls(())


def calls_in(reply: Inference) -> ReplyCalls:
    """Calls a reply holds: its native `tool_calls`, then those in its text that are not the same again.

    Thoughts that a server tells apart are read for calls only where the model said nothing else.
    """
    content, thoughts = reply.content, reply.reasoning
    if not content and not thoughts and not reply.native_calls:
        return SILENT
    native = tuple([NativeCall(call.name, decoded(call.arguments)) for call in reply.native_calls])
    if thoughts and not native and not (content and content.strip()):
        content, thoughts = thoughts, None
    if not content or (native and OPENING not in content):
        return ReplyCalls(native, rest=_joined(content, thoughts))
    calls, rest, broken = tagged(content) if OPENING in content else loose(content)
    if broken or thoughts:
        rest = _joined(rest, broken, thoughts)
    if native:
        known = {call_key(call.name, call.arguments) for call in native}
        calls = [*native, *(call for call in calls if call_key(call.name, call.arguments) not in known)]
    return ReplyCalls(tuple(calls), frozenset(_NAME.findall(broken)) if broken else frozenset(), rest)


def mentions(text: str, name: str, arguments: object) -> bool:
    """Whether text names a tool and every argument of a call, in whatever format: it may hold that call."""
    if not name or name not in text:
        return False
    values = arguments.values() if isinstance(arguments, dict) else (arguments,)
    return all(plain_text(str(value)) in text for value in values if isinstance(value, str | int | float))


def opens(text: str, name: str, arguments: object) -> bool:
    """Whether text begins a call of a tool that may be this call: one that cannot be read, or that says the same."""
    if not name or name not in text:
        return False
    word = re.escape(name)
    named = rf'["\']?(?:name|tool|tool_name|action|function)["\']?\s*[:=]\s*["\'`*]*{word}\b'
    for opening in re.finditer(rf"(?:(?<!\w){word}\(|{named})", text, re.IGNORECASE):
        written = keyword_arguments(text, opening.end()) if opening[0].endswith("(") else None
        if written is None or call_key(name, written.arguments) == call_key(name, arguments):
            return True
    return False


def call_key(name: str, arguments: object) -> str:
    """One spelling for calls that mean the same.

    Key order, whitespace, escapes, numbers written as strings, lists of ids written as "a,b", JSON inside strings,
    absent values, those a tool takes by default, and the other name of an argument make no difference.
    """
    return f"{name.strip()} {_spelled(arguments, MAX_DEPTH)}"


def values_key(arguments: object) -> str:
    """One spelling for arguments that say the same under whatever names."""
    if not isinstance(arguments, dict):
        return _spelled(arguments, MAX_DEPTH)
    return ";".join(sorted(text for _, text in _pairs(arguments, MAX_DEPTH)))


def plain_text(text: str) -> str:
    """Text without the differences that re-wrapping makes."""
    return " ".join(text.split())


def unescaped(text: str) -> str:
    """Text without the escapes that JSON puts into it, for text that was spelled once more on its way."""
    if "\\" not in text:
        return text
    text = _ESCAPE.sub(_character, text)
    if _SURROGATE.search(text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _joined(*texts: str | None) -> str:
    return "\n".join([text for text in texts if text])


def _character(escape: re.Match[str]) -> str:
    mark = escape[1]
    return chr(int(mark[1:], 16)) if len(mark) == 5 else _ESCAPED.get(mark, mark)


def _pairs(arguments: dict[str, object], depth: int) -> list[tuple[str, str]]:
    pairs = [(ALIASES.get(str(key), str(key)), _spelled(item, depth - 1)) for key, item in arguments.items()]
    return [pair for pair in pairs if pair[1] not in ("", "{}") and pair not in DEFAULTS]


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
            return "{" + ";".join(f"{key}={text}" for key, text in sorted(_pairs(value, depth))) + "}"
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
    if "\\" in text:
        text = unescaped(text)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    if "," in text:
        text = ",".join(part.strip() for part in text.split(","))
    if "." in text and text.replace(".", "", 1).isdecimal():
        return text.rstrip("0").rstrip(".")
    return text
