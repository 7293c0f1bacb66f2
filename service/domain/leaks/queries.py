"""When two query texts ask for the same thing: the normalisation, the near-equal rule, and all pairs it joins.

Not the graph (`leakage`), and it never sees who wrote a text. Similarities are ratios of whole numbers, so a pair is
judged alike on every machine, alone or among a million others.
"""

import re
import unicodedata
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from service.domain.leaks.vocabulary import COMMON_WORDS, FUNCTION_WORDS

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_WORD = re.compile(r"\w+")
_SPACED = {code: " " for code in range(128) if not _WORD.match(chr(code))}
"""What parts words in ASCII: most texts are, and are three times as fast to part by a table."""
MASK = "0"
"""Stands for any number."""


@dataclass(frozen=True, slots=True)
class QueryRule:
    """The near-equal rule and its frozen weights, in hundredths."""

    threshold: float = 0.50
    """Weighted Jaccard similarity from which two texts are near-equal."""
    informative_tokens: int = 4
    """Distinct words, function words and numbers apart, that a text needs to be near-equal to anything."""
    voucher_opening: str = "my budget is only"
    """Where the voucher block starts; it is cut, because its numbers are redrawn and its wording is fixed."""
    max_characters: int = 10_000
    """Texts are read this far (the longest known query has 989)."""
    function_weight: int = 10
    common_weight: int = 50
    rare_weight: int = 100
    """Weight of every word that is in neither class."""
    mask_weight: int = 10
    function_words: frozenset[str] = FUNCTION_WORDS
    common_words: frozenset[str] = COMMON_WORDS

    def word_weight(self, word: str) -> int:
        """Weight of one word, in hundredths."""
        if word == MASK:
            return self.mask_weight
        if word in self.function_words:
            return self.function_weight
        return self.common_weight if word in self.common_words else self.rare_weight

    def bigram_weight(self, first: int, second: int) -> int:
        """Weight of two words in a row, from their own weights: the product, 100 being one."""
        return first * second // self.rare_weight


class Similarity(NamedTuple):
    """Weight two texts share, and weight of both together."""

    shared: int
    union: int

    @property
    def ratio(self) -> float:
        """Weighted Jaccard similarity, 0 to 1."""
        return self.shared / self.union if self.union else 0.0


def normalise(text: str, rule: QueryRule) -> str:
    """The words of a text, a space between them: case and width folded, numbers masked, no voucher block.

    White space and punctuation only part words. Two texts are *equal* when this is equal. A text that is
    nothing but a voucher block keeps it.
    """
    head = text[: rule.max_characters]
    folded = head.lower() if head.isascii() else unicodedata.normalize("NFKC", head).casefold()
    if rule.voucher_opening.rpartition(" ")[2] in folded:  # few texts need their white space looked at
        folded = " ".join(folded.split())
        cut = folded.find(rule.voucher_opening)
        folded = folded[:cut] if cut > 0 else folded
    masked = _NUMBER.sub(MASK, folded)
    return " ".join(masked.translate(_SPACED).split() if masked.isascii() else _WORD.findall(masked))


def informative(text: str, rule: QueryRule) -> int:
    """Number of distinct words of a normalised text that say something: neither grammar nor numbers."""
    return len(set(text.split()) - rule.function_words - {MASK})


def similarity(a: str, b: str, rule: QueryRule) -> Similarity:
    """Compare two normalised texts over their sets of words and of pairs of neighbouring words."""
    left, right = _grams(a, rule), _grams(b, rule)
    shared = sum(weight for gram, weight in left.items() if gram in right)
    return Similarity(shared, sum(left.values()) + sum(right.values()) - shared)


def near_equal(a: str, b: str, rule: QueryRule) -> bool:
    """Whether two raw texts ask for the same thing, equal texts included. Symmetric."""
    left, right = normalise(a, rule), normalise(b, rule)
    if left == right:
        return bool(left)
    if min(informative(left, rule), informative(right, rule)) < rule.informative_tokens:
        return False
    shared, union = similarity(left, right, rule)
    return shared >= rule.threshold * union


def _grams(text: str, rule: QueryRule) -> dict[tuple[str, ...], int]:
    words = text.split()
    weight = {word: rule.word_weight(word) for word in words}
    grams: dict[tuple[str, ...], int] = {(word,): value for word, value in weight.items()}
    grams.update({(a, b): rule.bigram_weight(weight[a], weight[b]) for a, b in pairwise(words)})
    return grams
