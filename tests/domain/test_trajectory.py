"""Reading payloads: both wire formats, and every way in which bytes can be broken."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.attribution.evidence import Evidence
from service.domain.attribution.provenance import attribute
from service.domain.filter.rules import SLUICE_1
from service.domain.filter.structure import Reason, judge
from service.domain.trajectory import Defect, ExecutionKind, parse, product_ids
from tests.domain.dialogues import agentic_run
from tests.domain.sample_rows import to_a_row

WORDS = """completion message think tool_call name parameters result extra_info timestamp proxy_calls path response
choices usage params product_ids q interaction calls args observation query execution_time"""
KEYS = st.sampled_from(WORDS.split())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(10**400),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=4), inner, max_size=5),
    max_leaves=30,
)


def read(payload: bytes, kind: ExecutionKind = ExecutionKind.LEGACY) -> None:
    """Everything that is done with bytes of strangers."""
    trajectory = parse(payload, kind)
    to_a_row(payload, kind)
    assert trajectory.answer == tuple(dict.fromkeys(trajectory.answer))


def test_a_dialogue_is_read_whole() -> None:
    trajectory = agentic_run().trajectory()
    assert trajectory.defects == ()
    assert trajectory.query == "Looking for a waist bag from 180 to 505 PHP."
    assert [call.name for call in trajectory.tool_calls] == [
        "find_product",
        "view_product_information",
        "recommend_product",
        "terminate",
    ]
    assert trajectory.answer == ("11",)
    # one reply a call; the two catalogue calls leave a search each
    assert (len(trajectory.inferences), len(trajectory.searches)) == (4, 2)
    assert trajectory.searches[0].product_ids is not None
    assert [reply.timestamp_ms for reply in trajectory.inferences] == sorted(
        reply.timestamp_ms for reply in trajectory.inferences
    )


def test_an_episode_is_read_whole() -> None:
    order = {"call_id": "c2", "tool_name": "place_test_order", "args": {"product_id": "p1"}, "observation": {"ok": 1}}
    feedback = {
        "schema_version": "oro.episode_feedback.v1",
        "task_id": "TF8-1",
        "outcome": "completed",
        "termination_code": "placed_order",
        "passed": True,
        "paid_reward": 1,
        "query": "a bag",
        "interaction": [
            {"step_index": 0, "calls": [], "message": "Which colour?", "shopper_message": "red"},
            {"step_index": 1, "calls": [{**order, "done": True, "unheard_of": 1}]},
        ],
    }
    trajectory = parse(json.dumps(feedback).encode(), ExecutionKind.ENVPACK)
    assert trajectory.answer == ("p1",)
    assert trajectory.steps[0].shopper_message == "red"
    assert trajectory.steps[0].response == "Which colour?"
    assert trajectory.feedback is not None
    assert trajectory.feedback.paid_reward == 1.0


@pytest.mark.parametrize(
    ("payload", "defect"),
    [
        (b"", Defect.MALFORMED_JSON),
        (b"[{", Defect.MALFORMED_JSON),
        (b"[" * 100_000, Defect.MALFORMED_JSON),
        (b'{"completion": 1}', Defect.NOT_A_LIST),
        (b"null", Defect.NOT_A_LIST),
        (b"[3]", Defect.BAD_STEP),
        (b'[{"completion": []}]', Defect.BAD_STEP),
        (b'[{"extra_info": {"timestamp": 1e300}}]', Defect.BAD_STEP),
        (
            b'[{"extra_info": {"proxy_calls": [{"path": "/inference/", "timestamp": 0, "duration_ms": %s}]}}]'
            % (b"9" * 400),
            Defect.BAD_PROXY_CALL,
        ),
        (b'[{"nan": NaN}]', Defect.BARE_NAN),
        (b'[{"nan": -Infinity}]', Defect.BARE_NAN),
        (b'[{"completion": {"message": {"tool_call": [{"result": 1e999}]}}}]', Defect.BARE_NAN),
        (b'[{"a": "x\0y"}]', Defect.NUL_BYTES),
        (b'[{"completion": {"message": {"think": "\xff"}}}]', Defect.BAD_UTF8),
        (b'[{"a": "\\ud800"}]', Defect.BAD_UTF8),
        (b'[{"extra_info": {"proxy_calls": [7]}}]', Defect.BAD_PROXY_CALL),
    ],
)
def test_what_is_broken_is_named(payload: bytes, defect: Defect) -> None:
    assert defect in parse(payload, ExecutionKind.LEGACY).defects


def test_what_no_agent_can_produce_is_not_read() -> None:
    large = json.dumps([{"completion": {"message": {"think": "x" * (4 << 20)}}}])
    many = json.dumps([{}] * 2_001)
    for payload in (large, many):
        trajectory = parse(payload.encode(), ExecutionKind.LEGACY)
        assert trajectory.defects == (Defect.OVERSIZED,)
        assert judge(trajectory, Evidence(), SLUICE_1, len).reason is Reason.OVERSIZED
    assert len(parse(json.dumps([{}] * 2_000).encode(), ExecutionKind.LEGACY).steps) == 2_000


def test_an_empty_list_is_empty_and_not_broken() -> None:
    trajectory = parse(b"[]", ExecutionKind.LEGACY)
    assert trajectory.empty
    assert trajectory.defects == ()


def test_one_bad_step_costs_nothing_but_its_bad_parts() -> None:
    steps = json.loads(agentic_run().payload())
    steps[0]["completion"]["message"]["think"] = ["no", "text"]
    steps[1]["completion"]["message"]["tool_call"].append({"name": 5})
    steps.append("no step at all")
    whole = agentic_run().trajectory()
    trajectory = parse(json.dumps(steps).encode(), ExecutionKind.LEGACY)
    assert trajectory.defects == (Defect.BAD_STEP,)
    assert trajectory.tool_calls == whole.tool_calls
    assert trajectory.inferences == whole.inferences
    assert trajectory.steps[0].think == ""


def test_a_bare_nan_leaves_the_rest() -> None:
    steps = json.loads(agentic_run().payload())
    steps[0]["nan"] = float("nan")
    trajectory = parse(json.dumps(steps).encode(), ExecutionKind.LEGACY)
    assert trajectory.defects == (Defect.BARE_NAN,)
    assert trajectory.tool_calls == agentic_run().trajectory().tool_calls


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        ({"product_ids": " 11 , 12,11,"}, ("11", "12")),
        ({"product_ids": ["11", 12]}, ("11", "12")),
        ({"product_id": 11}, ("11",)),
        ({"product_ids": ""}, ()),
        ({"q": "11"}, ()),
        ("11", ()),
    ],
)
def test_ids_are_read_however_they_are_written(arguments: dict | str, ids: tuple[str, ...]) -> None:
    assert product_ids(arguments) == ids


def test_a_named_nul_becomes_storable() -> None:
    steps = json.loads(agentic_run().payload())
    steps[0]["extra_info"]["query"] = "a\0b"
    steps[2]["completion"]["message"]["tool_call"][0]["parameters"] = {"product_ids": "1\0,2"}
    trajectory = parse(json.dumps(steps).encode(), ExecutionKind.LEGACY)
    assert (trajectory.query, trajectory.answer) == ("a\ufffdb", ("1\ufffd", "2"))


@given(st.binary(max_size=200), st.sampled_from(ExecutionKind))
def test_no_bytes_raise(payload: bytes, kind: ExecutionKind) -> None:
    read(payload, kind)


@settings(max_examples=200, deadline=None)
@given(JSON, st.sampled_from(ExecutionKind))
def test_no_json_raises(value: object, kind: ExecutionKind) -> None:
    read(json.dumps(value).encode(), kind)
    read(json.dumps([value]).encode(), kind)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_replaced_part_raises(data: st.DataObject) -> None:
    """Any one value of a sound payload may be anything."""
    steps = json.loads(agentic_run().payload())
    node, at = steps, 0
    while isinstance(node, list | dict) and node:
        keys = list(range(len(node))) if isinstance(node, list) else list(node)
        at = data.draw(st.sampled_from(keys))
        if not isinstance(node[at], list | dict) or not node[at] or data.draw(st.integers(0, 4)) == 0:
            node[at] = data.draw(JSON)
            break
        node = node[at]
    read(json.dumps(steps).encode())
    attribute(parse(json.dumps(steps).encode(), ExecutionKind.LEGACY), Evidence())
