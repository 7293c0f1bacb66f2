"""One row of an imported file as what is stored of it, or the reason why it is not. Never raises, whatever the row.

What a row does not say is not known: success is never assumed, and what a file says of itself counts as what its agents
say. A row is known by its content alone, so its place, its file and its spelling (white space, order of keys) make no
difference.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

import msgspec

from service.domain.imports.formats import KINDS, Format, Refused, RowFault, format_of
from service.domain.imports.identity import Agent, Naming, agent_of, problem_of
from service.domain.trajectory import LARGEST_PAYLOAD_BYTES, ExecutionKind, Judgement, parse
from service.domain.wire import atif as atif_wire
from service.domain.wire import lenient
from service.domain.wire.lenient import Defect

LONGEST_ROW_BYTES = 2 * LARGEST_PAYLOAD_BYTES
DEEPEST_ROW = 100
MAX_LABEL_CHARACTERS = 200
MAX_COUNT = 2**31 - 1
_LENIENT = json.JSONDecoder()
_STEPS_FIELD = {Format.ENVELOPE: "dialogue", Format.ATIF: "steps", Format.MESSAGES: "messages"}


class Imported(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is stored of one row."""

    format: Format
    row_sha256: str
    """Of the format and the row's content (of an ATIF row, its document): equal rows are one trajectory."""
    line_sha256: str
    """Of the bytes as they stand in the file: what logs are compared by."""
    eval_run_id: str
    agent: Agent
    problem_id: str
    kind: ExecutionKind
    payload: bytes
    judgement: Judgement
    schema_version: str | None = None
    """As an ATIF document names it; None for the other formats."""


def read_row(line: bytes, wanted: Format | None, naming: Naming) -> Imported | Refused:
    """Read one row.

    Args:
        line: a line of JSONL, or a whole JSON document.
        wanted: the format of the file; None where it is not known yet.
        naming: what the importer says of the file's agents.
    """
    if len(line) > LONGEST_ROW_BYTES:
        return Refused(RowFault.TOO_LONG)
    value, defects = lenient.read(line)
    if Defect.MALFORMED_JSON in defects:
        return Refused(RowFault.NOT_JSON)
    if not isinstance(value, dict):
        return Refused(RowFault.NOT_AN_OBJECT)
    if lenient.is_deeper(value, DEEPEST_ROW):
        return Refused(RowFault.TOO_DEEP)
    found = format_of(value)
    if found is None:
        return Refused(RowFault.UNKNOWN_FORMAT if wanted is None else RowFault.OTHER_FORMAT)
    if wanted is not None and found is not wanted:
        return Refused(RowFault.OTHER_FORMAT)
    return _read(line, value, found, naming)


def _read(line: bytes, row: dict[str, Any], found: Format, naming: Naming) -> Imported | Refused:
    document = _document(row) if found is Format.ATIF else row
    version = document.get("schema_version") if document is not None else None
    if document is None or not isinstance(document.get(_STEPS_FIELD[found]), list | None):
        return Refused(RowFault.NO_TRAJECTORY)
    if found is Format.ATIF and atif_wire.minor_version(version) is None:
        return Refused(RowFault.UNKNOWN_VERSION)
    if found is not Format.ENVELOPE and document.get(_STEPS_FIELD[found]) is None:
        return Refused(RowFault.NO_TRAJECTORY)
    content = _spelled(document)
    payload = _dialogue(line, row) if found is Format.ENVELOPE else content
    if content is None or payload is None:
        return Refused(RowFault.NOT_JSON)
    trajectory = parse(payload, KINDS[found])
    if Defect.OVERSIZED in trajectory.defects:
        return Refused(RowFault.TOO_LONG if len(payload) > LARGEST_PAYLOAD_BYTES else RowFault.TOO_MANY_STEPS)
    if Defect.TOO_DEEP in trajectory.defects:
        return Refused(RowFault.TOO_DEEP)
    problem_id = problem_of(row, document, trajectory)
    if problem_id is None:
        return Refused(RowFault.NO_PROBLEM)
    digest = hashlib.sha256(found.value.encode() + b"\n" + content).hexdigest()
    return Imported(
        format=found,
        row_sha256=digest,
        line_sha256=hashlib.sha256(line).hexdigest(),
        eval_run_id=f"import:{digest[:40]}",
        agent=agent_of(row, document, naming),
        problem_id=problem_id,
        kind=KINDS[found],
        payload=payload,
        judgement=_envelope_judgement(row) if found is Format.ENVELOPE else _judgement(row, document),
        schema_version=_label(version) if found is Format.ATIF else None,
    )


