"""Lines of an nginx access log to requests that were served. Reads no file and compares nothing.

The format is given in nginx's own syntax and compiled once. Reading a line takes time in proportion to its length and
never raises: what does not fit the format is garbage, which callers count.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from urllib.parse import parse_qsl, urlsplit

from service.domain.attribution.witness import LATEST_MS, Served
from service.errors import ErrorCode, SluiceError
from service.source.validator.followed import Line

COMBINED = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"'
)
LONGEST_LINE_BYTES = 64 << 10
"""nginx takes no request line over 8 KiB by default, and escapes at most four times."""
LONGEST_PATH = 2_000
MOST_ARGUMENTS = 100
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_DIRECTIVE = re.compile(r"\s*log_format\s+\S+\s+")
_ESCAPE = re.compile(r"\s*escape=(?:default|json|none)\s+")
_QUOTED = re.compile(r"\s*(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")")
_ESCAPED = re.compile(r'\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|(["\\/bfnrt]))')
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LOCAL_TIME = re.compile(r"(\d{2})/([A-Z][a-z]{2})/(\d{4}):(\d{2}):(\d{2}):(\d{2}) ([+-])(\d{2})(\d{2})", re.ASCII)
_MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")
_COUNT = re.compile(r"[0-9]{1,15}")
_TIMES = frozenset({"time_local", "time_iso8601", "msec"})
_TARGETS = frozenset({"request", "request_uri", "uri"})


@dataclass(frozen=True, slots=True)
class LogFormat:
    """A compiled format."""

    opening: str
    """Text before the first variable."""
    fields: tuple[tuple[str, str], ...]
    """Each variable with the text that follows it; empty behind the last one alone."""


def compile_format(text: str) -> LogFormat:
    """Compile `combined`, a format string, or a whole `log_format` directive.

    Raises:
        SluiceError: BAD_INPUT where lines of this format could not be read, or say neither when nor what was asked.
    """
    text = COMBINED if text.strip() == "combined" else _bare(text)
    pieces = list(_VARIABLE.finditer(text))
    names = [piece[1] or piece[2] for piece in pieces]
    for wanted, what in ((_TIMES, "when something"), (_TARGETS, "what")):
        if not wanted.intersection(names):
            raise SluiceError(
                ErrorCode.BAD_INPUT,
                f"the proxy log's format does not say {what} was asked: it needs one of "
                + ", ".join(f"${name}" for name in sorted(wanted)),
            )
    ends = [piece.start() for piece in pieces[1:]] + [len(text)]
    fields = tuple((name, text[piece.end() : end]) for name, piece, end in zip(names, pieces, ends, strict=True))
    for (name, literal), (follower, _) in pairwise(fields):
        if not literal:
            raise SluiceError(
                ErrorCode.BAD_INPUT, f"the proxy log's format has nothing between ${name} and ${follower}"
            )
    return LogFormat(text[: pieces[0].start()], fields)


def line_key(line: Line) -> str:
    """Identity of a line: the same line read again, from the rotated file too, has the same."""
    return hashlib.sha256(f"{line.file_key}/{line.offset_bytes}/{line.sha256}".encode()).hexdigest()


def read(line: bytes, log_format: LogFormat) -> Served | None:
    """Read one line without its newline; None where it is garbage."""
    if len(line) > LONGEST_LINE_BYTES:
        return None
    values = _values(line.decode("utf-8", "replace").rstrip("\r"), log_format)
    if values is None:
        return None
    moment = _moment(values)
    method, target = _target(values)
    if moment is None or target is None:
        return None
    try:
        parts = urlsplit(target)
        pairs = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=MOST_ARGUMENTS)
    except ValueError:
        return None
    if not parts.path.startswith("/") or len(parts.path) > LONGEST_PATH:
        return None
    arguments: dict[str, str] = {}
    for name, value in pairs:
        arguments.setdefault(_storable(name), _storable(value))
    at_ms, resolution_ms = moment
    if not 0 < at_ms < LATEST_MS:
        return None
    status = _count(values.get("status"))
    return Served(
        at_ms=at_ms,
        resolution_ms=resolution_ms,
        method=method,
        path=_storable(parts.path),
        arguments=arguments,
        status=status if status is not None and 100 <= status <= 599 else None,
        body_bytes=_count(values.get("body_bytes_sent")),
        request_bytes=_count(values.get("request_length")),
        seconds=_number(values.get("request_time")),
    )


def _bare(text: str) -> str:
    """The format string alone, of whatever part of a configuration it was copied from."""
    directive = _DIRECTIVE.match(text)
    text = text[directive.end() :] if directive else text
    escape = _ESCAPE.match(text)
    text = text[escape.end() :] if escape else text
    if directive is None:
        return text
    quoted = [(piece[1] or piece[2] or "").replace("\\'", "'").replace('\\"', '"') for piece in _QUOTED.finditer(text)]
    return "".join(quoted)


def _values(text: str, log_format: LogFormat) -> dict[str, str] | None:
    """Each variable's text, up to the first place where the literal behind it stands."""
    if not text.startswith(log_format.opening):
        return None
    values: dict[str, str] = {}
    at = len(log_format.opening)
    for name, literal in log_format.fields:
        end = _find(text, literal, at) if literal else len(text)
        if end < 0:
            return None
        values[name] = text[at:end]
        at = end + len(literal)
    return values if at == len(text) else None


