"""The shape of a source as a set of numbers, by which near-duplicates of agents are found. Holds none of its text.

Names, numbers and texts are all spelled alike before anything is compared, so that renaming and rewording change
nothing. Not a scan: what the code does plays no part.
"""

import hashlib
import io
import keyword
import tokenize
from collections import deque
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from service.domain.agent_code.scanner import files, parse

SHINGLE_TOKENS = 16
WINDOW = 4
"""Of so many shingles in a row, the one with the smallest number is kept."""
_LAYOUT = frozenset(
    {
        *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
        *(tokenize.ENCODING, tokenize.ENDMARKER),
    }
)
Sketch = npt.NDArray[np.uint64]


def sketch(source: bytes) -> Sketch:
    """Winnowed shingles of a source, sorted, each once. Empty: it cannot be read.

    No shingle goes from one statement of the file into the next, so that their order plays no part.
    """
    blocks = [block for text in files(source) if parse(text) is not None for block in _blocks(text)]
    return np.unique(np.array([number for block in blocks for number in _winnowed(_shingles(block))], dtype=np.uint64))


def _shingles(block: list[str]) -> list[int]:
    """Of a statement in order; one that is shorter than a shingle is one by itself."""
    places = range(max(1, len(block) - SHINGLE_TOKENS + 1))
    return [_number(block[place : place + SHINGLE_TOKENS]) for place in places]


def _number(shingle: list[str]) -> int:
    return int.from_bytes(hashlib.blake2b(" ".join(shingle).encode(), digest_size=8).digest(), "big")


def _winnowed(numbers: list[int]) -> Iterator[int]:
    """The smallest of every window; all of them where there is not even one window."""
    if len(numbers) < WINDOW:
        yield from numbers
        return
    smallest: deque[int] = deque()
    for place, number in enumerate(numbers):
        while smallest and numbers[smallest[-1]] >= number:
            smallest.pop()
        smallest.append(place)
        if smallest[0] <= place - WINDOW:
            smallest.popleft()
        if place >= WINDOW - 1:
            yield numbers[smallest[0]]


def _blocks(text: bytes) -> list[list[str]]:
    """The tokens of each statement of the file, of a function or class with all that is in it."""
    found: list[list[str]] = []
    depth, starts = 0, True
    try:
        for token in tokenize.tokenize(io.BytesIO(text).readline):
            depth += (token.type == tokenize.INDENT) - (token.type == tokenize.DEDENT)
            if token.type == tokenize.NEWLINE:
                starts = True
            elif token.type not in _LAYOUT:
                if starts and depth == 0:
                    found.append([])
                starts = False
                found[-1].append(_plain(token))
    except (SyntaxError, tokenize.TokenError):
        return []
    return found


def _plain(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.NAME:
        return token.string if keyword.iskeyword(token.string) else "N"
    if token.type == tokenize.NUMBER:
        return "0"
    return "S" if token.type == tokenize.STRING else token.string