def _document(row: dict[str, Any]) -> dict[str, Any] | None:
    """The ATIF document of a row: the row itself, or the text that data sets keep it as in `atif_json`."""
    if "atif_json" not in row:
        return row
    value = lenient.parsed(row["atif_json"])
    return value if isinstance(value, dict) and not lenient.is_deeper(value, DEEPEST_ROW) else None


def _dialogue(line: bytes, row: dict[str, Any]) -> bytes | None:
    """The dialogue as it stands in the line, byte for byte what the executor uploads; `[]` where there is none."""
    if row["dialogue"] is None:
        return b"[]"
    try:
        return bytes(msgspec.json.decode(line, type=_Envelope).dialogue)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
        return _lenient_dialogue(line) or _spelled(row["dialogue"])


def _lenient_dialogue(line: bytes) -> bytes | None:
    """The dialogue of a line that no strict reader takes (one with a bare NaN); None where it is not even that."""
    try:
        text = line.decode()
        at = text.index("{") + 1
        while True:
            name, at = _LENIENT.raw_decode(text, _past(text, at, " \t\r\n,"))
            start = _past(text, at, " \t\r\n:")
            _value, at = _LENIENT.raw_decode(text, start)
            if name == "dialogue":
                return text[start:at].encode()
    except (ValueError, RecursionError):
        return None


def _past(text: str, at: int, passed: str) -> int:
    while text[at : at + 1] and text[at] in passed:
        at += 1
    return at


class _Envelope(msgspec.Struct):
    dialogue: msgspec.Raw


def _envelope_judgement(row: Mapping[str, Any]) -> Judgement:
    """`status` says only whether the agent returned, so SUCCESS is no success; without a return there is none."""
    status = _label(row.get("status"))
    score = _number(row.get("score"))
    success = _flag(row.get("success"))
    if success is None and score is not None:
        success = score >= 1.0
    if success is None and status in ("FAILED", "TIMED_OUT"):
        success = False
    error = row.get("error")
    told = {"envelope_status": status, "error_type": _label(error.get("type")) if isinstance(error, dict) else None}
    return Judgement(
        success=success,
        score=score,
        reasoning_score=_number(row.get("reasoning_score")),
        inference_total=_count(row.get("inference_total")),
        inference_failure_count=_count(row.get("inference_failure_count")),
        execution_seconds=_number(row.get("execution_time")),
        components={name: value for name, value in told.items() if value is not None},
    )


def _judgement(row: Mapping[str, Any], document: Mapping[str, Any]) -> Judgement:
    """Of ATIF and chat rows: what the row, the document's `extra` or the row's `metadata` says, the first that does."""
    places = [place for place in (row, document.get("extra"), row.get("metadata")) if isinstance(place, Mapping)]

    def first(*names: str) -> Any:
        return next((place[name] for place in places for name in names if place.get(name) is not None), None)

    reward = _number(first("reward", "aggregate_reward", "paid_reward"))
    return Judgement(
        success=_flag(first("success", "passed")),
        paid_reward=reward,
        reasoning_score=_number(first("reasoning_score")),
        outcome=_label(first("outcome")),
        failure_category=_label(first("failure_category")),
    )


def _spelled(value: Any) -> bytes | None:
    """JSON with sorted keys and no white space: one spelling for equal content."""
    try:
        return msgspec.json.encode(value, order="sorted")
    except (UnicodeError, RecursionError, OverflowError, ValueError, TypeError):
        return None


def _label(value: Any) -> str | None:
    return lenient.storable(value[:MAX_LABEL_CHARACTERS]) if isinstance(value, str) and value else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= MAX_COUNT and math.isfinite(value) else None
