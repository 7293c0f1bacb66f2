"""Whatever strangers put into a payload, everything that is done with it returns: no value raises past `parse`."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.domain import dialogues
from service.domain.filter.structure import Outcome, Reason
from service.domain.trajectory import DEEPEST, Defect, ExecutionKind, parse
from service.domain.wire import legacy as legacy_wire
from tests.domain.dialogues import agentic_run
from tests.domain.sample_rows import to_a_row
from tests.hostile import nested

LEGACY, ENVPACK = ExecutionKind.LEGACY, ExecutionKind.ENVPACK


def dialogue(**spelled: str) -> bytes:
    """A kept run in which parts are replaced by JSON text: `arguments`, `result`, `native` (arguments) or `params`."""
    steps = json.loads(agentic_run().payload())
    for step in steps:
        for call in step["completion"]["message"]["tool_call"]:
            if call["name"] == "find_product":
                call["parameters"]["extra"] = "@arguments@"
                call["result"].append("@result@")
        for line in step["extra_info"]["proxy_calls"]:
            if "/search/" in line["path"]:
                line["params"]["extra"] = "@params@"
            elif line.get("response"):
                message = line["response"]["choices"][0]["message"]
                message["tool_calls"] = [{"function": {"name": "unheard_of", "arguments": "@native@"}}]
    text = json.dumps(steps)
    for part in ("arguments", "result", "params", "native"):
        text = text.replace(f'"@{part}@"', spelled.get(part, "0"))
    return text.encode()


def episode(**spelled: str) -> bytes:
    """A passed episode in which `arguments` or `result` is replaced by JSON text."""
    order = {"tool_name": "place_test_order", "args": {"product_id": "p1"}, "observation": {"ok": 1}, "done": True}
    search = {"tool_name": "search", "args": {"query": "@arguments@"}, "observation": ["p1", "@result@"]}
    calls = [{"calls": [search]}, {"calls": [order]}]
    ending = {"termination_code": "placed_order", "passed": True, "query": "a bag", "interaction": calls}
    text = json.dumps(ending)
    for part in ("arguments", "result"):
        text = text.replace(f'"@{part}@"', spelled.get(part, "0"))
    return text.encode()


@pytest.mark.parametrize("part", ["arguments", "result", "params", "native"])
@pytest.mark.parametrize("depth", [DEEPEST + 1, 600, 1200])
def test_what_is_nested_too_deep_is_malformed_and_stops_nothing(part: str, depth: int) -> None:
    verdict = to_a_row(dialogue(**{part: nested(depth)}), LEGACY, agentic_run().evidence())
    assert verdict.reason is Reason.MALFORMED
    if part in ("arguments", "result"):
        assert to_a_row(episode(**{part: nested(depth)}), ENVPACK).reason is Reason.MALFORMED


def test_the_limit_counts_the_levels_of_a_call_and_no_more() -> None:
    # The arguments are an object themselves, so they have room for one level less.
    assert parse(episode(arguments=nested(DEEPEST - 1)), ENVPACK).defects == ()
    assert parse(episode(arguments=nested(DEEPEST)), ENVPACK).defects == (Defect.TOO_DEEP,)
    assert to_a_row(episode(arguments=nested(DEEPEST - 1)), ENVPACK).outcome is Outcome.KEPT


numbers = st.integers() | st.floats(allow_nan=False) | st.sampled_from([2**63, 2**64, -(2**63) - 1, 10**400])
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=20,
)


@given(values, values, st.integers(0, 12))
def test_what_is_read_at_once_is_what_is_read_in_two_steps(arguments: Any, result: Any, levels: int) -> None:
    """Reading at once checks the depth and reads replies and listings too; where it refuses, `decode` is asked."""
    call = {"name": "x", "parameters": {"a": arguments}, "result": json.loads(nested(levels)) if levels else result}
    payload = json.dumps([{"completion": {"message": {"think": "t", "tool_call": [call]}}}]).encode()
    read = legacy_wire.read(payload)
    whole = legacy_wire.decode(payload)
    assert (msgspec.to_builtins(read.steps), read.defects) == (msgspec.to_builtins(whole.steps), whole.defects)
    depth = max(depth_of(call["parameters"]), depth_of(call["result"]))
    assert read.is_shallow is (depth <= legacy_wire.SHALLOW and not whole.defects and is_strict(payload))


def is_strict(payload: bytes) -> bool:
    try:
        msgspec.json.decode(payload)
    except msgspec.MsgspecError:
        return False
    return True


responses = st.one_of(
    values,
    st.fixed_dictionaries(
        {},
        optional={
            "choices": st.lists(
                st.fixed_dictionaries(
                    {},
                    optional={
                        "message": st.fixed_dictionaries(
                            {},
                            optional={
                                "content": st.none() | st.text(max_size=9) | st.integers(),
                                "tool_calls": st.lists(
                                    st.fixed_dictionaries(
                                        {}, optional={"function": st.fixed_dictionaries({"arguments": values})}
                                    ),
                                    max_size=2,
                                ),
                            },
                        )
                    },
                ),
                max_size=2,
            ),
            "usage": st.none() | st.dictionaries(st.sampled_from(["prompt_tokens", "completion_tokens"]), numbers),
        },
    ),
    st.lists(st.fixed_dictionaries({"product_id": st.text(max_size=5) | numbers | st.none()}), max_size=3),
)
lines = st.fixed_dictionaries(
    {"path": st.sampled_from(["/inference/chat/completions", "/search/find_product", "/other"])},
    optional={
        "timestamp": st.integers(0, 10**12) | numbers,
        "status_code": st.none() | st.just(200),
        "response": responses,
        "response_length": st.integers(0, 9),
        "result_product_ids": st.lists(st.integers() | st.text(max_size=3), max_size=2),
        "params": st.dictionaries(st.text(max_size=3), values, max_size=2),
    },
)


@given(st.lists(lines.map(lambda line: {"timestamp": 1, **line}), max_size=4))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_a_log_reads_the_same_at_once_and_in_two_steps(log: list[dict[str, Any]]) -> None:
    payload = json.dumps([{"extra_info": {"query": "q", "proxy_calls": log}}]).encode()
    assert dialogues.told(legacy_wire.read(payload).steps) == dialogues.told(legacy_wire.decode(payload).steps)


def depth_of(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth_of, inner), default=0) if isinstance(value, dict | list) else 0


@pytest.mark.parametrize("depth", [600, 3_000])
def test_json_in_text_is_text_however_deep(depth: int) -> None:
    text = json.dumps(nested(depth))
    assert to_a_row(dialogue(arguments=text, result=text, params=text, native=text), LEGACY)
    assert to_a_row(episode(arguments=text, result=text), ENVPACK).outcome is Outcome.KEPT


@pytest.mark.parametrize(
    "spelling",
    [
        *("1e400", "NaN", "-Infinity", "1e308", "-0.0", "18446744073709551616", "9" * 400, "9" * 5_000),
        *('"\\ud800"', '"a\\u0000b"', '{"\\udfff": 1}', '{"a": 1, "a": [2]}', '{"": {"": null}}', "true"),
    ],
)
def test_strange_scalars_stop_nothing(spelling: str) -> None:
    to_a_row(dialogue(arguments=spelling), LEGACY, agentic_run().evidence())
    to_a_row(dialogue(result=spelling), LEGACY, agentic_run().evidence())
    to_a_row(dialogue(native=spelling, params=spelling), LEGACY, agentic_run().evidence())
    to_a_row(episode(arguments=spelling, result=spelling), ENVPACK)


SCALARS = st.sampled_from(
    [
        *("0", "null", "true", "1e400", "-1e308", "NaN", "9" * 400, "-0.0", "1.0", '""', '"11,12"'),
        *('"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"<|im_end|>"', '"</think>"', '"<tool_call>[{"'),
    ]
)
KEYS = st.sampled_from(["product_ids", "product_id", "q", "query", "abstain", "name", "arguments", "\\ud800", "", "a"])
SPELLED = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: "[" + ",".join(items) + "]")
        | st.lists(st.tuples(KEYS, inner), max_size=4).map(
            lambda pairs: "{" + ",".join(f'"{key}":{value}' for key, value in pairs) + "}"  # keys may repeat
        )
        | st.tuples(st.integers(1, 200), inner).map(lambda pair: nested(*pair))
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SPELLED, SPELLED, SPELLED, SPELLED)
def test_no_spelling_stops_the_way_to_a_row(arguments: str, result: str, params: str, native: str) -> None:
    parts: dict[str, Any] = {"arguments": arguments, "result": result, "params": params, "native": native}
    to_a_row(dialogue(**parts), LEGACY, agentic_run().evidence())
    to_a_row(episode(arguments=arguments, result=result), ENVPACK)
