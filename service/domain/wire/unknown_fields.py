"""What a payload says that its typed `Trajectory` does not: every value the parser does not carry, by its path.

Nothing is decided by it, and the parser does not need it: it is for those who ask what a wire format has beyond what is
read. Where the typed form keeps only a digest of something (the ids of a search response, that tools were offered), or
a step was read leniently, the thing is given whole, as is every payload in a format that is not SN15's: what is given
and what is typed may overlap, and miss nothing.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from service.domain.trajectory import ExecutionKind, Trajectory, parse
from service.domain.wire import envpack as envpack_wire
from service.domain.wire import legacy as legacy_wire
from service.domain.wire.lenient import Defect, salvage

Json = Any
Shape = Callable[[Json], bool] | Mapping[str, Any] | list[Any]
"""What is carried of a value: all of it where a test says so, some members (or items, by index), or parts of each
item of a list."""

_POSITION = re.compile(r"/[0-9]+(?=/|$)")
_UNREAD = frozenset({Defect.OVERSIZED, Defect.TOO_DEEP, Defect.NOT_A_LIST, Defect.NOT_AN_OBJECT})


def unknown_fields(payload: bytes, kind: ExecutionKind) -> dict[str, Json]:
    """JSON Pointer -> value of everything the typed form does not carry; the pointer of the whole payload is "".

    A null or an empty list in a known place says nothing and is not given. Of a key that comes twice in one object the
    last value counts, and bytes that are no JSON at all give nothing: the payload itself keeps those.
    """
    trajectory = parse(payload, kind)
    value = salvage(payload).value
    found: dict[str, Json] = {}
    shape: Shape = {}
    if not _UNREAD.intersection(trajectory.defects):
        if kind is ExecutionKind.ENVPACK:
            shape = _feedback(value)
        elif kind is ExecutionKind.LEGACY and isinstance(value, list):
            shape = {str(index): _step(step, trajectory) for index, step in enumerate(value)}
    _subtract(value, shape, "", found)
    return found


def unknown_names(payload: bytes, kind: ExecutionKind) -> list[str]:
    """The places of the unknown fields, each once and in order, with `*` for every position in a list.

    A name that is all digits reads as a position too: this is a summary, and no address.
    """
    return sorted({_POSITION.sub("/*", path) for path in unknown_fields(payload, kind)})


def _subtract(value: Json, shape: Shape | None, path: str, found: dict[str, Json]) -> None:
    """Note the parts of a value that its shape (None: none is known) does not carry."""
    if shape is not None and (value is None or value == [] or value == {}):
        return
    if isinstance(shape, Mapping) and shape and isinstance(value, dict | list):
        members = value.items() if isinstance(value, dict) else enumerate(value)
        for name, member in members:
            _subtract(member, shape.get(str(name)), f"{path}/{_escaped(str(name))}", found)
    elif isinstance(shape, list) and isinstance(value, list):
        for index, item in enumerate(value):
            _subtract(item, shape[0], f"{path}/{index}", found)
    elif not (callable(shape) and shape(value)):
        found[path] = value


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _carried(_: Json) -> bool:
    return True


def _is_text(value: Json) -> bool:
    return isinstance(value, str)


def _is_storable(value: Json) -> bool:
    return isinstance(value, str) and "\0" not in value


def _is_whole(value: Json) -> bool:
    """Times are kept in whole milliseconds."""
    return bool(int(value) == value)


def _is_exact(value: Json) -> bool:
    return bool(isinstance(value, int | float) and float(value) == value)


def _is_said(value: Json) -> bool:
    """An empty text is read as no arguments at all."""
    return bool(value != "")


def _is(expected: Json) -> Callable[[Json], bool]:
    return lambda value: bool(value == expected)


_EPISODE_STEP = {
    "calls": [dict.fromkeys(("tool_name", "call_id", "args", "observation", "done", "error_code"), _carried)],
    **dict.fromkeys(("shopper_message", "message"), _carried),
}
_EPISODE = {
    **dict.fromkeys(
        ("task_id", "family", "outcome", "termination_code", "schema_version", "failure_category"), _is_text
    ),
    "query": _is_storable,
    "passed": lambda value: isinstance(value, bool),
    "paid_reward": _is_exact,
}


def _feedback(value: Json) -> Shape:
    steps = value.get("interaction") if isinstance(value, dict) else None
    if not isinstance(steps, list):
        return _EPISODE
    read = {str(i): _EPISODE_STEP for i, step in enumerate(steps) if envpack_wire.step(step) is not None}
    return _EPISODE | {"interaction": read}


_CALL = {**dict.fromkeys(("name", "tool_call_id", "result"), _carried), "parameters": _is_said}
_MESSAGE = {"think": _carried, "tool_call": [_CALL], "response": _carried}
_NATIVE_CALL = {"function": {"name": _carried, "arguments": _carried}}
_REPLY = {
    "choices": {"0": {"message": {"content": _carried, "tool_calls": [_NATIVE_CALL]}}},
    "usage": {"prompt_tokens": _carried, "completion_tokens": _carried},
}
_LINE = {"timestamp": _is_whole, "duration_ms": _carried}
_INFERENCE = _LINE | {"response_length": _carried, "json_data": {"model": _carried}}
_SEARCH = _LINE | {"path": _carried, "params": _carried, "result_product_ids": [_is_text]}


def _step(step: Json, trajectory: Trajectory) -> Shape | None:
    """The shape of one step of a dialogue; None where it could not be read as a whole."""
    if legacy_wire.step(step) is None:
        return None
    lines = (step.get("extra_info") or {}).get("proxy_calls") or []
    extra = {
        "query": _is(trajectory.query),
        "problem_id": _is(trajectory.problem_id),
        "execution_time": _is(trajectory.execution_seconds),
        "timestamp": _is_whole,
        "proxy_calls": {str(index): shape for index, line in enumerate(lines) if (shape := _line(line))},
    }
    return {"completion": {"message": _MESSAGE}, "extra_info": extra}


def _line(line: Mapping[str, Json]) -> Shape | None:
    """The shape of one line of the log; None for a request that is neither inference nor search."""
    if legacy_wire.is_inference(line["path"]):
        answer = line.get("response")
        is_reply = answer is not None and legacy_wire.reply(msgspec.Raw(msgspec.json.encode(answer))) is not None
        return _INFERENCE | ({"response": _REPLY} if is_reply else {})
    return _SEARCH if legacy_wire.is_search(line["path"]) else None
