"""Every parser of payloads and of imported rows, fed by strangers: each returns, and within its caps."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.domain.attribution.evidence import Evidence
from service.domain.imports.formats import EXCERPT_CHARACTERS, Format, Refused, excerpt
from service.domain.imports.identity import MAX_PROBLEM_ID_BYTES, Naming
from service.domain.imports.rows import Imported, read_row
from service.domain.trajectory import LARGEST_PAYLOAD_BYTES, MOST_PARTS, Defect, ExecutionKind, parse
from tests.domain.dialogues import agentic_run
from tests.domain.sample_rows import to_a_row
from tests.hostile import hostile
from tests.imported import as_atif, as_messages

DIALOGUE = json.loads(agentic_run().payload())
ENVELOPE = {
    "problem_id": "4b0ec436-6595-502e-bf33-1d976750fe7b",
    "status": "SUCCESS",
    "execution_time": 1.5,
    "inference_failure_count": 0,
    "inference_total": 4,
    "error": {"type": "E", "message": "m"},
    "dialogue": DIALOGUE,
    "success": True,
    "score": 1.0,
}
EPISODE = {
    "schema_version": "oro.episode_feedback.v1",
    "query": "a bag",
    "passed": True,
    "outcome": "completed",
    "paid_reward": 1.0,
    "termination_code": "placed_order",
    "interaction": [
        {"calls": [{"tool_name": "search", "args": {"query": "bag"}, "observation": ["p1"]}], "shopper_message": "yes"},
        {"calls": [{"tool_name": "place_test_order", "args": {"product_id": "p1"}, "observation": {}, "done": True}]},
    ],
}
PAYLOADS: dict[ExecutionKind, Any] = {
    ExecutionKind.LEGACY: DIALOGUE,
    ExecutionKind.ENVPACK: EPISODE,
    ExecutionKind.ATIF: as_atif(ENVELOPE),
    ExecutionKind.MESSAGES: as_messages(ENVELOPE),
}
ROWS: dict[Format, Any] = {
    Format.ENVELOPE: ENVELOPE,
    Format.ATIF: {**as_atif(ENVELOPE), "final_metrics": [], "notes": "n"},
    Format.MESSAGES: {**as_messages(ENVELOPE), "metadata": {"problem_id": "a/b", "reward": 1.0}, "model": "m"},
}
MANY = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("kind", ExecutionKind)
@MANY
@given(data=st.data())
def test_no_payload_stops_the_way_to_a_row(kind: ExecutionKind, data: st.DataObject) -> None:
    payload = data.draw(hostile(PAYLOADS[kind]))
    trajectory = parse(payload, kind)
    parts = sum(1 + len(step.calls) for step in trajectory.steps)
    assert parts <= MOST_PARTS
    to_a_row(payload, kind, agentic_run().evidence())


@pytest.mark.parametrize("format_", Format)
@MANY
@given(data=st.data())
def test_no_row_is_more_than_stored_or_refused(format_: Format, data: st.DataObject) -> None:
    line = data.draw(hostile(ROWS[format_]))
    assert len(excerpt(line)) <= EXCERPT_CHARACTERS
    found = read_row(line, data.draw(st.sampled_from([None, format_])), Naming())
    if isinstance(found, Refused):
        return
    assert isinstance(found, Imported)
    # What a column or a document of Postgres must hold: text without NUL or half characters, numbers in range.
    told = msgspec.json.encode([found.agent, found.problem_id, found.judgement, found.schema_version]).decode()
    assert "\\u0000" not in told
    assert len(found.problem_id.encode()) <= MAX_PROBLEM_ID_BYTES
    assert len(found.payload) <= LARGEST_PAYLOAD_BYTES
    assert read_row(line, found.format, Naming("other")).row_sha256 == found.row_sha256
    to_a_row(found.payload, found.kind, Evidence(judgement=found.judgement))


@pytest.mark.parametrize("kind", ExecutionKind)
@pytest.mark.parametrize("unit", ["{}", "[]"])
def test_a_million_steps_end_within_the_caps(kind: ExecutionKind, unit: str) -> None:
    field = {ExecutionKind.ENVPACK: "interaction", ExecutionKind.ATIF: "steps", ExecutionKind.MESSAGES: "messages"}
    fitting = (LARGEST_PAYLOAD_BYTES - 100) // (len(unit) + 1)
    many = "[" + ",".join([unit] * min(fitting, 1_000_000)) + "]"
    payload = many if kind is ExecutionKind.LEGACY else json.dumps({field[kind]: None}).replace("null", many)
    trajectory = parse(payload.encode(), kind)
    assert trajectory.empty
    assert Defect.OVERSIZED in trajectory.defects


@pytest.mark.parametrize("kind", [ExecutionKind.ATIF, ExecutionKind.MESSAGES])
def test_a_million_calls_and_results_end_within_the_caps(kind: ExecutionKind) -> None:
    call = '{"function_name":"f"}' if kind is ExecutionKind.ATIF else '{"name":"f"}'
    calls = "[" + ",".join([call] * 150_000) + "]"
    results = "[" + ",".join(["{}"] * 300_000) + "]"
    if kind is ExecutionKind.ATIF:
        payload = f'{{"steps":[{{"source":"agent","tool_calls":{calls},"observation":{{"results":{results}}}}}]}}'
    else:
        answers = ",".join(['{"role":"tool"}'] * 100_000)
        payload = f'{{"messages":[{{"role":"assistant","tool_calls":{calls}}},{answers}]}}'
    trajectory = parse(payload.encode(), kind)
    assert trajectory.empty
    assert Defect.OVERSIZED in trajectory.defects
