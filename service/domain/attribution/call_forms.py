"""Calls as models write them into text: the usual forms, each read only where it can be read exactly.

Compares nothing with what was executed. Text that is no call, or opens one that cannot be read, is handed back as
`rest`, so that nobody takes silence for evidence.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from service.domain.actions import NativeCall

OPENING, CLOSING = "<tool_call>", "</tool_call>"
LONGEST = 4_000
"""Longer texts are read for tagged blocks alone: the log keeps no reply over 2,000 characters, and forms cost time."""
MOST_STARTS = 64
"""Places of one text that are tried as the beginning of JSON."""

NAME_KEYS = ("name", "tool", "tool_name", "action", "function")
ARGUMENT_KEYS = ("parameters", "arguments", "args", "input", "tool_input", "action_input", "params")
INNER_KEYS = ("function", "tool_calls", "tool_call", "function_call", "calls", "actions", "action")
ASIDE_KEYS = frozenset({"id", "type", "index", "thought", "thoughts", "think", "reasoning"})
"""What may stand beside the name of a call that has no arguments; with anything else it is some other object."""

_TOLERANT = json.JSONDecoder(strict=False)
_START = re.compile(r"[{\[]")
_THINK = re.compile(r"<think>.*?</think>", re.DOTALL)
_MARKED = re.compile(r"<(?:function=|invoke name=)[\"']?([\w.-]+)[\"']?>(.*?)</(?:function|invoke)>", re.DOTALL)
_MARKED_ARGUMENT = re.compile(
    r"<parameter(?:=| name=)[\"']?([\w.-]+)[\"']?>\n?(.*?)\n?</parameter>", re.DOTALL | re.IGNORECASE
)
_ACTION = re.compile(
    r"^[ \t*]*Action[ \t*]*:[ \t*`]*([\w.-]+)[ \t*`]*\n[ \t*]*Action[ _]Input[ \t*]*:[ \t*]*(?:```(?:json)?)?\s*",
    re.MULTILINE | re.IGNORECASE,
)
_PYTHON = re.compile(
    r"^[ \t]*(?:[-*>][ \t]+|\d+[.)][ \t]+)?(?:Action[ \t]*:[ \t]*)?[`\[]*([A-Za-z_][\w.]*)\(", re.MULTILINE
)
_NEXT_PYTHON = re.compile(r"[ \t]*[,;]\s*([A-Za-z_][\w.]*)\(")
_LINE_END = re.compile(r"[ \t\]`;]*(?:\n|\Z)")
_SPACE = re.compile(r"\s*")
_KEYWORD = re.compile(r"([A-Za-z_]\w*)\s*=\s*")
_QUOTED = re.compile(r"'((?:[^'\\\n]|\\.)*)'")
_CONSTANT = re.compile(r"(True|False|None)\b")
_CONSTANTS = {"True": True, "False": False, "None": None}


class Form(NamedTuple):
    """What was read of one text. `broken`: what stands where a call should, and cannot be read."""

    calls: list[NativeCall]
    rest: str
    broken: str = ""


class Read(NamedTuple):
    """JSON values of a text, and the text after the last of them."""

    values: Sequence[Any]
    rest: str


class Written(NamedTuple):
    """A call's arguments, and where they end."""

    arguments: dict[str, Any]
    end: int


def tagged(content: str) -> Form:
    """Calls in `<tool_call>` blocks."""
    before, *pieces = content.split(OPENING)
    if len(pieces) == 1:
        block, _, after = pieces[0].partition(CLOSING)
        only = _usual(block)
        if only:
            return Form(only, before + after)
    calls: list[NativeCall] = []
    rest, broken = [before], []
    for piece in pieces:
        block, _, after = piece.partition(CLOSING)
        values, left = json_values(block.strip())
        found = [call for value in values for call in json_calls(value)]
        if left:
            form = loose(left)
            found += form.calls
            broken.append(form.rest)
        calls += found
        rest += (after,) if found else (block, after)
    return Form(calls, "\n".join(rest), "\n".join(broken))


def _usual(block: str) -> list[NativeCall] | None:
    """The calls of a block that is JSON throughout and holds nothing else; None: look closer."""
    try:
        value = msgspec.json.decode(block)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
        return None
    entries = value if isinstance(value, list) else [value]
    calls = [_json_call(entry) for entry in entries if isinstance(entry, dict)]
    found = [call for call in calls if call is not None]
    return found if len(found) == len(entries) else None


def loose(content: str) -> Form:
    """Calls in a text without such blocks, in the first form that occurs; what a model only thinks is no call."""
    if len(content) > LONGEST:
        return Form([], content)
    text = _THINK.sub("\n", content) if "<think>" in content else content
    for is_there, read in _FORMS:
        if any(mark in text for mark in is_there):
            form = read(text)
            if form.calls:
                thought = "\n".join(_THINK.findall(content)) if text is not content else ""
                return Form(form.calls, f"{form.rest}\n{thought}")
    return Form([], content)


def json_values(block: str) -> Read:
    """JSON values of a text; several may stand one after another."""
    try:
        return Read((msgspec.json.decode(block),), "")
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
    return Read(values, block[at:])


