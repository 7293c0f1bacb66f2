"""The envpack episode feedback (`oro.episode_feedback.v1`): names and types of the wire, nothing of their meaning."""

from typing import Any, NamedTuple, TypeVar

import msgspec

from service.domain.wire.lenient import Defect, Found, salvage

Wire = TypeVar("Wire")


class WireCall(msgspec.Struct, gc=False):
    """One tool invocation, as the validator traced it."""

    tool_name: str | None = None
    call_id: str | None = None
    args: dict[str, Any] | None = None
    observation: Any = None
    done: bool | None = None
    error_code: str | None = None


class WireStep(msgspec.Struct, gc=False):
    """One turn."""

    calls: list[WireCall] | None = None
    shopper_message: str | None = None
    message: str | None = None


class WireFeedback(msgspec.Struct, gc=False):
    """The whole payload."""

    task_id: str | None = None
    family: str | None = None
    outcome: str | None = None
    termination_code: str | None = None
    schema_version: str | None = None
    query: str | None = None
    passed: bool | None = None
    paid_reward: float | None = None
    failure_category: str | None = None
    interaction: list[WireStep] | None = None


class Feedback(NamedTuple):
    """What could be read of a payload."""

    body: WireFeedback
    defects: tuple[Defect, ...]


_FEEDBACK = msgspec.json.Decoder(WireFeedback)
_SCALARS = tuple(field.name for field in msgspec.structs.fields(WireFeedback) if field.name != "interaction")


def decode(payload: bytes) -> Feedback:
    """Read an episode: strictly and fast, or part by part when something is wrong. Never raises."""
    try:
        return Feedback(_FEEDBACK.decode(payload), ())
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
        value, defects = salvage(payload)
    if not isinstance(value, dict):
        if Defect.MALFORMED_JSON not in defects:
            defects = (*defects, Defect.NOT_AN_OBJECT)
        return Feedback(WireFeedback(), defects)
    found = Found(defects)
    body = WireFeedback(interaction=_salvaged_steps(value.get("interaction"), found))
    for name in _SCALARS:
        part = _strict(WireFeedback, {name: value.get(name)})
        if part is None:
            found[Defect.BAD_STEP] = None
        else:
            setattr(body, name, getattr(part, name))
    return Feedback(body, tuple(found))


def step(item: object) -> WireStep | None:
    """The turn, where every known part of it has its type; else None."""
    return _strict(WireStep, item)


def _salvaged_steps(value: object, found: Found) -> list[WireStep]:
    if not isinstance(value, list):
        if value is not None:
            found[Defect.BAD_STEP] = None
        return []
    steps = []
    for item in found.affordable(value):
        read = step(item)
        if read is None:
            found[Defect.BAD_STEP] = None
            calls = item.get("calls") if isinstance(item, dict) else None
            kept = [_strict(WireCall, call) for call in found.affordable(calls)] if isinstance(calls, list) else []
            read = WireStep(calls=[call for call in kept if call is not None])
        steps.append(read)
    return steps


def _strict(type_: type[Wire], value: object) -> Wire | None:
    try:
        return msgspec.convert(value, type_)
    except (msgspec.ValidationError, RecursionError):
        return None
