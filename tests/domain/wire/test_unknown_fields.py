"""Unknown fields: with the typed form they are the whole payload, for both formats, whatever a stranger adds to it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.trajectory import ExecutionKind, Trajectory, parse
from service.domain.wire.unknown_fields import unknown_fields, unknown_names

Json = Any

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(-1e9, 1e9)
    | st.text("aé~/\U0001f600", max_size=4)
)
names = st.sampled_from(["extra", "a/b", "m~n", "content", "step", "url"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2), max_leaves=4
)
texts = st.none() | st.text("abc \0", max_size=4)
counts = st.none() | st.integers(-5, 5)
times = st.integers(0, 10**13) | st.floats(0, 1e13, allow_nan=False)


def objects(**known: st.SearchStrategy[Json]) -> st.SearchStrategy[dict[str, Json]]:
    """An object with any of its known members, and some that nobody knows."""
    strangers = st.dictionaries(names.filter(lambda name: name not in known), values, max_size=2)
    return st.builds(lambda one, two: two | one, st.fixed_dictionaries({}, optional=known), strangers)


def lists(of: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.none() | st.lists(of, max_size=3)


mappings = st.none() | st.dictionaries(names, values, max_size=2)
episode_calls = objects(
    tool_name=texts, call_id=texts, args=mappings, observation=values, done=st.none() | st.booleans(), error_code=texts
)
turns = objects(calls=lists(episode_calls), shopper_message=texts, message=texts, step_index=counts)
episodes = st.builds(
    lambda told, played: told | {"interaction": played},
    objects(
        **dict.fromkeys(("task_id", "family", "outcome", "termination_code", "schema_version", "query"), texts),
        passed=st.none() | st.booleans(),
        paid_reward=st.none() | st.floats(0, 1) | st.sampled_from([1, 2**53 + 1]),
        failure_category=st.sampled_from([None, "process_issue", "changes missed", "new one"]),
        observable_issues=lists(values),
    ),
    lists(turns),
)

functions = objects(name=texts, arguments=values)
native_calls = objects(function=st.none() | functions) | st.builds(lambda told: {"function": told}, functions)
choices = st.builds(
    lambda told, extra: extra | {"message": told},
    objects(content=texts, tool_calls=lists(native_calls)),
    objects(),
)
replies = st.builds(
    lambda listed, extra: extra | {"choices": listed},
    st.lists(choices, min_size=1, max_size=2),
    objects(usage=st.none() | objects(prompt_tokens=counts, completion_tokens=counts)),
)
lines = st.builds(
    lambda line, path, at: line | {"path": path, "timestamp": at},
    objects(
        duration_ms=st.none() | st.floats(0, 9),
        status_code=counts,
        params=mappings,
        json_data=st.none() | objects(model=texts, tools=values),
        response=st.one_of(replies, replies, replies, lists(objects(product_id=texts | counts)), values),
        response_truncated=st.none() | st.booleans(),
        response_length=counts,
        result_product_ids=lists(st.text("12", max_size=3) | st.integers(0, 9)),
    ),
    st.sampled_from(["/inference/chat", "/search/find", "/other"]),
    times,
)
tool_calls = objects(name=texts, parameters=mappings | st.text("ab", max_size=2), tool_call_id=texts, result=values)
messages = objects(think=texts, tool_call=lists(tool_calls), response=texts)
extras = objects(
    query=texts, timestamp=st.none() | times, problem_id=texts, execution_time=counts, proxy_calls=lists(lines)
)
dialogues = st.lists(
    objects(completion=st.none() | objects(message=st.none() | messages), extra_info=st.none() | extras), max_size=3
)


def leaves(value: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """Every value that is no container, by JSON Pointer; null says nothing."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from leaves(member, f"{path}/{name.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}/{index}")
    elif value is not None:
        yield path, value


def typed_episode(trajectory: Trajectory) -> dict[str, Json]:
    """What the typed form of an episode says, by the place on the wire that says it."""
    told = trajectory.feedback
    assert told is not None
    wire: dict[str, Json] = {
        name: getattr(told, name)
        for name in ("task_id", "family", "outcome", "termination_code", "schema_version", "passed", "paid_reward")
    }
    wire |= {"query": trajectory.query, "failure_category": told.failure_given}
    wire["interaction"] = [
        {
            "message": step.response,
            "shopper_message": step.shopper_message,
            "calls": [
                {
                    "tool_name": call.name,
                    "call_id": call.call_id,
                    "args": call.arguments,
                    "observation": call.result,
                    "done": call.done,
                    "error_code": call.error_code,
                }
                for call in step.calls
            ],
        }
        for step in trajectory.steps
    ]
    return dict(leaves(wire))


