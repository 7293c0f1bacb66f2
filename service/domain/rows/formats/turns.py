"""What several formats need of a row's messages: thoughts apart from words, arguments as values. Spells no format."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from service.domain.rows.chat import Message, ToolUse


class Words(NamedTuple):
    """What an assistant message thinks and what it says."""

    think: str
    text: str


def words(message: Message) -> Words:
    """Take a message's thoughts out of its content."""
    head, closed, tail = message.content.partition("</think>")
    if not closed or not head.startswith("<think>"):
        return Words("", message.content)
    return Words(head.removeprefix("<think>").strip("\n"), tail.removeprefix("\n\n"))


def arguments(use: ToolUse) -> Any:
    """A call's arguments as a value; the text itself where it is no JSON, or nests deeper than can be read."""
    try:
        return msgspec.json.decode(use.function.arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
        return use.function.arguments


def assistant_turns(messages: Sequence[Message]) -> Iterator[tuple[int, Message]]:
    """Positions and messages of the assistant's turns."""
    return ((place, message) for place, message in enumerate(messages) if message.role == "assistant")


def is_answered(message: Message) -> bool:
    """Whether a tool message holds a result, and not nothing or an error alone."""
    if not message.content.strip():
        return False
    try:
        told = msgspec.json.decode(message.content)
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
        return True
    return not (isinstance(told, dict) and told.keys() == {"error"})


def as_chat(message: Message) -> dict[str, Any]:
    """A message as chat templates read it: without what only says how to train on it."""
    plain: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        plain["tool_calls"] = msgspec.to_builtins(message.tool_calls)
    if message.tool_call_id is not None:
        plain["tool_call_id"] = message.tool_call_id
    return plain
