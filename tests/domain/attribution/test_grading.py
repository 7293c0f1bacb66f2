"""Lines of a validator's own log against released bytes: what agrees, and that nothing of either side is told."""

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.attribution.grading import Agrees, Grade, grade
from service.domain.sn15.judgement import Judgement
from service.domain.trajectory import ExecutionKind
from service.domain.wire.envelopes import Envelope, EnvelopeKind

DIALOGUE = [{"completion": {"message": {"think": "first"}}, "extra_info": {"step": 1}}]
OTHER = [{"completion": {"message": {"think": "other"}}, "extra_info": {"step": 1}}]
JUDGED = Judgement(status="SUCCESS", execution_seconds=1.5, inference_total=5, inference_failure_count=1)


def line(dialogue: list[Any] | None = DIALOGUE, **changes: Any) -> Envelope:
    made = Envelope(
        kind=EnvelopeKind.SANDBOX,
        problem_id="p",
        status="SUCCESS",
        execution_seconds=1.5,
        inference_total=5,
        inference_failure_count=1,
        dialogue=dialogue,
    )
    return msgspec.structs.replace(made, **changes)


def legacy(lines: list[Envelope], released: Any = DIALOGUE, judged: Judgement = JUDGED) -> dict[str, Any]:
    payload = released if isinstance(released, bytes) else json.dumps(released).encode()
    record = grade(lines, payload, judged, ExecutionKind.LEGACY)
    assert record is not None
    return record


def test_one_line_that_is_what_was_released() -> None:
    assert legacy([line()]) == {
        "kind": "envelope",
        "version": 1,
        "grade": "same",
        "envelopes": 1,
        "agrees": "both",
        "defects": [],
        "scored": {
            "status": True,
            "execution_seconds": True,
            "inference_total": True,
            "inference_failure_count": True,
        },
    }


A, B, C = line(), line(OTHER), line([*DIALOGUE, *OTHER])


@pytest.mark.parametrize(
    ("lines", "expected", "agrees"),
    [
        ([A], Grade.SAME, Agrees.BOTH),
        ([B], Grade.DIFFERS, Agrees.NEITHER),
        ([A, B], Grade.CONFLICT, Agrees.FIRST),
        ([B, A], Grade.CONFLICT, Agrees.LAST),
        ([A, B, A], Grade.CONFLICT, Agrees.BOTH),
        ([B, A, C], Grade.CONFLICT, Agrees.MIDDLE),
        ([B, C], Grade.CONFLICT, Agrees.NEITHER),
    ],
)
def test_scored_is_the_first_line_and_uploaded_the_last(lines: list[Envelope], expected: Grade, agrees: Agrees) -> None:
    record = legacy(lines)
    assert (record["grade"], record["agrees"]) == (expected, agrees)
    assert ("uploaded" in record) == (len(lines) > 1)


@pytest.mark.parametrize(
    ("released", "expected"),
    [
        (b'[ {"extra_info": {"step": 1}, "completion": {"message": {"think": "first"}}} ]', Grade.SAME),
        (json.dumps(DIALOGUE).encode() + b"\0", Grade.SAME),
        (b"[1]", Grade.DIFFERS),
        (b"[true]", Grade.DIFFERS),
        (b"{}", Grade.DIFFERS),
        (b"", Grade.DIFFERS),
        (b"[" * 5_000, Grade.DIFFERS),
    ],
)
def test_values_are_compared_and_not_their_spelling(released: bytes, expected: Grade) -> None:
    assert legacy([line()], released)["grade"] == expected


def test_one_and_true_are_two_values() -> None:
    assert legacy([line([1])], b"[true]")["grade"] == Grade.DIFFERS


@pytest.mark.parametrize("status", ["FAILED", "TIMED_OUT", "SUCCESS"])
def test_what_has_no_dialogue_is_uploaded_empty(status: str) -> None:
    assert legacy([line(None, status=status)], [])["grade"] == Grade.SAME


def test_a_failure_with_a_dialogue_is_uploaded_empty() -> None:
    assert legacy([line(status="FAILED")], [])["grade"] == Grade.SAME


def test_lines_that_cannot_be_read_are_not_compared() -> None:
    broken = line(is_readable=False, defects=("cut", "malformed_json"))
    record = legacy([broken])
    assert (record["grade"], record["agrees"], record["defects"]) == ("unreadable", None, ["cut", "malformed_json"])
    assert "scored" not in record
    record = legacy([line(), broken])
    assert (record["grade"], record["agrees"]) == ("conflict", "both")


