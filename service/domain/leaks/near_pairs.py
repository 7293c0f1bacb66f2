"""All near-equal pairs among many texts, exactly: an inverted index over rare grams, every candidate confirmed.

A search, not a rule: `queries.near_equal` says what counts, and this finds all of it. Nothing is sampled, so recall is
1. Grams are ordered rarest first; if two texts reach threshold t, more than a share t of each one's weight is common
to both, so they meet within the grams that hold the first 1 - t of each one's weight (the prefix).
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.domain.leaks.queries import QueryRule, Similarity, informative

Ints: TypeAlias = NDArray[np.int64]
Small: TypeAlias = NDArray[np.int32]

BATCH_PAIRS = 250_000
"""Candidate pairs held at once; bounds memory, never the result."""


class NearPair(NamedTuple):
    """Two positions in the given texts (a < b) and how alike they are."""

    a: int
    b: int
    similarity: Similarity


@dataclass(frozen=True, slots=True)
class _Index:
    """Grams of all texts, text by text, each text's rarest first. Arrays of shape (postings,) unless stated."""

    gram: Small
    """Rank of the gram by rarity."""
    weight: Small
    owner: Small
    start: Ints
    """Shape (texts + 1,): where each text's grams start."""
    total: Ints
    """Shape (texts,): weight of each text."""
    tail: Small
    """Weight of this gram and those after it in its text."""


def near_pairs(texts: Sequence[str], rule: QueryRule) -> list[NearPair]:
    """Find every pair of normalised texts that the rule calls near-equal, sorted by position.

    Args:
        texts: distinct normalised texts; those with too few informative words are never paired.
        rule: weights and threshold; the threshold must be above 0.
    """
    eligible = [at for at, text in enumerate(texts) if text and informative(text, rule) >= rule.informative_tokens]
    if len(eligible) < 2:
        return []
    index = _build_index([texts[at] for at in eligible], rule)
    found: dict[tuple[int, int], Similarity] = {}
    for left, right in _candidates(index, rule.threshold):
        shared = _shared_weight(index, left, right)
        union = index.total[left] + index.total[right] - shared
        near = np.flatnonzero(shared >= rule.threshold * union)
        for at in near:
            a, b = eligible[left[at]], eligible[right[at]]
            found[a, b] = Similarity(int(shared[at]), int(union[at]))
    return [NearPair(a, b, similarity) for (a, b), similarity in sorted(found.items())]


def _build_index(texts: Sequence[str], rule: QueryRule) -> _Index:
    """Index texts of at least one word each."""
    keys, weight_of = _postings(texts, rule)
    gram = keys % weight_of.size
    by_rarity = np.argsort(np.bincount(gram, minlength=weight_of.size), kind="stable")
    rank = np.empty_like(by_rarity)
    rank[by_rarity] = np.arange(weight_of.size)
    keys += rank[gram] - gram
    keys.sort()
    owner, gram = keys // weight_of.size, keys % weight_of.size
    weight = weight_of[by_rarity][gram]
    start = np.searchsorted(owner, np.arange(len(texts) + 1))
    running = np.concatenate([[0], np.cumsum(weight)])
    total = np.diff(running[start])
    tail = running[start[owner + 1]] - running[:-1]
    return _Index(
        gram.astype(np.int32), weight.astype(np.int32), owner.astype(np.int32), start, total, tail.astype(np.int32)
    )


def _postings(texts: Sequence[str], rule: QueryRule) -> tuple[Ints, Ints]:
    """Every (text, gram) once, spelled text * grams + gram and sorted; and each gram's weight, shape (grams,)."""
    vocabulary: defaultdict[str, int] = defaultdict(count().__next__)
    words = chain.from_iterable(map(str.split, texts))
    flat = np.fromiter(map(vocabulary.__getitem__, words), dtype=np.int64)
    owner = np.repeat(np.arange(len(texts)), [text.count(" ") + 1 for text in texts])
    inside = np.flatnonzero(owner[1:] == owner[:-1])
    size = len(vocabulary)
    pairs, place = np.unique(flat[inside] * size + flat[inside + 1], return_inverse=True)
    weight = np.array([rule.word_weight(word) for word in vocabulary], dtype=np.int64)
    weight_of = np.concatenate([weight, weight[pairs // size] * weight[pairs % size] // rule.rare_weight])
    keys = np.concatenate([owner * weight_of.size + flat, owner[inside] * weight_of.size + size + place])
    return _distinct(keys), weight_of


def _distinct(keys: Ints) -> Ints:
    """Sorted, each once. By sorting: on keys that are mostly different it beats the hashing of `np.unique`."""
    ordered = np.sort(keys)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if ordered.size else ordered


def _candidates(index: _Index, threshold: float) -> Iterator[tuple[Ints, Ints]]:
    """Batches of distinct pairs (left < right) that share a prefix gram and could reach the threshold."""
    prefix = np.flatnonzero(index.tail >= threshold * index.total[index.owner])
    by_gram = prefix[np.argsort(index.gram[prefix], kind="stable")]
    gram = index.gram[by_gram]
    ends = np.searchsorted(gram, gram, side="right")
    partners = ends - np.arange(by_gram.size) - 1
    reached = np.cumsum(partners)
    begin = 0
    while begin < by_gram.size:
        base = reached[begin - 1] if begin else 0
        stop = max(begin + 1, int(np.searchsorted(reached, base + BATCH_PAIRS, side="right")))
        yield _pairs(index, by_gram, np.arange(begin, stop), partners[begin:stop], threshold)
        begin = stop


def _pairs(index: _Index, by_gram: Ints, rows: Ints, partners: Ints, threshold: float) -> tuple[Ints, Ints]:
    """Pair each row with its partners, the rows right after it; drop pairs that cannot reach the threshold."""
    one = np.repeat(rows, partners)
    step = np.arange(one.size) - np.repeat(np.cumsum(partners) - partners, partners) + 1
    x, y = by_gram[one], by_gram[one + step]
    left, right = index.owner[x].astype(np.int64), index.owner[y].astype(np.int64)
    # Where two texts first meet, all they share lies in both tails; J >= t needs (1 + t) * shared >= t * (sum of both).
    most = np.minimum(index.tail[x], index.tail[y])
    possible = (1 + threshold) * most >= threshold * (index.total[left] + index.total[right])
    keys = _distinct(left[possible] * index.total.size + right[possible])
    return keys // index.total.size, keys % index.total.size


def _shared_weight(index: _Index, left: Ints, right: Ints) -> Ints:
    """Weight of the grams each pair has in common; shape (pairs,)."""
    pair = np.arange(left.size)
    texts, pairs = np.concatenate([left, right]), np.concatenate([pair, pair])
    lengths = index.start[texts + 1] - index.start[texts]
    offset = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    at = np.repeat(index.start[texts], lengths) + offset
    width = int(index.gram.max()) + 1
    keys = np.repeat(pairs, lengths) * width + index.gram[at]
    order = np.argsort(keys, kind="stable")
    twice = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    shared = np.zeros(left.size, dtype=np.int64)
    np.add.at(shared, keys[order][twice] // width, index.weight[at[order][twice]])
    return shared
