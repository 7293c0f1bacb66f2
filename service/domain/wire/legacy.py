"""The legacy dialogue as the executor uploads it: a JSON list of steps with the proxy log filed under them.

Only names and types of the wire, and how to read them when some are wrong; what they mean is `trajectory`'s business.
"""

from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import msgspec

from service.domain.wire.lenient import Defect, Found, bounded, salvage

LARGEST = 10**15
"""No time in ms and no count comes near; numbers beyond are wrong, and would overflow in arithmetic."""

SHALLOW = 8
"""Levels of lists and objects that `read` takes at once where any value may stand; tools need some five."""

Count = Annotated[int, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Number = Count | Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Wire = TypeVar("Wire")
Free = TypeVar("Free")
"""What stands where the format fixes no shape: any value, or one that is not nested deep."""
Answer = TypeVar("Answer")
"""What stands where the log holds a response: its bytes, or what they say."""


class WireCall(msgspec.Struct, Generic[Free], gc=False):
    """One entry of `message.tool_call`."""

    name: str | None = None
    parameters: dict[str, Free] | str | None = None
    tool_call_id: str | None = None
    result: Free | None = None


class WireMessage(msgspec.Struct, Generic[Free], gc=False):
    """`completion.message`; absent keys are empty parts of the step."""

    think: str | None = None
    tool_call: list[WireCall[Free]] | None = None
    response: str | None = None


class WireCompletion(msgspec.Struct, Generic[Free], gc=False):
    """`completion`; its `content` is rebuilt by code from `message` and is not read."""

    message: WireMessage[Free] | None = None


class WireRequest(msgspec.Struct, gc=False):
    """`json_data`: the request to the model without its messages."""

    model: str | None = None
    tools: msgspec.Raw = msgspec.Raw(b"")


class WireProxyCall(msgspec.Struct, Generic[Free, Answer], gc=False):
    """One line of the proxy log."""

    path: str
    timestamp: Number
    kind: str | None = None
    duration_ms: Number | None = None
    status_code: Count | None = None
    params: dict[str, Free] | None = None
    json_data: WireRequest | None = None
    response: Answer = None  # type: ignore[assignment]
    response_truncated: bool | None = None
    response_length: Count | None = None
    result_product_ids: list[str | int] | None = None


class WireExtra(msgspec.Struct, Generic[Free, Answer], gc=False):
    """`extra_info`, set by the agent and filled up by the executor."""

    query: str | None = None
    timestamp: Number | None = None
    problem_id: str | None = None
    execution_time: Number | None = None
    proxy_calls: list[WireProxyCall[Free, Answer]] | None = None


class WireStep(msgspec.Struct, Generic[Free, Answer], gc=False):
    """One step of the dialogue."""

    completion: WireCompletion[Free] | None = None
    extra_info: WireExtra[Free, Answer] | None = None


class WireFunction(msgspec.Struct, Generic[Free], gc=False):
    """`function` of a native tool call."""

    name: str | None = None
    arguments: Free | None = None


class WireToolCall(msgspec.Struct, Generic[Free], gc=False):
    """One native tool call of a reply."""

    function: WireFunction[Free] | None = None


class WireReplyMessage(msgspec.Struct, Generic[Free], gc=False):
    """The assistant message of a reply. Servers disagree on what they call the thoughts, and of what type they are."""

    content: str | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: list[WireToolCall[Free]] | None = None


class WireChoice(msgspec.Struct, Generic[Free], gc=False):
    """One choice of a reply."""

    message: WireReplyMessage[Free] | None = None


class WireUsage(msgspec.Struct, gc=False):
    """Token counts of a reply."""

    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None


class WireReply(msgspec.Struct, Generic[Free], gc=False):
    """An OpenAI chat completion."""

    choices: list[WireChoice[Free]] | None = None
    usage: WireUsage | None = None


class WireProduct(msgspec.Struct, gc=False):
    """A product in a search response; only its id is read."""

    product_id: str | int | None = None


Step = WireStep[Any, Any]
Line = WireProxyCall[Any, Any]
"""With everything in them, however it was read."""


def is_inference(path: str) -> bool:
    """Whether a line of the log is a request to a model."""
    return "/inference/" in path


def is_search(path: str) -> bool:
    """Whether it is one to the catalogue. No line is both, whatever an agent puts into its path."""
    return "/search/" in path and not is_inference(path)


class Dialogue(NamedTuple):
    """What could be read of a payload."""

    steps: list[Step]
    defects: tuple[Defect, ...]
    is_shallow: bool = False
    """No value nests more than `SHALLOW` levels; False where that was not looked at."""


def _readable_at_once() -> Any:
    """The type of a whole dialogue, replies and listings included, as long as no value nests deep."""
    value = bounded(SHALLOW)
    answer = WireReply[value] | list[WireProduct] | None  # type: ignore[valid-type]
    return list[WireStep[value, answer]]  # type: ignore[valid-type]


_AT_ONCE = msgspec.json.Decoder(_readable_at_once())
_DIALOGUE = msgspec.json.Decoder(list[WireStep[Any, msgspec.Raw]])
_STEP = msgspec.json.Decoder(WireStep[Any, msgspec.Raw])
_CALL = msgspec.json.Decoder(WireCall[Any])
_PROXY_CALL = msgspec.json.Decoder(WireProxyCall[Any, msgspec.Raw])
_REPLY = msgspec.json.Decoder(WireReply[Any])
_PRODUCTS = msgspec.json.Decoder(list[WireProduct])


def read(payload: bytes) -> Dialogue:
    """Read a dialogue and the responses in its log: in one go, or as `decode` does. Never raises."""
    try:
        return Dialogue(_AT_ONCE.decode(payload), (), is_shallow=True)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
        return decode(payload)


def decode(payload: bytes) -> Dialogue:
    """Read a dialogue, responses left as bytes: strictly, or step by step when something is wrong. Never raises."""
    try:
        return Dialogue(_DIALOGUE.decode(payload), ())
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
        value, defects = salvage(payload)
    if not isinstance(value, list):
        if Defect.MALFORMED_JSON not in defects:
            defects = (*defects, Defect.NOT_A_LIST)
        return Dialogue([], defects)
    found = Found(defects)
    steps = [read for item in found.affordable(value) if (read := _salvaged_step(item, found)) is not None]
    return Dialogue(steps, tuple(found))


def step(item: object) -> Step | None:
    """The step, where every known part of it has its type; else None."""
    return _strict(_STEP, item)


def reply(answer: object) -> WireReply[Any] | None:
    """The chat completion in a logged response, whether it was read or left as bytes; None when it is none."""
    if isinstance(answer, WireReply):
        return answer
    try:
        return _REPLY.decode(answer) if isinstance(answer, msgspec.Raw) else None
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None


def listed_ids(answer: object) -> tuple[str, ...] | None:
    """Product ids in a logged search response, likewise; None when it is no list of products."""
    try:
        products = _PRODUCTS.decode(answer) if isinstance(answer, msgspec.Raw) else answer
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    if not isinstance(products, list):
        return None
    return tuple([str(product.product_id) for product in products if product.product_id is not None])


def _salvaged_step(item: object, found: Found) -> Step | None:
    whole = step(item)
    if whole is not None:
        return whole
    found[Defect.BAD_STEP] = None
    if not isinstance(item, dict):
        return None
    completion = item.get("completion")
    message = completion.get("message") if isinstance(completion, dict) else None
    read: WireMessage[Any] = WireMessage()
    if isinstance(message, dict):
        calls = message.get("tool_call")
        calls = calls if isinstance(calls, list) else []
        read = WireMessage(
            think=_text(message.get("think")),
            tool_call=[call for entry in found.affordable(calls) if (call := _strict(_CALL, entry)) is not None],
            response=_text(message.get("response")),
        )
    return WireStep(WireCompletion(read), _salvaged_extra(item.get("extra_info"), found))


def _salvaged_extra(extra: object, found: Found) -> WireExtra[Any, Any]:
    if not isinstance(extra, dict):
        return WireExtra()
    logged = extra.get("proxy_calls")
    lines = logged if isinstance(logged, list) else []
    proxy_calls = [line for entry in found.affordable(lines) if (line := _strict(_PROXY_CALL, entry)) is not None]
    if len(proxy_calls) < len(lines) or not (logged is None or isinstance(logged, list)):
        found[Defect.BAD_PROXY_CALL] = None
    return WireExtra(
        query=_text(extra.get("query")),
        timestamp=_number(extra.get("timestamp")),
        problem_id=_text(extra.get("problem_id")),
        execution_time=_number(extra.get("execution_time")),
        proxy_calls=proxy_calls,
    )


def _strict(decoder: "msgspec.json.Decoder[Wire]", value: object) -> Wire | None:
    try:
        return decoder.decode(msgspec.json.encode(value))
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and abs(value) <= LARGEST else None