def _find(text: str, literal: str, start: int) -> int:
    """Where a literal stands next; a quote behind a backslash belongs to the value."""
    end = text.find(literal, start)
    while end > start and literal[0] == '"' and text[end - 1] == "\\" and _is_escaped(text, start, end):
        end = text.find(literal, end + 1)
    return end


def _is_escaped(text: str, start: int, end: int) -> bool:
    before = text[start:end]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _plain(text: str) -> str:
    """A value as it was before nginx escaped it."""
    if "\\" not in text:
        return text

    def spelled(found: re.Match[str]) -> str:
        if found[1]:  # a byte, of which several may make one character
            return bytes([int(found[1], 16)]).decode("utf-8", "surrogateescape")
        character = chr(int(found[2], 16)) if found[2] else _LETTERS.get(found[3], found[3])
        return "\ufffd" if "\ud800" <= character <= "\udfff" else character

    return _ESCAPED.sub(spelled, text).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _target(values: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Method and what was asked for, arguments included."""
    method, target = values.get("request_method"), values.get("request_uri")
    if "request" in values:
        words = _plain(values["request"]).split(" ")
        if len(words) > 1:
            last = -1 if words[-1].startswith("HTTP/") else None
            method, target = method or words[0], target or " ".join(words[1:last])
    if target is None and "uri" in values:
        query = values.get("args") or values.get("query_string") or ""
        target = values["uri"] + (f"?{query}" if query not in ("", "-") else "")
    method = _storable(method)[:20] if method and method != "-" else None
    return method, _plain(target) if target and target != "-" else None


def _moment(values: Mapping[str, str]) -> tuple[int, int] | None:
    """When the request ended, ms, and how long the stretch is within which that lies."""
    seconds = _number(values.get("msec"))
    if seconds is not None:
        return round(seconds * 1000), 1
    moment = _iso(values["time_iso8601"]) if "time_iso8601" in values else _local(values.get("time_local", ""))
    return None if moment is None else (round(moment.timestamp() * 1000), 1_000)


def _iso(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None


def _local(text: str) -> datetime | None:
    found = _LOCAL_TIME.fullmatch(text)
    if found is None or found[2] not in _MONTHS:
        return None
    offset = timedelta(hours=int(found[8]), minutes=int(found[9])) * (-1 if found[7] == "-" else 1)
    try:
        zone = timezone(offset)
        day, year, hour, minute, second = (int(found[index]) for index in (1, 3, 4, 5, 6))
        return datetime(year, _MONTHS[found[2]], day, hour, minute, second, tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and _COUNT.fullmatch(text) else None


def _number(text: str | None) -> float | None:
    return float(text) if text is not None and _NUMBER.fullmatch(text) else None


def _storable(text: str) -> str:
    """Text that a database can hold."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8", "replace")
