"""The near-equal rule a second time, for the audit: every train text against every eval text, no index, no shortcuts.

Deliberately not `queries` or `near_pairs`, and importing neither: a fault in the clustering must not hide itself. Only
the frozen word table is common to both, because it is part of the rule and not of the code.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.domain.leaks.vocabulary import COMMON_WORDS, FUNCTION_WORDS


@dataclass(frozen=True, slots=True)
class TextRule:
    """The measured numbers of the near-equal rule."""

    threshold: float = 0.50
    informative_tokens: int = 4
    voucher_opening: str = "my budget is only"
    characters: int = 10_000


class _Text(NamedTuple):
    raw: str
    words: list[str]
    weights: dict[str, float]
    """Weight of each word and of each two neighbouring words, joined by a space."""
    informative: bool


def equal_texts(train: Iterable[str], held: Iterable[str], rule: TextRule) -> Iterator[tuple[str, str]]:
    """Pairs (train text, eval text) that say the same words, numbers aside."""
    spelled: dict[str, list[str]] = {}
    for text in train:
        spelled.setdefault(" ".join(_words(text, rule)), []).append(text)
    for text in held:
        spelling = " ".join(_words(text, rule))
        for other in spelled.get(spelling, []) if spelling else []:
            yield other, text


def near_texts(train: Iterable[str], held: Iterable[str], rule: TextRule) -> Iterator[tuple[str, str]]:
    """Pairs (train text, eval text) at or above the threshold, equal ones left out."""
    known = [text for text in (_read(raw, rule) for raw in train) if text.informative]
    if not known:
        return
    column: dict[str, int] = {}
    for text in known:
        for gram in text.weights:
            column.setdefault(gram, len(column))
    columns = np.array([column[gram] for text in known for gram in text.weights])
    starts = np.cumsum([0] + [len(text.weights) for text in known[:-1]])
    totals = np.array([sum(text.weights.values()) for text in known])
    for raw in held:
        text = _read(raw, rule)
        if not text.informative:
            continue
        shared = np.add.reduceat(_row(text, column)[columns], starts)
        union = totals + sum(text.weights.values()) - shared
        for at in np.flatnonzero(shared / union >= rule.threshold):
            if known[at].words != text.words:
                yield known[at].raw, raw


def _row(text: _Text, column: dict[str, int]) -> NDArray[np.float64]:
    """The text's weights over the columns of the train grams; zero where it lacks the gram."""
    row = np.zeros(len(column))
    for gram, weight in text.weights.items():
        if gram in column:
            row[column[gram]] = weight
    return row


def _read(raw: str, rule: TextRule) -> _Text:
    words = _words(raw, rule)
    # All weights are whole hundredths (10 * 10 / 100 = 1 at the least), so sums are exact in any order.
    single = {word: _weight(word) for word in words}
    double = {f"{a} {b}": single[a] * single[b] / 100 for a, b in pairwise(words)}
    telling = sum(weight >= 50 for weight in single.values())
    return _Text(raw, words, {**single, **double}, telling >= rule.informative_tokens)


def _words(raw: str, rule: TextRule) -> list[str]:
    """Lower-case words without the voucher block, every number as 0."""
    text = " ".join(unicodedata.normalize("NFKC", raw[: rule.characters]).casefold().split())
    before, opening, _ = text.partition(rule.voucher_opening)
    kept = before if opening and before else text
    return re.findall(r"\w+", re.sub(r"\d+([.,]\d+)*", "0", kept))


def _weight(word: str) -> float:
    """Weight of one word in hundredths: 100, or 50 if common in shops, or 10 for numbers and grammar."""
    if word == "0" or word in FUNCTION_WORDS:
        return 10.0
    return 50.0 if word in COMMON_WORDS else 100.0
