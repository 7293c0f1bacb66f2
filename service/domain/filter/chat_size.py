"""Upper bounds on a chat's tokens, cheap enough to ask of every row.

Not a token count and not an estimate: a chat whose bound is within the budget is within it; any other chat must be
rendered, bounded more closely, and counted where that does not tell either.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from service.domain.rows.chat import Message, render_chat
from service.domain.rows.prompts import PUBLISHED_TOOLS, REFERENCE_AGENT_TOOLS, SYSTEM_PROMPTS, offered_names
from service.domain.trajectory import ExecutionKind, Step, Trajectory

TURN_TOKENS = 64
"""More than the template writes around the words of a step, and than it writes around a call and its result, where
each tag is one token and every other byte may be one."""

PAIRING_LETTERS = b"abcdefghilmnoprstuw"
"""Any two of these letters, and a space before any one of them, are one token of Qwen's vocabulary."""

_LIKE_EXPONENT = re.compile(rb"e[-+0-9]")
_EXPONENT = re.compile(rb"[0-9]e[-+0-9]")
_PAIRS = np.zeros(256, np.int8)
_PAIRS[list(PAIRING_LETTERS)] = 1
_NO = np.zeros(1, np.int8)


def tokens_of_parts_at_most(
    trajectory: Trajectory, spelled: bytes, enough: int, count_tokens: Callable[[str], int]
) -> int | None:
    """Bound the tokens of a trajectory's chat without rendering it: its opening counted, all else by its bytes.

    Args:
        trajectory: what happened.
        spelled: arguments and results of all calls as compact JSON, anything but digits and letters between them.
        enough: a bound that is no higher need be no closer.
        count_tokens: exact tokens of a text; asked once for each opening.

    Returns:
        The bound; None where there is none: tools with schemas of their own, or numbers that JSON writers spell
        differently.
    """
    names = offered_names(trajectory.kind, trajectory.tool_calls)
    if names is None or (_LIKE_EXPONENT.search(spelled) and _EXPONENT.search(spelled)):
        return None
    size = _opening(trajectory.kind, names, count_tokens) + _text_bytes(trajectory.query) + _spaced_bytes(spelled)
    for reply in trajectory.inferences:
        size += _text_bytes(reply.content)
    for step in trajectory.steps:
        size += _step_bytes(step)
    # What an escape adds to a run of letters is less than what it adds to the bytes.
    return size if size <= enough else size - _sure_pairs(spelled)


@lru_cache(maxsize=64)
def _opening(kind: ExecutionKind, names: frozenset[str], count_tokens: Callable[[str], int]) -> int:
    """Tokens of the system's turn, which other turns follow, and of the opening of the user's."""
    opening = (Message(role="system", content=SYSTEM_PROMPTS[kind]), Message(role="user", content=""))
    added = [tool for tool in REFERENCE_AGENT_TOOLS if tool["function"]["name"] in names]
    return count_tokens(render_chat(opening, [*PUBLISHED_TOOLS, *added]))


def tokens_at_most(chat: str, count_tokens: Callable[[str], int]) -> int:
    """Bound the tokens of a rendered chat, some four times as fast as they can be counted.

    Tokens never outnumber bytes, and some bytes are sure to share one. The opening is nearly the same in all chats,
    and counted once.
    """
    cut = chat.find("<|im_start|>", 1)
    opening = _counted(chat[:cut], count_tokens) if cut > 0 else 0
    rest = chat[max(cut, 0) :]
    text = (rest if rest.isascii() else unicodedata.normalize("NFC", rest)).encode(errors="replace")
    return opening + len(text) - _sure_pairs(text)


def _sure_pairs(text: bytes) -> int:
    """By how much the bytes of a text are sure to outnumber its tokens.

    Within a word no two tokens stand beside each other that would make one together, so that a run of n pairing
    letters holds at least (n + 1) // 3 tokens fewer, and one of n after a space (n + 2) // 3. An apostrophe may cut off
    the first two letters of what follows.
    """
    codes = np.frombuffer(text, np.uint8)
    turns = np.flatnonzero(np.diff(_PAIRS[codes], prepend=_NO, append=_NO))
    starts, ends = turns[::2], turns[1::2]
    is_spaced = codes[starts - 1] == ord(" ")
    return int(((ends - starts + 1 + is_spaced) // 3).sum()) - text.count(b"'")


@lru_cache(maxsize=64)
def _counted(opening: str, count_tokens: Callable[[str], int]) -> int:
    return count_tokens(opening)


def _step_bytes(step: Step) -> int:
    size = TURN_TOKENS + _text_bytes(step.think) + _text_bytes(step.response) + _text_bytes(step.shopper_message)
    for call in step.calls:
        size += TURN_TOKENS + _text_bytes(call.name) + _text_bytes(call.error_code)
    return size


def _spaced_bytes(text: bytes) -> int:
    """JSON as the template writes it, with a space after each comma and colon and control tokens broken up."""
    return len(text) + text.count(b",") + text.count(b":") + 2 * text.count(b"<|")


def _text_bytes(text: str | None) -> int:
    if not text:
        return 0
    size = len(text) if text.isascii() else len(text.encode(errors="replace"))
    return size + 2 * text.count("<|") if "<|" in text else size
