"""A trajectory as chat messages, and those messages as the text a Qwen3 model reads. Grades and drops nothing.

The words of an assistant message are those of the logged reply that issued its calls; where no reply shows them they
are the recorded ones, marked `reconstructed`. Text of strangers cannot open or close a turn: chat control tokens in
it are broken up, and characters that are not Unicode text are replaced.
"""

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from service.domain.attribution.provenance import CallProvenance, Issuer
from service.domain.rows.prompts import SYSTEM_PROMPTS
from service.domain.trajectory import Inference, Step, ToolCall, Trajectory


class Function(msgspec.Struct, frozen=True, kw_only=True):
    """What is called."""

    name: str
    arguments: str
    """JSON text: as a nested value, `datasets` would merge the keys of all rows into every call."""


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """One call in an assistant message, in OpenAI's style."""

    id: str
    """Unique within its row: `call_1`, `call_2`, ..."""
    type: str = "function"
    function: Function


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One turn. `issuer`, `reconstructed`, `train` and `weight` speak of assistant turns; others never train."""

    role: str
    content: str
    tool_calls: tuple[ToolUse, ...] | None = None
    tool_call_id: str | None = None
    """Of a tool turn: the call it answers."""
    issuer: str | None = None
    """`model` if a logged reply issued every call; `harness` if code issued any; else `unknown`."""
    reconstructed: bool | None = None
    """True: no logged reply shows these words; they are what the agent recorded. None: there are no words."""
    train: bool = False
    weight: float = 0.0


class _Words(NamedTuple):
    think: str
    text: str
    reconstructed: bool | None


def chat_messages(
    trajectory: Trajectory,
    calls: Collection[CallProvenance],
    query: str | None = None,
    trainable: frozenset[Issuer] = frozenset({Issuer.MODEL}),
) -> tuple[Message, ...]:
    """Turn a trajectory into messages: system, user, then assistant and tool turns, with shopper turns between.

    Args:
        trajectory: what happened.
        calls: who issued each call; a call without an entry counts as unknown.
        query: the user's words; None takes the words the trajectory reports.
        trainable: issuers whose messages are marked `train`, with weight 1.
    """
    issued = {(call.step, call.call): call for call in calls}
    used: set[int] = set()
    messages = [
        Message(role="system", content=SYSTEM_PROMPTS[trajectory.kind]),
        Message(role="user", content=clean_text(query if query is not None else trajectory.query or "")),
    ]
    serial = 0
    for position, step in enumerate(trajectory.steps):
        found = [issued.get((position, number)) for number in range(len(step.calls))]
        reply = _reply(step, found, trajectory.inferences, used)
        words = _words(step, reply)
        issuer = _issuer(found, reply)
        uses = tuple(_tool_use(call, serial + number) for number, call in enumerate(step.calls, start=1))
        serial += len(uses)
        if uses or words.reconstructed is not None:
            messages.append(_assistant(words, uses, issuer, issuer in trainable))
        messages += [
            Message(role="tool", content=_observation(call), tool_call_id=use.id)
            for call, use in zip(step.calls, uses, strict=True)
        ]
        if step.shopper_message:
            messages.append(Message(role="user", content=clean_text(step.shopper_message)))
    return tuple(messages)


def _assistant(words: _Words, uses: tuple[ToolUse, ...], issuer: Issuer, train: bool) -> Message:
    think = f"<think>\n{words.think}\n</think>\n\n" if words.think else ""
    return Message(
        role="assistant",
        content=clean_text(think + words.text),
        tool_calls=uses or None,
        issuer=issuer.value,
        reconstructed=words.reconstructed,
        train=train,
        weight=1.0 if train else 0.0,
    )


def _reply(
    step: Step, found: Sequence[CallProvenance | None], inferences: Sequence[Inference], used: set[int]
) -> str | None:
    """The logged reply behind a step: the one that issued its first matched call, else the next that says its words.

    A reply speaks once: a second step made from it keeps its recorded words. Adds to `used`.
    """
    matched = [call.inference for call in found if call is not None and call.inference is not None]
    if not matched and step.think:
        matched = [i for i, each in enumerate(inferences) if i not in used and step.think in (each.content or "")][:1]
    for index in matched[:1]:
        if index not in used and index < len(inferences):
            used.add(index)
            return inferences[index].content or ""
    return None


def _issuer(found: Sequence[CallProvenance | None], reply: str | None) -> Issuer:
    if not found:
        return Issuer.UNKNOWN if reply is None else Issuer.MODEL
    issuers = {Issuer.UNKNOWN if call is None else call.issuer for call in found}
    if Issuer.HARNESS in issuers:
        return Issuer.HARNESS
    return Issuer.MODEL if issuers == {Issuer.MODEL} else Issuer.UNKNOWN


_CALL_BLOCK = re.compile(r"<tool_call>.*?(?:</tool_call>|\Z)", re.DOTALL)
_RESPONSE_TAG = re.compile(r"</?response>")


def _words(step: Step, reply: str | None) -> _Words:
    """Think and text of a step: the reply's where it says anything, else the recorded ones."""
    body = _CALL_BLOCK.sub("", reply or "").strip()
    if not body:
        # Episodes record what was said through a `message` call as the turn's words too; once is enough.
        said = any(step.response in call.arguments.values() for call in step.calls if isinstance(call.arguments, dict))
        recorded = step.think.strip(), "" if said else step.response.strip()
        return _Words(*recorded, True if any(recorded) else None)
    head, closed, tail = body.partition("</think>")
    think = head.removeprefix("<think>").strip() if closed else ""
    text = _RESPONSE_TAG.sub("", tail if closed else body).strip()
    if not think and text == step.think.strip():
        # Agents that call tools natively record the reply's plain text as their thought.
        return _Words(text, step.response.strip(), bool(step.response.strip()))
    return _Words(think, text, False)


