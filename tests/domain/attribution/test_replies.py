"""Calls as models write them: what is read exactly is a call, the rest is left over and says so."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.actions import Inference, NativeCall
from service.domain.attribution.replies import ReplyCalls, call_key, calls_in, mentions, opens, plain_text, unescaped
from tests.domain.dialogues import FIND, TERMINATE, VIEW

ARGUMENTS = json.dumps(FIND[1])
WITHOUT: dict[str, Any] = {}


def said(text: str | None, *native: NativeCall) -> ReplyCalls:
    return calls_in(Inference(timestamp_ms=0, content=text, native_calls=native))


def read(text: str) -> list[tuple[str, object]]:
    return [(call.name, call.arguments) for call in said(text).calls]


@pytest.mark.parametrize(
    "text",
    [
        f'<tool_call>{{"name": "find_product", "arguments": {ARGUMENTS}}}</tool_call>',
        f'<tool_call>\n[{{"parameters": {ARGUMENTS}, "name": "find_product"}}]\n</tool_call>',
        f"<tool_call>{json.dumps({'name': 'find_product', 'arguments': ARGUMENTS})}",
        f'I search.\n```json\n{{"name": "find_product", "parameters": {ARGUMENTS}}}\n```\nThen I look.',
        f'```\n[{{"name": "find_product", "parameters": {ARGUMENTS}}}]\n```',
        f'Next: {{"tool": "find_product", "args": {ARGUMENTS}}}',
        f'{{"thought": "bags", "action": "find_product", "action_input": {ARGUMENTS}}}',
        f'{{"thought": "bags", "tool_calls": [{{"function": {{"name": "find_product", "arguments": {ARGUMENTS}}}}}]}}',
        f'{{"thought": "bags", "action": {{"name": "find_product", "params": {ARGUMENTS}}}}}',
        f'[TOOL_CALLS][{{"name": "find_product", "arguments": {ARGUMENTS}}}]',
        f'<function_call>{{"name": "find_product", "arguments": {ARGUMENTS}}}</function_call>',
        f"<function=find_product>{ARGUMENTS}</function>",
        "<tool_call>\n<function=find_product>\n<parameter=q>\nwaist bag\n</parameter>\n<parameter=price>\n180-505\n"
        "</parameter>\n</function>\n</tool_call>",
        '<invoke name="find_product"><parameter name="q">waist bag</parameter>'
        '<parameter name="price">180-505</parameter></invoke>',
        f"Thought: bags.\nAction: find_product\nAction Input: {ARGUMENTS}\nObservation:",
        f"**Action:** `find_product`\n**Action Input:** ```json\n{ARGUMENTS}\n```",
        'I search.\nfind_product(q="waist bag", price="180-505")',
        "```python\nfind_product(q='waist bag', price='180-505')\n```",
        '1. `tools.find_product(q="waist bag", price="180-505")`',
        '[find_product(q="waist bag", price="180-505")]',
        'Action: find_product(q="waist bag",\n  price="180-505",\n)',
        f"find_product({ARGUMENTS})",
        '<tool_call>find_product(q="waist bag", price="180-505")</tool_call>',
    ],
)
def test_usual_forms_are_read_exactly(text: str):
    assert read(text) == [FIND]
    assert said(text).unread == frozenset()


@pytest.mark.parametrize(
    "text",
    [
        "Action: find_product\nAction Input: q = waist bag; price = 180-505",
        "Action: find_product[waist bag, 180-505]",
        'I would call find_product(q="waist bag", price="180-505") for bags.',
        'find_product(q="waist bag", price="180-505") has shown three bags.',
        "find_product(waist bag, 180-505)",
        'find_product("waist bag", price="180-505")',
        '{"find_product": {"q": "waist bag", "price": "180-505"}}',
        '{"name": "find_product", "because": "waist bag", "at": "180-505"}',
        '<tool_call>{"find_product": {"q": "waist bag", "price": "180-505"}}</tool_call>',
        'Search for "waist bag" at 180-505 with find_product.',
    ],
)
def test_other_forms_are_left_over_and_may_hold_the_call(text: str):
    reply = said(text)
    assert reply.calls == ()
    rest = plain_text(unescaped(reply.rest))
    assert opens(reply.rest, *FIND) or mentions(rest, *FIND)
    assert not opens(reply.rest, *VIEW)
    assert not mentions(rest, *VIEW)


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "find_product", "arguments": {"q": "waist',
        '```json\n{"name": "find_product", "arguments": {"q": "waist',
        'find_product(q="waist',
        "<function=find_product><parameter=q>waist",
        'Action: find_product\nAction Input: {"q": "waist',
    ],
)
def test_a_call_that_is_cut_off_is_no_call_and_may_be_any_of_that_name(text: str):
    reply = said(text)
    assert reply.calls == ()
    assert opens(reply.rest, *FIND) or mentions(reply.rest, "find_product", {"q": "waist"})
    assert not opens(reply.rest, *TERMINATE)


def test_a_readable_call_with_other_arguments_is_not_this_one():
    assert not opens('as find_product(q="shoes") showed', *FIND)
    assert opens("as find_product(q=shoes) showed", *FIND)


def test_several_calls_stand_in_their_order():
    both = [FIND, VIEW]
    tags = "\n".join(
        f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>" for name, arguments in both
    )
    assert read(tags) == both
    assert read("<tool_call>" + "\n".join(json.dumps({"name": n, "arguments": a}) for n, a in both)) == both
    assert read('[find_product(q="waist bag", price="180-505"), view_product_information(product_ids="11,12")]') == both
    assert read('find_product(q="waist bag", price="180-505")\nview_product_information(product_ids="11,12")\n') == both


def test_what_a_model_only_thinks_of_calling_is_no_call():
    draft = 'find_product(q="shoes")'
    text = f'<think>\n{draft}\n</think>\nfind_product(q="waist bag", price="180-505")'
    assert read(text) == [FIND]
    assert draft in said(text).rest


def test_native_calls_come_first_and_the_same_in_text_is_not_a_second_one():
    native = NativeCall(FIND[0], ARGUMENTS)
    text = f'<tool_call>[{{"name": "find_product", "arguments": {ARGUMENTS}}}, {{"name": "terminate"}}]</tool_call>'
    assert said(text, native).calls == (NativeCall(*FIND), NativeCall("terminate", WITHOUT))
    assert said("I search for bags.", native) == ReplyCalls((NativeCall(*FIND),), rest="I search for bags.")
    assert said(None, native).calls == (NativeCall(*FIND),)


@pytest.mark.parametrize("content", [None, "", "\n"])
def test_thoughts_that_a_server_tells_apart_are_read_for_calls_where_nothing_else_is_said(content: str | None):
    thoughts = f'I look.\n<tool_call>{{"name": "find_product", "arguments": {ARGUMENTS}}}</tool_call>'
    assert calls_in(Inference(timestamp_ms=0, content=content, reasoning=thoughts)).calls == (NativeCall(*FIND),)
    beside = calls_in(Inference(timestamp_ms=0, content="I look.", reasoning=thoughts))
    assert beside.calls == ()
    assert opens(beside.rest, *FIND)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"q": "café"}, {"q": "caf\\u00e9"}),
        ({"q": "café"}, {"q": "cafe\u0301"}),
        ({"q": "👜"}, {"q": "\\ud83d\\udc5c"}),
        ({"q": "bag", "page": 1}, {"q": "bag"}),
        ({"status": "success"}, {}),
        ({"q": 'a "b"'}, {"q": 'a \\"b\\"'}),
        ({"ids": ["1", "2"]}, {"ids": "1, 2"}),
        ('{"q": "bag"}', {"q": " bag "}),
    ],
)
def test_the_same_call_in_two_spellings(one: object, other: object):
    assert call_key("find_product", one) == call_key("find_product", other)


@pytest.mark.parametrize(
    ("one", "other"),
    [({"q": "bag"}, {"q": "bags"}), ({"page": 2}, {}), ({"q": "Bag"}, {"q": "bag"}), ({"a": "1"}, {"b": "1"})],
)
def test_other_calls_have_other_keys(one: object, other: object):
    assert call_key("find_product", one) != call_key("find_product", other)


@given(st.text("{}()[]<>\"'=,.:\\ \nfActionInput1", max_size=80))
def test_no_text_stops_the_reading(text: str):
    for form in ("{}", "<tool_call>{}", "f({}", "Action: f\nAction Input: {}", "<function=f>{}</function>", "{{{}"):
        reply = said(form.replace("{}", text))
        opens(reply.rest, "f", {})
        mentions(reply.rest, "f", {})


json_texts = st.text("ab \"'\\{}[]()=,:<>\né👜", min_size=1, max_size=12)


@given(st.dictionaries(st.text("abcd", min_size=1, max_size=4), json_texts, min_size=1, max_size=4))
def test_every_form_gives_the_arguments_back(arguments: dict[str, str]):
    spelled = json.dumps(arguments)
    keywords = ", ".join(f"{name}={json.dumps(value)}" for name, value in arguments.items())
    for text in (
        f'<tool_call>{{"name": "f", "arguments": {spelled}}}</tool_call>',
        f'so: {{"name": "f", "parameters": {spelled}}}',
        f"Action: f\nAction Input: {spelled}",
        f"<function=f>{spelled}</function>",
        f"f({keywords})",
    ):
        assert read(text) == [("f", arguments)]
