"""ATIF documents of every version as turns; what the versions add is read or passed over, never stumbled on."""

import json
from typing import Any

import pytest

from service.domain.trajectory import ExecutionKind, parse
from service.domain.wire.atif import decode, minor_version
from service.domain.wire.lenient import Defect

CALL = {"tool_call_id": "c1", "function_name": "find_product", "arguments": {"q": "bag"}}


def document(*steps: dict[str, Any], **fields: Any) -> bytes:
    return json.dumps(
        {"schema_version": "ATIF-v1.4", "agent": {"name": "a", "version": "1"}, **fields, "steps": steps}
    ).encode()


USER = {"step_id": 1, "source": "user", "message": "a red bag"}


def agent(**fields: Any) -> dict[str, Any]:
    return {"step_id": 2, "source": "agent", "message": "I look.", **fields}


def test_a_document_is_a_query_and_steps() -> None:
    results = [{"source_call_id": "c1", "content": '[{"product_id": "7"}]'}]
    told = decode(
        document(
            {"step_id": 1, "source": "system", "message": "Be good."},
            USER,
            agent(
                timestamp="2026-05-04T19:00:00Z",
                reasoning_content="Bags first.",
                tool_calls=[CALL],
                observation={"results": results},
                metrics={"prompt_tokens": 9},
            ),
            {"step_id": 4, "source": "user", "message": "a smaller one"},
            agent(message="There is none."),
        )
    )
    assert told.query == "a red bag"
    assert told.defects == ()
    first, second = told.steps
    assert (first.think, first.response, first.shopper_message) == ("Bags first.", "I look.", "a smaller one")
    assert first.timestamp_ms == 1_777_921_200_000  # date -d 2026-05-04T19:00:00Z +%s
    (call,) = first.calls
    assert (call.name, call.arguments, call.call_id, call.result) == (
        "find_product",
        {"q": "bag"},
        "c1",
        [{"product_id": "7"}],
    )
    assert (second.index, second.response, second.calls) == (1, "There is none.", ())


@pytest.mark.parametrize(
    ("version", "minor"),
    [
        *((f"ATIF-v1.{minor}", minor) for minor in range(9)),
        ("ATIF-v1.12", 12),
        ("atif-v1.4", 4),
        ("1.4", 4),
        ("ATIF-v2.0", None),
        ("ATIF-v1", None),
        ("ATIF-v1.x", None),
        ("ATIF-v1.\u0663", None),
        (1.4, None),
        (None, None),
    ],
)
def test_versions(version: object, minor: int | None) -> None:
    assert minor_version(version) == minor


def test_texts_may_be_lists_of_parts() -> None:
    # 1.6 brought images, 1.8 sound; their texts are read, the rest is not.
    parts = [
        {"type": "text", "text": "a red"},
        {"type": "image", "source": {"path": "x.png"}},
        {"type": "text", "text": "bag"},
    ]
    seen = [{"type": "audio", "source": {"path": "x.wav"}}, {"type": "text", "text": "{}"}]
    told = decode(
        document(
            {"source": "user", "message": parts},
            agent(tool_calls=[CALL], observation={"results": [{"source_call_id": "c1", "content": seen}]}),
        )
    )
    assert told.query == "a red\nbag"
    assert told.steps[0].calls[0].result == {}


def test_results_without_ids_answer_in_order() -> None:
    calls = [CALL, {**CALL, "tool_call_id": "c2"}]
    told = decode(
        document(USER, agent(tool_calls=calls, observation={"results": [{"content": "one"}, {"content": "two"}]}))
    )
    assert [call.result for call in told.steps[0].calls] == ["one", "two"]


def test_copied_context_is_not_this_trajectorys() -> None:
    told = decode(document(USER, agent(is_copied_context=True), agent(message="Anew.")))
    assert told.query == "a red bag"
    assert [step.response for step in told.steps] == ["Anew."]


def test_embedded_trajectories_are_not_read_as_steps() -> None:
    inner = json.loads(document(USER, agent()))
    told = decode(
        document(USER, agent(), subagent_trajectories=[inner], trajectory_id="t", continued_trajectory_ref="x")
    )
    assert len(told.steps) == 1
    assert told.defects == ()


@pytest.mark.parametrize(
    "step",
    [
        {"source": "agent", "message": 5},
        {"source": "robot", "message": ""},
        agent(tool_calls=5),
        agent(tool_calls=[5]),
        agent(tool_calls=[{"function_name": None}]),
        agent(tool_calls=[{**CALL, "tool_call_id": 7}]),
        agent(observation=5),
        agent(observation={"results": [5]}),
        agent(observation={"results": [{"content": "nobody called"}]}),
        agent(reasoning_content=[]),
        5,
    ],
)
def test_parts_of_the_wrong_type_are_left_out_and_named(step: Any) -> None:
    assert decode(document(USER, step)).defects == (Defect.BAD_STEP,)


def test_arguments_that_are_no_object_stay_text() -> None:
    spelled = [{**CALL, "arguments": value} for value in ('{"q": "bag"}', "bag", [1], None)]
    calls = decode(document(USER, agent(tool_calls=spelled))).steps[0].calls
    assert [call.arguments for call in calls] == [{"q": "bag"}, "bag", "[1]", {}]


def test_whatever_else_it_is() -> None:
    assert decode(b"[]").defects == (Defect.NOT_AN_OBJECT,)
    assert decode(b"{").defects == (Defect.MALFORMED_JSON,)
    assert decode(b"{}").defects == (Defect.BAD_STEP,)
    assert parse(b"{}", ExecutionKind.ATIF).empty
