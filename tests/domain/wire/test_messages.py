"""Chat rows as turns, in the spellings that training sets have."""

import json
from typing import Any

import pytest

from service.domain.actions import Step
from service.domain.wire.lenient import Defect
from service.domain.wire.messages import decode

USER = {"role": "user", "content": "a red bag"}
ARGUMENTS = {"q": "bag"}
NESTED = {"id": "c1", "type": "function", "function": {"name": "find_product", "arguments": json.dumps(ARGUMENTS)}}


def row(*messages: Any, **fields: Any) -> bytes:
    return json.dumps({"messages": messages, **fields}).encode()


def steps(*messages: Any) -> tuple[Step, ...]:
    told = decode(row(*messages))
    assert told.defects == ()
    return told.steps


@pytest.mark.parametrize(
    "said",
    [
        {"content": "", "tool_calls": [NESTED]},
        {"content": None, "tool_calls": [{**NESTED, "function": {"name": "find_product", "arguments": ARGUMENTS}}]},
        {"content": "", "tool_calls": [{"id": "c1", "name": "find_product", "arguments": ARGUMENTS}]},
        {"content": '<tool_call>\n{"name": "find_product", "arguments": {"q": "bag"}}\n</tool_call>'},
        {"content": '<tool_call>[{"name": "find_product", "parameters": {"q": "bag"}}]</tool_call>'},
    ],
)
def test_spellings_of_a_call(said: dict[str, Any]) -> None:
    (step,) = steps(USER, {"role": "assistant", **said}, {"role": "tool", "content": '[{"product_id": "7"}]'})
    (call,) = step.calls
    assert (call.name, call.arguments, call.result) == ("find_product", ARGUMENTS, [{"product_id": "7"}])
    assert step.response == ""


def test_thoughts_stand_before_the_text_or_beside_it() -> None:
    (inside,) = steps(USER, {"role": "assistant", "content": "<think>\nHm.\n</think>\n\nIt fits."})
    (beside,) = steps(USER, {"role": "assistant", "content": "It fits.", "reasoning_content": "Hm."})
    assert (inside.think, inside.response) == (beside.think, beside.response) == ("Hm.", "It fits.")


def test_results_find_their_calls_by_id_or_by_order() -> None:
    second = {**NESTED, "id": "c2"}
    said = {"role": "assistant", "content": "", "tool_calls": [NESTED, second]}
    by_id = [{"role": "tool", "tool_call_id": name, "content": name} for name in ("c2", "c1")]
    assert [call.result for call in steps(USER, said, *by_id)[0].calls] == ["c1", "c2"]
    in_order = [{"role": "tool", "content": text} for text in ("one", "two")]
    assert [call.result for call in steps(USER, said, *in_order)[0].calls] == ["one", "two"]
    rendered = "<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response>"
    (step,) = steps(USER, said, {"role": "user", "content": rendered})
    assert [call.result for call in step.calls] == ["one", "two"]
    assert step.shopper_message is None


def test_later_user_turns_are_the_shoppers() -> None:
    told = decode(row({"role": "system", "content": "x"}, USER, {"role": "assistant", "content": "Which?"}, USER))
    assert told.query == "a red bag"
    assert told.steps[0].shopper_message == "a red bag"


@pytest.mark.parametrize(
    "message",
    [
        5,
        {"role": "robot"},
        {"role": "user", "content": 5},
        {"role": "assistant", "content": "", "tool_calls": 5},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": 5}}]},
        {"role": "assistant", "content": "<tool_call>{nonsense</tool_call>"},
        {"role": "tool", "content": "nobody called"},
    ],
)
def test_parts_of_the_wrong_type_are_left_out_and_named(message: Any) -> None:
    assert decode(row(USER, message)).defects == (Defect.BAD_STEP,)


def test_whatever_else_it_is() -> None:
    assert decode(b"[]").defects == (Defect.NOT_AN_OBJECT,)
    assert decode(b"{").defects == (Defect.MALFORMED_JSON,)
    assert decode(b'{"messages": {}}').defects == (Defect.BAD_STEP,)
