"""ATIF, the Agent Trajectory Interchange Format, 1.0 to 1.8: one document a trajectory, read as turns.

Only names and types of the wire. The minor versions add fields and rename none (1.6 lets a text be a list of parts,
1.7 embeds further trajectories, which are not read as steps), so one reader serves them all, newer ones included.
Steps copied from an earlier trajectory (`is_copied_context`) are not this one's and are left out, as the format asks.
"""

import re
from datetime import UTC, datetime
from typing import Any

from service.domain.wire.conversation import Said, Told, Turns
from service.domain.wire.lenient import Defect, arguments, parsed, read, words

NEWEST_MINOR = 8
_VERSION = re.compile(r"(?:ATIF-)?v?1\.([0-9]{1,4})", re.IGNORECASE | re.ASCII)


def minor_version(schema_version: object) -> int | None:
    """The minor number of a 1.x `schema_version`; None where it names no 1.x."""
    found = _VERSION.fullmatch(schema_version) if isinstance(schema_version, str) else None
    return int(found.group(1)) if found else None


def decode(payload: bytes) -> Told:
    """Read one document. Never raises."""
    value, defects = read(payload)
    turns = Turns(defects)
    if not isinstance(value, dict):
        if Defect.MALFORMED_JSON not in defects:
            turns.flaw(Defect.NOT_AN_OBJECT)
        return turns.told()
    steps = value.get("steps")
    if not isinstance(steps, list):
        turns.flaw(Defect.BAD_STEP)
        return turns.told()
    for step in steps:
        if turns.full:
            break
        _tell(step if isinstance(step, dict) else {}, turns)
    return turns.told()


def _tell(step: dict[str, Any], turns: Turns) -> None:
    text = words(step.get("message"))
    if text is None:
        turns.flaw(Defect.BAD_STEP)
    match step.get("source"):
        case "user":
            turns.user(text or "")
        case "agent" if step.get("is_copied_context") is not True:
            turns.agent(
                think=_text(step.get("reasoning_content"), turns),
                response=text or "",
                calls=_calls(step.get("tool_calls"), turns),
                timestamp_ms=_milliseconds(step.get("timestamp")),
            )
            _observe(step.get("observation"), turns)
        case "agent" | "system":
            pass
        case _:
            turns.flaw(Defect.BAD_STEP)


def _calls(value: Any, turns: Turns) -> list[Said]:
    calls = []
    for entry in _list(value, turns):
        name = entry.get("function_name") if isinstance(entry, dict) else None
        if isinstance(name, str):
            calls.append(Said(name, arguments(entry.get("arguments")), _text(entry.get("tool_call_id"), turns)))
        else:
            turns.flaw(Defect.BAD_STEP)
    return calls


def _observe(value: Any, turns: Turns) -> None:
    if value is None:
        return
    for entry in _list(value.get("results") if isinstance(value, dict) else 0, turns):
        if turns.full:
            return
        if isinstance(entry, dict):
            content = entry.get("content")
            text = words(content)
            # A list of parts is text; any other list or object is a result that was not written as text.
            turns.result(_text(entry.get("source_call_id"), turns), content if text is None else parsed(text))
        else:
            turns.flaw(Defect.BAD_STEP)


def _list(value: Any, turns: Turns) -> list[Any]:
    if isinstance(value, list):
        return value
    if value is not None:
        turns.flaw(Defect.BAD_STEP)
    return []


def _text(value: Any, turns: Turns) -> str:
    if isinstance(value, str):
        return value
    if value is not None:
        turns.flaw(Defect.BAD_STEP)
    return ""


def _milliseconds(value: Any) -> int | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        if moment is None:
            return None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return int(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