def _tool_use(call: ToolCall, serial: int) -> ToolUse:
    arguments = call.arguments if isinstance(call.arguments, str) else _json_text(call.arguments)
    return ToolUse(id=f"call_{serial}", function=Function(name=clean_text(call.name), arguments=clean_text(arguments)))


def _observation(call: ToolCall) -> str:
    if call.result is None:
        return _json_text({"error": call.error_code}) if call.error_code else ""
    return clean_text(call.result if isinstance(call.result, str) else _json_text(call.result))


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def _json_text(value: Any) -> str:
    """JSON as Qwen's template writes it (spaces after `,` and `:`, no escapes); what is not a number becomes null."""
    try:
        return _ENCODER.encode(value)
    except ValueError:
        return _ENCODER.encode(_finite(value))


def _finite(value: Any) -> Any:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: _finite(item) for key, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
        case _:
            return value


_CONTROL_TOKEN = re.compile(r"<\|(im_start|im_end|endoftext)\|>")


def clean_text(text: str) -> str:
    """Valid Unicode (lone surrogates become U+FFFD) that holds no chat control token."""
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _CONTROL_TOKEN.sub(r"< |\1|>", text) if "<|" in text else text


_TOOLS_HEAD = (
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>"
)
_TOOLS_TAIL = (
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
    "<tool_call></tool_call> XML tags:\n<tool_call>\n"
    '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call><|im_end|>\n'
)


def render_chat(messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> str:
    """Render a chat that opens with a system message byte for byte as Qwen3's chat template does.

    Thoughts before the last user turn are left out, as the template does.
    """
    last_query = max((i for i, message in enumerate(messages) if message.role == "user"), default=len(messages))
    schemas = "".join("\n" + json.dumps(tool, ensure_ascii=False) for tool in tools)
    opening = f"\n\n{_TOOLS_HEAD}{schemas}{_TOOLS_TAIL}" if tools else "<|im_end|>\n"
    parts = [f"<|im_start|>system\n{messages[0].content}{opening}"]
    for i, message in enumerate(messages[1:], start=1):
        last = i == len(messages) - 1
        if message.role == "assistant":
            parts.append(_render_assistant(message, after_query=i > last_query, last=last))
        elif message.role == "tool":
            opens = messages[i - 1].role != "tool"
            closes = last or messages[i + 1].role != "tool"
            parts.append("<|im_start|>user" if opens else "")
            parts.append(f"\n<tool_response>\n{message.content}\n</tool_response>")
            parts.append("<|im_end|>\n" if closes else "")
        else:
            parts.append(f"<|im_start|>{message.role}\n{message.content}<|im_end|>\n")
    return "".join(parts)


def _render_assistant(message: Message, *, after_query: bool, last: bool) -> str:
    think, text = "", message.content
    if "</think>" in text:
        think = text.split("</think>")[0].rstrip("\n").split("<think>")[-1].lstrip("\n")
        text = text.split("</think>")[-1].lstrip("\n")
    head = text
    if after_query and (last or think):
        stripped = think.strip("\n")
        head = f"<think>\n{stripped}\n</think>\n\n" + text.lstrip("\n")
    blocks = [
        f'<tool_call>\n{{"name": "{use.function.name}", "arguments": {use.function.arguments}}}\n</tool_call>'
        for use in message.tool_calls or ()
    ]
    separator = "\n" if text and blocks else ""
    return f"<|im_start|>assistant\n{head}{separator}{chr(10).join(blocks)}<|im_end|>\n"