def typed_dialogue(trajectory: Trajectory, payload: Json) -> dict[str, Json]:
    """The same of a dialogue. Lines of the log are looked up in the order of time that the typed form has them in."""
    wire: dict[str, Json] = {}
    for index, step in enumerate(trajectory.steps):
        calls = [
            {"name": call.name, "parameters": call.arguments, "tool_call_id": call.call_id, "result": call.result}
            for call in step.calls
        ]
        message = {"think": step.think, "response": step.response, "tool_call": calls}
        extra = {
            "timestamp": step.timestamp_ms,
            "query": trajectory.query,
            "problem_id": trajectory.problem_id,
            "execution_time": trajectory.execution_seconds,
        }
        wire |= dict(leaves({"completion": {"message": message}, "extra_info": extra}, f"/{index}"))
    placed = [
        (f"/{index}/extra_info/proxy_calls/{place}", line)
        for index, step in enumerate(payload)
        for place, line in enumerate((step.get("extra_info") or {}).get("proxy_calls") or [])
    ]
    placed.sort(key=lambda pair: pair[1]["timestamp"])
    replied = [pair for pair in placed if "/inference/" in pair[1]["path"]]
    for (path, line), reply in zip(replied, trajectory.inferences, strict=True):
        answer = line.get("response")
        choices = answer.get("choices") if isinstance(answer, dict) else None
        given = ((choices or [{}])[0].get("message") or {}).get("tool_calls") if reply.native_calls else None
        told = {
            "timestamp": reply.timestamp_ms,
            "duration_ms": reply.duration_ms,
            "response_length": reply.response_length,
            "json_data": {"model": reply.model},
            "response": {
                "choices": [{"message": {"content": reply.content}}],
                "usage": {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens},
            },
        }
        wire |= dict(leaves(told, path))
        with_function = [place for place, call in enumerate(given or []) if call.get("function") is not None]
        for place, call in zip(with_function, reply.native_calls, strict=True):
            function = {"function": {"name": call.name, "arguments": call.arguments}}
            wire |= dict(leaves(function, f"{path}/response/choices/0/message/tool_calls/{place}"))
    searched = [pair for pair in placed if "/search/" in pair[1]["path"]]
    for (path, line), search in zip(searched, trajectory.searches, strict=True):
        told = {
            "path": search.path,
            "timestamp": search.timestamp_ms,
            "duration_ms": search.duration_ms,
            "params": search.params,
        }
        if line.get("result_product_ids") is not None:
            told["result_product_ids"] = list(search.product_ids or ())
        wire |= dict(leaves(told, path))
    return wire


def missing(payload: Json, typed: dict[str, Json], unknown: dict[str, Json]) -> dict[str, Json]:
    """The leaves that neither form has."""
    kept = dict(typed)
    for path, value in unknown.items():
        kept.update(leaves(value, path))
    return {path: value for path, value in leaves(payload) if path not in kept or kept[path] != value}


@given(episodes)
def test_typed_and_unknown_fields_of_an_episode_are_all_of_it(payload: Json) -> None:
    encoded = json.dumps(payload).encode()
    typed = typed_episode(parse(encoded, ExecutionKind.ENVPACK))
    assert not missing(payload, typed, unknown_fields(encoded, ExecutionKind.ENVPACK))


@given(dialogues)
def test_typed_and_unknown_fields_of_a_dialogue_are_all_of_it(payload: Json) -> None:
    encoded = json.dumps(payload).encode()
    typed = typed_dialogue(parse(encoded, ExecutionKind.LEGACY), payload)
    assert not missing(payload, typed, unknown_fields(encoded, ExecutionKind.LEGACY))


@given(st.lists(st.lists(lines, min_size=1, max_size=2), min_size=1, max_size=2))
def test_typed_and_unknown_fields_of_a_log_are_all_of_it(logged: Json) -> None:
    payload = [{"extra_info": {"proxy_calls": part}} for part in logged]
    encoded = json.dumps(payload).encode()
    typed = typed_dialogue(parse(encoded, ExecutionKind.LEGACY), payload)
    assert not missing(payload, typed, unknown_fields(encoded, ExecutionKind.LEGACY))


@given(replies)
def test_typed_and_unknown_fields_of_a_reply_are_all_of_it(reply: Json) -> None:
    payload = [{"extra_info": {"proxy_calls": [{"path": "/inference/chat", "timestamp": 1, "response": reply}]}}]
    encoded = json.dumps(payload).encode()
    typed = typed_dialogue(parse(encoded, ExecutionKind.LEGACY), payload)
    assert not missing(payload, typed, unknown_fields(encoded, ExecutionKind.LEGACY))


@given(values, st.sampled_from(ExecutionKind))
def test_a_payload_of_another_outline_is_given_whole_or_read(payload: Json, kind: ExecutionKind) -> None:
    encoded = json.dumps(payload).encode()
    trajectory = parse(encoded, kind)
    if trajectory.defects:
        assert not missing(payload, {}, unknown_fields(encoded, kind))


def test_a_step_that_is_read_in_part_is_given_whole() -> None:
    bad = {"completion": {"message": {"think": 7, "response": "fine"}}}
    good = {"completion": {"message": {"think": "so"}, "content": "x"}}
    payload = json.dumps([bad, good]).encode()
    assert unknown_fields(payload, ExecutionKind.LEGACY) == {"/0": bad, "/1/completion/content": "x"}


@pytest.mark.parametrize("kind", ExecutionKind)
@pytest.mark.parametrize("payload", [b"", b"{", b"null", b"\xff\xfe", b"[" * 100_000])
def test_bytes_that_say_nothing_have_no_unknown_fields(payload: bytes, kind: ExecutionKind) -> None:
    assert unknown_fields(payload, kind) == {}


def test_what_the_parser_reads_is_not_unknown_and_what_is_new_is() -> None:
    episode = {
        "schema_version": "oro.episode_feedback.v2",
        "phase": "RACE",
        "query": "a lamp",
        "interaction": [{"turn": 1, "calls": [{"tool_name": "search", "args": {"q": "lamp"}, "cost": 3}]}],
    }
    assert unknown_fields(json.dumps(episode).encode(), ExecutionKind.ENVPACK) == {
        "/phase": "RACE",
        "/interaction/0/turn": 1,
        "/interaction/0/calls/0/cost": 3,
    }


def test_places_are_named_once_whatever_their_position() -> None:
    episode = {"phase": "RACE", "interaction": [{"turn": 1}, {"turn": 2, "calls": [{"cost": 3}] * 12}]}
    assert unknown_names(json.dumps(episode).encode(), ExecutionKind.ENVPACK) == [
        "/interaction/*/calls/*/cost",
        "/interaction/*/turn",
        "/phase",
    ]
