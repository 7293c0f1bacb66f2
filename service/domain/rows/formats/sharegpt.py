"""ShareGPT with tools, as LLaMA-Factory reads it: `human` and `gpt`, `function_call` and `observation` in turns.

The format knows one call and one observation a turn: several are a JSON list each. It knows no training marks, so rows
of which only some turns may be trained on lose that.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from service.domain.rows.chat import Message
from service.domain.rows.formats.turns import arguments
from service.domain.rows.records import Row


def document(row: Row) -> dict[str, Any]:
    """The row as one document."""
    system = "\n\n".join(message.content for message in row.messages if message.role == "system")
    spoken = [message for message in row.messages if message.role != "system"]
    return {
        "conversations": list(_turns(spoken)),
        "system": system,
        "tools": row.tools,
        "row_id": row.row_id,
        "trajectory_key": row.trajectory_key,
    }


def _turns(messages: Sequence[Message]) -> Iterator[dict[str, str]]:
    """Neighbouring messages of the user, and of tools, are one turn."""
    for role, group in groupby(messages, key=lambda message: message.role):
        together = list(group)
        if role == "assistant":
            yield from map(_assistant, together)
        elif role == "tool":
            contents = [message.content for message in together]
            yield _turn("observation", contents[0] if len(contents) == 1 else _text(contents))
        else:
            yield _turn("human", "\n\n".join(message.content for message in together))


def _assistant(message: Message) -> dict[str, str]:
    uses = message.tool_calls or ()
    if not uses:
        return _turn("gpt", message.content)
    calls = [{"name": use.function.name, "arguments": arguments(use)} for use in uses]
    called = _text(calls[0] if len(calls) == 1 else calls)
    return _turn("function_call", f"{message.content.rstrip()}\n{called}" if message.content.strip() else called)


def _turn(speaker: str, value: str) -> dict[str, str]:
    return {"from": speaker, "value": value}


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