@pytest.mark.parametrize(
    ("changes", "judged", "expected"),
    [
        # A success that scores nothing is reported as failed.
        ({}, {"status": "FAILED"}, {"status": True}),
        ({}, {"status": "TIMED_OUT"}, {"status": False}),
        ({"status": "FAILED"}, {"status": "SUCCESS"}, {"status": False}),
        # A success without a dialogue is reported as timed out, with nothing else.
        ({"dialogue": None}, {"status": "TIMED_OUT"}, {"status": True, "inference_total": None}),
        # Counts of nothing are reported as null.
        ({"inference_total": 0}, {"inference_total": None}, {"inference_total": True}),
        ({"inference_total": 3}, {"inference_total": None}, {"inference_total": False}),
        ({"inference_total": 3}, {"inference_total": 4}, {"inference_total": False}),
        ({"execution_seconds": 1.5001}, {}, {"execution_seconds": True}),
        ({"execution_seconds": 93.0}, {}, {"execution_seconds": False}),
        ({"execution_seconds": None}, {}, {"execution_seconds": None}),
        # What the source does not say contradicts nothing.
        ({}, {"status": None}, {"status": None, "inference_total": None}),
    ],
)
def test_statements_of_a_line_against_the_judgement(
    changes: dict[str, Any], judged: dict[str, Any], expected: dict[str, Any]
) -> None:
    record = legacy([line(**changes)], judged=msgspec.structs.replace(JUDGED, **judged))
    assert {name: record["scored"][name] for name in expected} == expected


EPISODE = Envelope(kind=EnvelopeKind.EPISODE, problem_id="t", outcome="completed", passed=True, reward=1.0)


@pytest.mark.parametrize(
    ("feedback", "expected"),
    [
        ({"outcome": "completed", "passed": True}, Grade.SAME),
        ({"outcome": "completed"}, Grade.SAME),
        ({"outcome": "partial", "passed": True}, Grade.DIFFERS),
        ({"outcome": "completed", "passed": False}, Grade.DIFFERS),
        ({}, Grade.DIFFERS),
    ],
)
def test_an_episodes_result_against_its_feedback(feedback: dict[str, Any], expected: Grade) -> None:
    judged = Judgement(success=True, paid_reward=0.5)
    record = grade([EPISODE, line()], json.dumps(feedback).encode(), judged, ExecutionKind.ENVPACK)
    assert record is not None
    assert record["grade"] == expected
    assert record["scored"] == {"success": True, "reward": False}


def test_lines_of_another_kind_say_nothing() -> None:
    assert grade([EPISODE], b"[]", JUDGED, ExecutionKind.LEGACY) is None
    assert grade([], b"[]", JUDGED, ExecutionKind.LEGACY) is None


@given(st.binary(max_size=100), st.sampled_from(ExecutionKind), st.booleans())
def test_any_released_bytes_can_be_compared(payload: bytes, kind: ExecutionKind, readable: bool) -> None:
    grade([line(is_readable=readable), line(OTHER), EPISODE], payload, JUDGED, kind)


def test_no_text_of_either_side_is_told() -> None:
    spoken = [{"think": "spoken"}]
    lines = [line(spoken, problem_id="spoken"), line(None, status="spoken", outcome="spoken")]
    assert "spoken" not in json.dumps(legacy(lines, [{"query": "spoken"}], Judgement(status="spoken")))


def rows(path: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, gzip.decompress(path.read_bytes()).splitlines())


@pytest.mark.shared
def test_recorded_lines_agree_with_what_was_uploaded_and_reported(shared_data: Path) -> None:
    """Every line of every recorded run: its upload, as the executor makes it, and its report."""
    grades: Counter[str] = Counter()
    for folder in sorted((shared_data / "runs").glob("*/")):
        lines = defaultdict(list)
        for row in rows(folder / "output.jsonl.gz"):
            lines[row["problem_id"]].append(row)
        for update in rows(folder / "progress_updates.jsonl.gz"):
            (row,) = lines.get(update["problem_id"]) or [None]
            if row is None:
                continue
            released = (row["dialogue"] or []) if row["status"] == "SUCCESS" else []
            judged = Judgement(
                status=update["status"],
                execution_seconds=update.get("execution_time"),
                inference_total=update.get("inference_total"),
                inference_failure_count=update.get("inference_failure_count"),
            )
            known = {name: row[name] for name in ("status", "inference_total", "inference_failure_count")}
            envelope = line(row["dialogue"], execution_seconds=row["execution_time"], **known)
            record = legacy([envelope], released, judged)
            assert set(record["scored"].values()) <= {True, None}, update
            grades[record["grade"]] += 1
    # A bare NaN is null on both sides in the end, but json reads it as NaN here, which has no canonical spelling.
    assert grades["same"] > 1_200
    assert grades["differs"] <= 7