def json_calls(value: Any, depth: int = 3) -> Iterator[NativeCall]:
    """Calls that a JSON value spells: a name with arguments, alone, in a list, or under a key that says so."""
    for entry in value if isinstance(value, list) else (value,):
        if not isinstance(entry, dict):
            continue
        call = _json_call(entry)
        if call is not None:
            yield call
        elif depth:
            inner = next((entry[key] for key in INNER_KEYS if isinstance(entry.get(key), dict | list)), None)
            yield from json_calls(inner, depth - 1)


def decoded(arguments: Any) -> Any:
    """Arguments as an object where they are one, also when it was written as JSON text."""
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    values, _ = json_values(arguments.strip())
    return values[0] if len(values) == 1 else arguments


def keyword_arguments(text: str, at: int) -> Written | None:
    """Arguments as Python writes them, from behind the opening parenthesis; None where they cannot be read exactly."""
    arguments: dict[str, Any] = {}
    at = _after_space(text, at)
    if text.startswith("{", at):
        whole = _literal(text, at)
        if whole is None or not isinstance(whole[0], dict):
            return None
        arguments, at = whole[0], _after_space(text, whole[1])
    while not text.startswith(")", at):
        keyword = _KEYWORD.match(text, at)
        value = _literal(text, keyword.end()) if keyword else None
        if keyword is None or value is None:
            return None
        arguments[keyword[1]] = value[0]
        at = _after_space(text, value[1])
        if text.startswith(",", at):
            at = _after_space(text, at + 1)
        elif not text.startswith(")", at):
            return None
    return Written(arguments, at + 1)


def _json_call(entry: dict[str, Any]) -> NativeCall | None:
    name, arguments = entry.get("name"), entry.get("parameters") or entry.get("arguments")
    if type(name) is str and type(arguments) is dict:
        return NativeCall(name, arguments)  # the usual case
    for key in NAME_KEYS:
        name = entry.get(key)
        if not isinstance(name, str):
            continue
        given = [other for other in ARGUMENT_KEYS if other in entry]
        if given:
            return NativeCall(name, decoded(entry[given[0]]))
        return NativeCall(name, {}) if ASIDE_KEYS.issuperset(entry.keys() - {key}) else None
    return None


def _marked(text: str) -> Form:
    """`<function=name>` and `<invoke name="name">`, with parameters in tags of their own or as JSON."""
    calls: list[NativeCall] = []
    for found in _MARKED.finditer(text):
        name, body = found.groups()
        arguments: Any = dict(_MARKED_ARGUMENT.findall(body))
        if not arguments and body.strip():
            arguments = decoded(body)
        if isinstance(arguments, dict):
            calls.append(NativeCall(name, arguments))
    return Form(calls, _MARKED.sub("\n", text) if calls else text)


def _json(text: str) -> Form:
    """JSON anywhere in a text: bare, fenced, or behind a mark of the model's own."""
    try:
        whole = list(json_calls(msgspec.json.decode(text)))
        return Form(whole, "" if whole else text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
        pass
    calls: list[NativeCall] = []
    rest: list[str] = []
    done = at = 0
    for _ in range(MOST_STARTS):
        start = _START.search(text, at)
        if start is None:
            break
        try:
            value, at = _TOLERANT.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            at = start.end()
            continue
        found = list(json_calls(value))
        if found:
            calls += found
            rest.append(text[done : start.start()])
            done = at
    return Form(calls, "\n".join((*rest, text[done:])))


def _react(text: str) -> Form:
    """`Action: name` and `Action Input: {...}`, a line each."""
    calls: list[NativeCall] = []
    rest: list[str] = []
    done = 0
    for found in _ACTION.finditer(text):
        value = _literal(text, found.end()) if text.startswith("{", found.end()) else None
        if value is not None and isinstance(value[0], dict):
            calls.append(NativeCall(found[1], value[0]))
            rest.append(text[done : found.start()])
            done = value[1]
    return Form(calls, "\n".join((*rest, text[done:])))


def _python(text: str) -> Form:
    """`name(key="value")` where it is all that its line says, alone or in a list."""
    calls: list[NativeCall] = []
    rest: list[str] = []
    done = 0
    for found in _PYTHON.finditer(text):
        line: list[NativeCall] = []
        opening: re.Match[str] | None = found
        end = found.start()
        while opening is not None:
            written = keyword_arguments(text, opening.end())
            if written is None:
                line.clear()
                break
            line.append(NativeCall(opening[1].rpartition(".")[2], written.arguments))
            end = written.end
            opening = _NEXT_PYTHON.match(text, end)
        if line and found.start() >= done and _LINE_END.match(text, end):
            calls += line
            rest.append(text[done : found.start()])
            done = end
    return Form(calls, "\n".join((*rest, text[done:])))


_FORMS = (
    (("<function=", "<invoke name="), _marked),
    (("{", "["), _json),
    (("ction Input", "ction_input", "CTION INPUT", "ction input"), _react),
    (("(",), _python),
)
"""What occurs in a text of that form, and what reads it."""


def _literal(text: str, at: int) -> tuple[Any, int] | None:
    """A value as JSON or Python writes it, and where it ends."""
    quoted = _QUOTED.match(text, at)
    if quoted:
        return re.sub(r"\\(.)", r"\1", quoted[1]), quoted.end()
    constant = _CONSTANT.match(text, at)
    if constant:
        return _CONSTANTS[constant[1]], constant.end()
    try:
        return _TOLERANT.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None


def _after_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at
