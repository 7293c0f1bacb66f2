"""Lines of a run's log: what is read of them, what is wrong with them, and that nothing makes the reader fail."""

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.wire.envelopes import Envelope, EnvelopeKind
from service.source.validator import envelopes
from service.source.validator.followed import Line

WHOLE = {
    "problem_id": "p1",
    "status": "SUCCESS",
    "execution_time": 1.5,
    "inference_failure_count": 0,
    "inference_total": 5,
    "error": None,
    "dialogue": [{"extra_info": {"timestamp": 2_000, "proxy_calls": [{"timestamp": 1_500, "duration_ms": 500.0}]}}],
}


def line(content: bytes, *, is_cut: bool = False, is_oversized: bool = False) -> Line:
    return Line("", 0, 0, content, len(content), hashlib.sha256(content).hexdigest(), is_cut, is_oversized)


def read(content: bytes | dict[str, Any], kind: EnvelopeKind = EnvelopeKind.SANDBOX, **how: bool) -> Envelope:
    return envelopes.read(line(content if isinstance(content, bytes) else json.dumps(content).encode(), **how), kind)


def test_a_whole_line() -> None:
    envelope = read(WHOLE)
    assert (envelope.problem_id, envelope.status, envelope.execution_seconds) == ("p1", "SUCCESS", 1.5)
    assert (envelope.inference_total, envelope.inference_failure_count) == (5, 0)
    assert envelope.dialogue == WHOLE["dialogue"]
    assert (envelope.started_ms, envelope.ended_ms) == (1_000, 2_000)
    assert envelope.is_readable
    assert envelope.defects == ()


def test_an_episodes_result() -> None:
    row = {"eval_run_id": "r1", "task_id": "TF8-1", "outcome": "completed", "verdict_correct": True, "score": "1"}
    envelope = read({**row, "wall_seconds": "12.5"}, EnvelopeKind.EPISODE)
    assert (envelope.eval_run_id, envelope.problem_id, envelope.outcome) == ("r1", "TF8-1", "completed")
    assert (envelope.passed, envelope.reward, envelope.execution_seconds) == (True, 1.0, 12.5)
    assert envelope.defects == ()


@pytest.mark.parametrize(
    ("content", "how", "problem_id", "is_readable", "defects"),
    [
        (b'{"problem_id": "p1", "sta', {"is_cut": True}, "p1", False, ("cut", "malformed_json")),
        (b'{"problem_id": "p', {"is_cut": True}, None, False, ("cut", "malformed_json", "no_problem")),
        (b'{"problem_id": "p1", "dialogue": ["', {"is_oversized": True}, "p1", False, ("oversized",)),
        (b'\0{"problem_id": "p1"}', {}, "p1", True, ("nul_bytes",)),
        (b'{"problem_id": "p1", "execution_time": NaN}', {}, "p1", True, ("bare_nan",)),
        (b'{"problem_id": "\xff1"}', {}, "\ufffd1", True, ("bad_utf8",)),
        (b'{"problem_id": "p\\u00001"}', {}, "p\ufffd1", True, ()),
        (b'{"problem_id": "p1", "status": 3, "dialogue": {}}', {}, "p1", True, ("wrong_type",)),
        (b'{"problem_id": "p1", "inference_total": -1}', {}, "p1", True, ("wrong_type",)),
        (b'{"problem_id": "p1", "execution_time": 1e400}', {}, "p1", True, ("bare_nan",)),
        (b'{"problem_id": "p1", "execution_time": 1' + b"0" * 400 + b"}", {}, "p1", True, ("wrong_type",)),
        (b'{"problem_id": "' + b"x" * 501 + b'"}', {}, None, True, ("wrong_type", "no_problem")),
        (b"[1]", {}, None, False, ("not_an_object", "no_problem")),
        (b"", {}, None, False, ("malformed_json", "no_problem")),
        (b'{"problem_id": "p1", "dialogue": ' + b"[" * 100_000, {}, "p1", False, ("malformed_json",)),
    ],
)
def test_what_is_wrong_is_named(
    content: bytes, how: dict[str, bool], problem_id: str | None, is_readable: bool, defects: tuple[str, ...]
) -> None:
    envelope = read(content, **how)
    assert (envelope.problem_id, envelope.is_readable, envelope.defects) == (problem_id, is_readable, defects)


@given(st.binary(max_size=200), st.booleans(), st.booleans(), st.sampled_from(EnvelopeKind))
def test_any_bytes_can_be_read(content: bytes, is_cut: bool, is_oversized: bool, kind: EnvelopeKind) -> None:
    read(content, kind, is_cut=is_cut, is_oversized=is_oversized)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
EXTRA = st.fixed_dictionaries({}, optional={"timestamp": ANYTHING, "proxy_calls": ANYTHING})
STEPS = st.lists(st.fixed_dictionaries({}, optional={"extra_info": EXTRA | ANYTHING}) | ANYTHING, max_size=3)


@given(
    st.fixed_dictionaries({}, optional={name: ANYTHING for name in (*WHOLE, "task_id", "outcome", "score", "passed")}),
    STEPS,
)
def test_fields_of_any_type_can_be_read(row: dict[str, Any], steps: list[Any]) -> None:
    for kind in EnvelopeKind:
        envelope = read({**row, "dialogue": steps}, kind)
        assert "\0" not in (envelope.problem_id or "") + (envelope.status or "") + (envelope.outcome or "")


@pytest.mark.parametrize(
    ("path", "kind", "run"),
    [
        ("eval_r1/output.jsonl", EnvelopeKind.SANDBOX, "r1"),
        ("environment-runs/r1/episode_results.jsonl", EnvelopeKind.EPISODE, "r1"),
        ("environment-runs/r1/sandbox/sandbox_output.jsonl", EnvelopeKind.SANDBOX, "r1"),
    ],
)
def test_who_wrote_and_for_which_run(path: str, kind: EnvelopeKind, run: str) -> None:
    assert (envelopes.kind_of(path), envelopes.run_of(path)) == (kind, run)


@pytest.mark.shared
def test_recorded_lines_are_read_whole(shared_data: Path) -> None:
    for path in sorted((shared_data / "runs").glob("*/output.jsonl.gz")):
        with gzip.open(path) as lines:
            for content in lines:
                envelope = read(content.rstrip(b"\n"))
                assert envelope.problem_id
                assert set(envelope.defects) <= {"bare_nan"}
