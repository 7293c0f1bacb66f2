"""A line of a validator's log to a typed envelope. Reads no file, stores and compares nothing.

Never raises, whatever the bytes are: what is wrong is named in `defects`, and what could be read survives.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from service.domain.attribution.witness import LATEST_MS
from service.domain.wire.envelopes import Envelope, EnvelopeDefect, EnvelopeKind
from service.domain.wire.lenient import Defect, salvage
from service.source.http.decoding import MAX_KEY_BYTES, MAX_LABEL_CHARACTERS
from service.source.validator.followed import Line

EPISODE_FILE = "episode_results.jsonl"
LARGEST = 10**15
_FIRST_FIELD = re.compile(rb'\0*\s*\{\s*"(?:problem_id|task_id)"\s*:\s*("(?:[^"\\]|\\.){1,600}")')
"""The executor writes the problem's id first, so that a line that is cut or too long still tells it."""
_RUN_FOLDER = "eval_"


def kind_of(path: str) -> EnvelopeKind:
    """Who writes the file under this path, relative to the validator's folder."""
    return EnvelopeKind.EPISODE if path.endswith(EPISODE_FILE) else EnvelopeKind.SANDBOX


def run_of(path: str) -> str:
    """The run whose folder this path lies in: `eval_<run>/...` or `environment-runs/<run>/...`."""
    first, *rest = path.split("/")
    return first.removeprefix(_RUN_FOLDER) if first.startswith(_RUN_FOLDER) else rest[0]


def read(line: Line, kind: EnvelopeKind) -> Envelope:
    """Read one line."""
    if line.is_oversized:
        return _unreadable(line, kind, (EnvelopeDefect.OVERSIZED,))
    value, defects = salvage(line.content)
    if not isinstance(value, dict):
        why = () if Defect.MALFORMED_JSON in defects else (Defect.NOT_AN_OBJECT,)
        return _unreadable(line, kind, (*defects, *why))
    fields = _Fields(value)
    problem_id = fields.key("problem_id") or fields.key("task_id") or fields.key("item_id")
    dialogue = fields.dialogue() if kind is EnvelopeKind.SANDBOX else None
    started_ms, ended_ms = _span(dialogue)
    envelope = Envelope(
        kind=kind,
        problem_id=problem_id,
        eval_run_id=fields.key("eval_run_id"),
        status=fields.label("status"),
        execution_seconds=fields.number("execution_time", "wall_seconds"),
        inference_total=fields.count("inference_total"),
        inference_failure_count=fields.count("inference_failure_count"),
        dialogue=dialogue,
        outcome=fields.label("outcome"),
        passed=fields.flag("verdict_correct", "passed"),
        reward=fields.number("score", "paid_reward", "aggregate_reward"),
        started_ms=started_ms,
        ended_ms=ended_ms,
        defects=tuple(
            defect.value
            for defect in (
                *defects,
                *([EnvelopeDefect.CUT] if line.is_cut else []),
                *([EnvelopeDefect.WRONG_TYPE] if fields.wrong else []),
                *([] if problem_id else [EnvelopeDefect.NO_PROBLEM]),
            )
        ),
    )
    return envelope


class _Fields:
    """Typed reads of one object; a field of the wrong type is absent, and noticed."""

    def __init__(self, value: dict[str, Any]) -> None:
        self._value = value
        self.wrong = False

    def key(self, name: str) -> str | None:
        text = self._text(name)
        if text is None or len(text.encode("utf-8", "replace")) <= MAX_KEY_BYTES:
            return text or None
        self.wrong = True
        return None

    def label(self, name: str) -> str | None:
        text = self._text(name)
        return None if text is None else text[:MAX_LABEL_CHARACTERS]

    def number(self, *names: str) -> float | None:
        return next((value for name in names if (value := self._number(name)) is not None), None)

    def count(self, name: str) -> int | None:
        value = self._value.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST:
            return value
        self.wrong |= value is not None
        return None

    def flag(self, *names: str) -> bool | None:
        for name in names:
            value = self._value.get(name)
            if isinstance(value, bool):
                return value
            self.wrong |= value is not None
        return None

    def dialogue(self) -> list[Any] | None:
        value = self._value.get("dialogue")
        self.wrong |= not (value is None or isinstance(value, list))
        return value if isinstance(value, list) else None

    def _number(self, name: str) -> float | None:
        value = self._value.get(name)
        if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,15})?", value):
            value = float(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST:
            return float(value)
        self.wrong |= value is not None
        return None

    def _text(self, name: str) -> str | None:
        value = self._value.get(name)
        if isinstance(value, str):
            return value.replace("\0", "\ufffd")
        self.wrong |= value is not None
        return None


def _unreadable(line: Line, kind: EnvelopeKind, why: tuple[Defect | EnvelopeDefect, ...]) -> Envelope:
    problem_id = _named_problem(line.content)
    return Envelope(
        kind=kind,
        problem_id=problem_id,
        is_readable=False,
        defects=tuple(
            defect.value
            for defect in (
                *([EnvelopeDefect.CUT] if line.is_cut else []),
                *why,
                *([] if problem_id else [EnvelopeDefect.NO_PROBLEM]),
            )
        ),
    )


def _named_problem(beginning: bytes) -> str | None:
    found = _FIRST_FIELD.match(beginning)
    if found is None:
        return None
    try:
        text = json.loads(found[1])
        return text.replace("\0", "\ufffd") if 0 < len(text.encode()) <= MAX_KEY_BYTES else None
    except ValueError:  # bytes that are no UTF-8, and half a character, too
        return None


def _span(dialogue: list[Any] | None) -> tuple[int | None, int | None]:
    """First and last time stamp of the steps and of the requests filed under them, ms."""
    times = sorted(_times(dialogue or []))
    return (times[0], times[-1]) if times else (None, None)


def _times(dialogue: list[Any]) -> Iterator[int]:
    for step in dialogue:
        extra = step.get("extra_info") if isinstance(step, dict) else None
        if not isinstance(extra, dict):
            continue
        yield from _moments(extra.get("timestamp"), 0)
        logged = extra.get("proxy_calls")
        for call in logged if isinstance(logged, list) else []:
            if isinstance(call, dict):
                yield from _moments(call.get("timestamp"), call.get("duration_ms"))


def _moments(end: Any, duration: Any) -> Iterator[int]:
    if not _is_finite(end) or not 0 < end < LATEST_MS:
        return
    yield int(end)
    if _is_finite(duration) and 0 < duration < end:
        yield int(end - duration)


def _is_finite(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and (isinstance(value, int) or math.isfinite(value))
    )
