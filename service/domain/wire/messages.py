"""Chat rows as training sets write them: `messages` in OpenAI's style, read as turns. Only names and types of the wire.

Calls stand in `tool_calls` (nested under `function` or flat), or in `<tool_call>` blocks of the text; thoughts in
`reasoning_content`, or before `</think>`. `tools` is not read: schemas are `prompts`' business.
"""

import re
from typing import Any

from service.domain.actions import Inference
from service.domain.attribution.replies import CLOSING, OPENING, calls_in
from service.domain.wire.conversation import Said, Told, Turns
from service.domain.wire.lenient import Defect, arguments, parsed, read, words

_CALL_BLOCK = re.compile(f"{re.escape(OPENING)}.*?(?:{re.escape(CLOSING)}|\\Z)", re.DOTALL)
_RESULT_BLOCK = re.compile(r"<tool_response>(.*?)</tool_response>", re.DOTALL)


def decode(payload: bytes) -> Told:
    """Read one row. Never raises."""
    value, defects = read(payload)
    turns = Turns(defects)
    if not isinstance(value, dict):
        if Defect.MALFORMED_JSON not in defects:
            turns.flaw(Defect.NOT_AN_OBJECT)
        return turns.told()
    messages = value.get("messages")
    if not isinstance(messages, list):
        turns.flaw(Defect.BAD_STEP)
        return turns.told()
    for message in messages:
        if turns.full:
            break
        _tell(message if isinstance(message, dict) else {}, turns)
    return turns.told()


def _tell(message: dict[str, Any], turns: Turns) -> None:
    text = words(message.get("content"))
    match message.get("role"):
        case "user":
            _user(text or "", turns)
        case "assistant":
            _assistant(message, text or "", turns)
        case "tool" | "function":
            call_id = message.get("tool_call_id")
            value = message.get("content") if text is None else parsed(text)
            turns.result(call_id if isinstance(call_id, str) else "", value)
            return  # a tool's content may be of any type
        case "system" | "developer":
            pass
        case _:
            turns.flaw(Defect.BAD_STEP)
    if text is None:
        turns.flaw(Defect.BAD_STEP)


def _user(text: str, turns: Turns) -> None:
    """A user's turn; rendered chats put the answers of tools into one, each in a block of its own."""
    results = _RESULT_BLOCK.findall(text) if "</tool_response>" in text else []
    for result in results:
        if turns.full:
            return
        turns.result("", parsed(result.strip()))
    said = _RESULT_BLOCK.sub("", text).strip() if results else text
    if said or not results:
        turns.user(said)


def _assistant(message: dict[str, Any], text: str, turns: Turns) -> None:
    reasoning = message.get("reasoning_content")
    think = reasoning if isinstance(reasoning, str) else ""
    if "</think>" in text:
        head, _, text = text.partition("</think>")
        think = think or head.strip().removeprefix("<think>").strip()
    native = message.get("tool_calls")
    calls = [_call(entry, turns) for entry in native] if isinstance(native, list) else []
    if native is not None and not isinstance(native, list):
        turns.flaw(Defect.BAD_STEP)
    if not calls and OPENING in text:
        found = calls_in(Inference(timestamp_ms=0, content=text))
        calls = [Said(call.name, arguments(call.arguments)) for call in found.calls]
        if found.unread or not calls:
            turns.flaw(Defect.BAD_STEP)
        text = _CALL_BLOCK.sub("", text)
    turns.agent(think=think, response=text.strip(), calls=[call for call in calls if call is not None])


def _call(entry: Any, turns: Turns) -> Said | None:
    inner = entry.get("function", entry) if isinstance(entry, dict) else None
    if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
        turns.flaw(Defect.BAD_STEP)
        return None
    call_id = entry.get("id")
    return Said(inner["name"], arguments(inner.get("arguments")), call_id if isinstance(call_id, str) else "")
