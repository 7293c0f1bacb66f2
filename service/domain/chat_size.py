"""An upper bound on a rendered chat's bytes, cheap enough to ask of every row.

Not a token count and not an estimate: a chat whose bound is within the budget is within it, as tokens never outnumber
bytes; any other chat must be rendered and counted.
"""

import re
from collections.abc import Sequence

from service.domain.chat import Message, render_chat
from service.domain.prompts import PUBLISHED_TOOLS, SYSTEM_PROMPTS, tool_set
from service.domain.trajectory import ExecutionKind, Step, ToolCall, Trajectory

TURN_BYTES = 128
"""More than the template writes around a turn, and than it writes around a call."""

_EXPONENT = re.compile(rb"[0-9]e[-+0-9]")


def _opening_bytes(kind: ExecutionKind) -> int:
    opening = (Message(role="system", content=SYSTEM_PROMPTS[kind]), Message(role="user", content=""))
    return len(render_chat(opening, PUBLISHED_TOOLS).encode())


_OPENING_BYTES = {kind: _opening_bytes(kind) for kind in ExecutionKind}


def bytes_at_most(trajectory: Trajectory, spelled: Sequence[bytes]) -> int | None:
    """Bound the bytes of a trajectory's rendered chat.

    Args:
        trajectory: what happened.
        spelled: arguments and result of every call as compact JSON, in any order.

    Returns:
        The bound; None where there is none: tools with schemas of their own, or numbers that JSON writers spell
        differently.
    """
    if tool_set(trajectory.kind, trajectory.tool_calls).source != "published":
        return None
    if any(_EXPONENT.search(text) for text in spelled):
        return None
    said = sum(_text_bytes(reply.content) for reply in trajectory.inferences)
    return (
        _OPENING_BYTES[trajectory.kind]
        + _text_bytes(trajectory.query)
        + said
        + sum(_step_bytes(step) for step in trajectory.steps)
        + sum(_spaced_bytes(text) for text in spelled)
    )


def _step_bytes(step: Step) -> int:
    words = _text_bytes(step.think) + _text_bytes(step.response) + _text_bytes(step.shopper_message)
    return words + 2 * TURN_BYTES + sum(_call_bytes(call) for call in step.calls)


def _call_bytes(call: ToolCall) -> int:
    return 2 * TURN_BYTES + _text_bytes(call.name) + _text_bytes(call.error_code)


def _spaced_bytes(text: bytes) -> int:
    """JSON as the template writes it, with a space after each comma and colon and control tokens broken up."""
    return len(text) + text.count(b",") + text.count(b":") + 2 * text.count(b"<|")


def _text_bytes(text: str | None) -> int:
    if not text:
        return 0
    size = len(text) if text.isascii() else len(text.encode(errors="replace"))
    return size + 2 * text.count("<|")
