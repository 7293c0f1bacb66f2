"""The steps of a legacy dialogue and the log filed under them, as values.

Not the wire: `wire.legacy` reads the bytes. Lines of the log are put in order of time, as they were filed under the
step before the one they belong to.
"""

from typing import NamedTuple

from service.domain.actions import Inference, NativeCall, Search, Step, ToolCall
from service.domain.wire import legacy as wire
from service.domain.wire.lenient import storable


class Told(NamedTuple):
    """What a dialogue says; see `Trajectory` for the fields."""

    problem_id: str | None
    query: str | None
    steps: tuple[Step, ...]
    inferences: tuple[Inference, ...]
    searches: tuple[Search, ...]
    execution_seconds: float | None


def told(steps: list[wire.Step]) -> Told:
    """Read the steps of one dialogue."""
    extras = [step.extra_info for step in steps if step.extra_info is not None]
    lines = [line for extra in extras if extra.proxy_calls for line in extra.proxy_calls]
    lines.sort(key=_end)
    return Told(
        problem_id=next((extra.problem_id for extra in extras if extra.problem_id), None),
        query=next((storable(extra.query) for extra in extras if extra.query), None),
        steps=tuple([_step(index, step) for index, step in enumerate(steps)]),
        inferences=tuple([_inference(line) for line in lines if wire.is_inference(line.path)]),
        searches=tuple([_search(line) for line in lines if wire.is_search(line.path)]),
        execution_seconds=next((extra.execution_time for extra in extras if extra.execution_time is not None), None),
    )


def _end(line: wire.Line) -> float:
    return line.timestamp


def _step(index: int, step: wire.Step) -> Step:
    message = step.completion.message if step.completion else None
    timestamp = step.extra_info.timestamp if step.extra_info else None
    timestamp_ms = None if timestamp is None else int(timestamp)
    if message is None:
        return Step(index=index, timestamp_ms=timestamp_ms)
    return Step(
        index=index,
        think=message.think or "",
        calls=tuple(
            [
                ToolCall(
                    name=call.name or "",
                    arguments=call.parameters or {},
                    call_id=call.tool_call_id or "",
                    result=call.result,
                )
                for call in message.tool_call or ()
            ]
        ),
        response=message.response or "",
        timestamp_ms=timestamp_ms,
    )


def _inference(line: wire.Line) -> Inference:
    request = line.json_data
    reply = wire.reply(line.response)
    message = reply.choices[0].message if reply and reply.choices else None
    usage = reply.usage if reply else None
    cut = bool(line.response_truncated) or line.response_length is not None
    return Inference(
        timestamp_ms=int(line.timestamp),
        duration_ms=line.duration_ms or 0.0,
        model=request.model if request else None,
        content=message.content if message else None,
        reasoning=_reasoning(message) if message else None,
        native_calls=_native(message) if message and message.tool_calls else (),
        dropped=message is None and (cut or line.status_code is not None),
        response_length=line.response_length,
        prompt_tokens=usage.prompt_tokens if usage else None,
        completion_tokens=usage.completion_tokens if usage else None,
        failed=message is None and not cut and line.status_code is None,
        offered_tools=bool(request and request.tools),
    )


def _reasoning(message: "wire.WireReplyMessage[object]") -> str | None:
    thoughts = message.reasoning_content or message.reasoning
    return thoughts if isinstance(thoughts, str) and thoughts else None


def _native(message: "wire.WireReplyMessage[object]") -> tuple[NativeCall, ...]:
    functions = [call.function for call in message.tool_calls or () if call.function]
    return tuple([NativeCall(function.name or "", function.arguments) for function in functions])


def _search(line: wire.Line) -> Search:
    ids = line.result_product_ids
    return Search(
        path=line.path,
        timestamp_ms=int(line.timestamp),
        duration_ms=line.duration_ms or 0.0,
        params=line.params or {},
        product_ids=tuple([str(name) for name in ids]) if ids is not None else wire.listed_ids(line.response),
        failed=line.status_code is None,
    )
