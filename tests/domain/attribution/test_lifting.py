"""Lifting: which harness-made calls carry out what a reply had stated, and which only look alike."""

import json
from typing import Any

import msgspec
import pytest

from service.domain.actions import Inference, Step, ToolCall
from service.domain.attribution.lifting import Lift, Lifting, lifting
from service.domain.attribution.provenance import CallProvenance, Issuer, Trust
from service.domain.trajectory import ExecutionKind, Trajectory

Acts = list[tuple[str, dict[str, Any]]]


def said(value: object, at_ms: int = 50) -> Inference:
    return Inference(timestamp_ms=at_ms, content=value if isinstance(value, str) else json.dumps(value))


def lifted(replies: list[Inference], acts: Acts, issuers: dict[int, Issuer] | None = None) -> Lifting:
    """Each act is a step of its own, 100 ms apart from 100 on; all are the harness's but those named."""
    steps = tuple(
        Step(index=index, timestamp_ms=100 * (index + 1), calls=(ToolCall(name=name, arguments=arguments),))
        for index, (name, arguments) in enumerate(acts)
    )
    calls = [
        CallProvenance(
            step=index,
            call=0,
            issuer=(issuers or {}).get(index, Issuer.HARNESS),
            trust=Trust.CLAIMED,
            rule="log_whole_no_reply",
        )
        for index in range(len(acts))
    ]
    trajectory = Trajectory(kind=ExecutionKind.LEGACY, steps=steps, inferences=tuple(replies))
    return lifting(trajectory, calls)


PLAN = {"search": {"keywords": "steel kettle", "price": "100-200"}, "best": "9001"}
CARRIED_OUT: Acts = [
    ("find_product", {"q": "Steel  kettle", "price": "100-200", "page": 1}),
    ("recommend_product", {"product_ids": "9001"}),
    ("terminate", {}),
]


def test_a_plan_that_code_carries_out_is_lifted_whole():
    extent, calls = lifted([said(PLAN)], CARRIED_OUT)
    assert extent is Lift.WHOLE
    assert [(call.step, [match.pointer for match in call.matches]) for call in calls] == [
        (0, ["/search/keywords", "/search/price"]),
        (1, ["/best"]),
    ]


def test_one_call_that_no_reply_states_leaves_a_part():
    other: Acts = [("view_product_information", {"product_ids": "7777"})]
    assert lifted([said(PLAN)], CARRIED_OUT + other).extent is Lift.PART


def test_a_value_that_no_reply_states_lifts_nothing():
    acts: Acts = [("find_product", {"q": "steel kettle", "shop_id": "12345"})]
    assert lifted([said(PLAN)], acts) == (Lift.NONE, ())


def test_a_reply_that_came_later_is_no_plan():
    assert lifted([said(PLAN, at_ms=101)], CARRIED_OUT[:1]).extent is Lift.NONE
    assert lifted([said(PLAN, at_ms=100)], CARRIED_OUT[:1]).extent is Lift.WHOLE


SCORES = {"scores": [{"id": "9001", "score": 8}, {"id": "9002", "score": 3}]}


def test_code_that_chose_among_listed_values_is_shown_and_not_counted():
    extent, (call,) = lifted([said(SCORES)], [("recommend_product", {"product_ids": "9001"})])
    assert (extent, call.is_chosen) == (Lift.NONE, False)


def test_a_list_that_is_carried_out_whole_was_no_choice():
    acts: Acts = [("view_product_information", {"product_ids": name}) for name in ("9001", "9002")]
    assert lifted([said(SCORES)], acts).extent is Lift.WHOLE
    assert lifted([said(SCORES)], [("recommend_product", {"product_ids": "9002,9001"})]).extent is Lift.WHOLE


def test_calls_of_the_model_are_its_own_already_and_unknown_ones_stay():
    assert lifted([said(PLAN)], CARRIED_OUT, {1: Issuer.MODEL}).extent is Lift.WHOLE
    extent, calls = lifted([said(PLAN)], CARRIED_OUT, {1: Issuer.UNKNOWN})
    assert (extent, [call.step for call in calls]) == (Lift.PART, [0])


@pytest.mark.parametrize(
    "text",
    [
        "Sure! ```json\n" + json.dumps(PLAN) + "\n``` Hope it helps.",
        "{broken {" + json.dumps(PLAN) + "}",
        json.dumps({"plan": [json.loads(json.dumps(PLAN))]}),
    ],
)
def test_plans_are_found_inside_other_text(text: str):
    assert lifted([said(text)], CARRIED_OUT).extent is Lift.WHOLE


@pytest.mark.parametrize("text", ["", "steel kettle 100-200 9001", "[" * 5_000, '{"a":' * 5_000, "{" * 100_000])
def test_text_without_a_value_in_json_lifts_nothing(text: str):
    assert lifted([said(text)], CARRIED_OUT) == (Lift.NONE, ())


def test_arguments_of_any_shape_are_passed_over():
    acts: Acts = [("find_product", {"q": ["steel kettle"]}), ("find_product", {})]
    assert lifted([said(PLAN)], acts).extent is Lift.NONE
    odd = msgspec.structs.replace(ToolCall(name="find_product", arguments="steel kettle"))
    trajectory = Trajectory(kind=ExecutionKind.LEGACY, steps=(Step(index=0, calls=(odd,)),), inferences=(said(PLAN),))
    call = CallProvenance(step=0, call=0, issuer=Issuer.HARNESS, trust=Trust.CLAIMED, rule="log_whole_no_reply")
    assert lifting(trajectory, [call]).extent is Lift.NONE
