"""Compare what the validator's own sandbox wrote with what the source released of the same item. Judges no trajectory.

Scored is the first line about a problem, uploaded is the last: where they differ, the released bytes and the released
judgement can be of different executions. The records hold what the comparison came to, and no text of either side.
"""

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from service.domain import canonical
from service.domain.sn15.judgement import Judgement
from service.domain.trajectory import ExecutionKind
from service.domain.wire.envelopes import Envelope, EnvelopeKind
from service.domain.wire.envpack import decode as decode_feedback
from service.domain.wire.lenient import salvage

RECORD_VERSION = 1
SECONDS_SHARE = 0.001
"""Two statements of one execution time are one number, written twice."""
SUCCESS, FAILED, TIMED_OUT = "SUCCESS", "FAILED", "TIMED_OUT"


class Grade(StrEnum):
    """What became of the local lines when the item was released."""

    SAME = "same"
    """One line, and it is what was released."""
    DIFFERS = "differs"
    CONFLICT = "conflict"
    """Several different lines about one problem."""
    UNREADABLE = "unreadable"
    """No line could be read, so nothing was compared."""


class Agrees(StrEnum):
    """Which of several lines is the one that was released."""

    BOTH = "both"
    FIRST = "first"
    """The one that was scored."""
    LAST = "last"
    """The one that should have been uploaded."""
    MIDDLE = "middle"
    NEITHER = "neither"


def grade(
    envelopes: Sequence[Envelope], payload: bytes, judgement: Judgement, kind: ExecutionKind
) -> dict[str, Any] | None:
    """Compare the local lines about one item with what was released of it. Never raises, whatever the bytes are.

    Args:
        envelopes: in the order they were written, the same line again left out unless it came last.
        payload: the released bytes.
        judgement: what the source says of the item.
        kind: which harness ran it.

    Returns:
        A record for `Evidence.witness`; None where no line can be compared with an item of this kind.
    """
    wanted = EnvelopeKind.SANDBOX if kind is ExecutionKind.LEGACY else EnvelopeKind.EPISODE
    lines = [envelope for envelope in envelopes if envelope.kind is wanted]
    if not lines:
        return None
    readable = [line for line in lines if line.is_readable]
    if kind is ExecutionKind.LEGACY:
        matches = [_is_upload(_uploaded(line), payload) for line in readable]
        agree = _judged
    else:
        matches = [_same_episode(line, payload) for line in readable]
        agree = _episode_judged
    record: dict[str, Any] = {
        "kind": "envelope",
        "version": RECORD_VERSION,
        "grade": _grade(lines, matches).value,
        "envelopes": len(lines),
        "agrees": _agrees(matches).value if readable else None,
        "defects": sorted({defect for line in lines for defect in line.defects}),
    }
    if readable:
        record["scored"] = agree(readable[0], judgement)
    if len(readable) > 1:
        record["uploaded"] = agree(readable[-1], judgement)
    return record


def _grade(lines: Sequence[Envelope], matches: Sequence[bool]) -> Grade:
    if not matches:
        return Grade.UNREADABLE
    if len(lines) > 1:
        return Grade.CONFLICT
    return Grade.SAME if matches[0] else Grade.DIFFERS


def _agrees(matches: Sequence[bool]) -> Agrees:
    if not any(matches):
        return Agrees.NEITHER
    if matches[0] and matches[-1]:
        return Agrees.BOTH
    if matches[0]:
        return Agrees.FIRST
    return Agrees.LAST if matches[-1] else Agrees.MIDDLE


def _uploaded(envelope: Envelope) -> list[Any]:
    """What the uploader makes of a line: the dialogue of a success, else an empty list."""
    return (envelope.dialogue or []) if envelope.status == SUCCESS else []


def _is_upload(dialogue: list[Any], payload: bytes) -> bool:
    """Whether the payload spells this dialogue; most do so as the uploader does, which is told without a walk."""
    try:
        if json.dumps(dialogue).encode() == payload:
            return True
    except (RecursionError, ValueError):
        return False
    released = _digest(salvage(payload).value)
    return released is not None and released == _digest(dialogue)


def _digest(value: Any) -> str | None:
    """None where the value has no spelling: it is no list, or nests deeper than can be walked."""
    if not isinstance(value, list):
        return None
    try:
        return canonical.digest(value)
    except (RecursionError, ValueError, TypeError):
        return None


def _judged(envelope: Envelope, judgement: Judgement) -> dict[str, bool | None]:
    """Which statements of a line the source repeats; None where either side says nothing.

    A success without a dialogue is reported as timed out, without time and counts; counts of which the total is zero
    are reported as null; a success that scores nothing is reported as failed.
    """
    if envelope.status == SUCCESS and not envelope.dialogue:
        silent = {"execution_seconds": None, "inference_total": None, "inference_failure_count": None}
        return {"status": _in(judgement.status, {TIMED_OUT}), **silent}
    counted = bool(envelope.inference_total)
    total = envelope.inference_total if counted else None
    failures = envelope.inference_failure_count if counted else None
    statuses = {SUCCESS, FAILED} if envelope.status == SUCCESS else {envelope.status or ""}
    return {
        "status": None if envelope.status is None else _in(judgement.status, statuses),
        "execution_seconds": _close(envelope.execution_seconds, judgement.execution_seconds),
        "inference_total": _counts(total, judgement.inference_total, judgement.status),
        "inference_failure_count": _counts(failures, judgement.inference_failure_count, judgement.status),
    }


def _in(said: str | None, expected: set[str]) -> bool | None:
    return None if said is None else said in expected


def _counts(expected: int | None, said: int | None, status: str | None) -> bool | None:
    """A judgement without a status is silent; with one, a null count means zero."""
    return None if status is None else (expected or 0) == (said or 0)


def _close(one: float | None, other: float | None) -> bool | None:
    if one is None or other is None:
        return None
    return abs(one - other) <= SECONDS_SHARE * max(abs(one), abs(other), 1.0)


def _same_episode(envelope: Envelope, payload: bytes) -> bool:
    """Whether a result and the released feedback state the same outcome; both must state one."""
    body = decode_feedback(payload).body
    stated = [(envelope.outcome, body.outcome), (envelope.passed, body.passed)]
    if any(None not in pair and pair[0] != pair[1] for pair in stated):
        return False
    return envelope.outcome is not None and body.outcome is not None


def _episode_judged(envelope: Envelope, judgement: Judgement) -> dict[str, bool | None]:
    known = envelope.passed is not None and judgement.success is not None
    return {
        "success": envelope.passed == judgement.success if known else None,
        "reward": _close(envelope.reward, judgement.paid_reward),
    }
