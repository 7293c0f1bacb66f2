"""All near-equal pairs among many texts, exactly: an inverted index over rare grams, every candidate confirmed.

A search, not a rule: `queries.near_equal` says what counts, and this finds all of it. Nothing is sampled, so recall is
1. Grams are ordered rarest first; if two texts reach threshold t, more than a share t of each one's weight is common
to both, so they meet within the grams that hold the first 1 - t of each one's weight (the prefix).
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.domain.leaks.queries import MASK, QueryRule, Similarity

Ints: TypeAlias = NDArray[np.int64]
Small: TypeAlias = NDArray[np.int32]

BATCH_PAIRS = 250_000
"""Candidate pairs held at once; bounds memory, never the result."""
TEXTS_SUMMED = 50_000
"""Likewise texts whose weights are summed at once."""


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
    text: Ints
    """Shape (texts,): position of each indexed text among all that were given."""


def near_pairs(texts: Sequence[str], rule: QueryRule) -> list[NearPair]:
    """Find every pair of normalised texts that the rule calls near-equal, sorted by position.

    Args:
        texts: distinct normalised texts; those with too few informative words are never paired.
        rule: weights and threshold; the threshold must be above 0.
    """
    index = _build_index(texts, rule)
    if index is None:
        return []
    found: dict[tuple[int, int], Similarity] = {}
    for left, right in _candidates(index, rule.threshold):
        shared = _shared_weight(index, left, right)
        union = index.total[left] + index.total[right] - shared
        near = np.flatnonzero(shared >= rule.threshold * union)
        for at in near:
            a, b = int(index.text[left[at]]), int(index.text[right[at]])
            found[a, b] = Similarity(int(shared[at]), int(union[at]))
    return [NearPair(a, b, similarity) for (a, b), similarity in sorted(found.items())]


def _build_index(texts: Sequence[str], rule: QueryRule) -> _Index | None:
    """Index the texts that may be paired; None where there are no two of them."""
    keys, weight_of, eligible = _postings(texts, rule)
    if eligible.size < 2:
        return None
    gram = _low(keys)
    by_rarity = np.argsort(np.bincount(gram, minlength=weight_of.size), kind="stable")
    rank = np.empty(by_rarity.size, np.int32)
    rank[by_rarity] = np.arange(by_rarity.size, dtype=np.int32)
    gram[:] = rank[gram]
    del rank
    keys.sort()
    gram, owner = gram.copy(), _high(keys).copy()
    del keys
    weight = weight_of[by_rarity][gram]
    start = np.searchsorted(owner, np.arange(eligible.size + 1))
    total = np.add.reduceat(weight, start[:-1], dtype=np.int64)
    return _Index(gram, weight, owner, start, total, _tails(weight, start), eligible)


def _tails(weight: Small, start: Ints) -> Small:
    """Weight of each posting and of those after it in its text; some texts at a time, to hold no long sums."""
    tails = np.empty_like(weight)
    for first in range(0, start.size - 1, TEXTS_SUMMED):
        bounds = start[first : first + TEXTS_SUMMED + 1]
        begin, end = int(bounds[0]), int(bounds[-1])
        running = np.concatenate([[0], np.cumsum(weight[begin:end], dtype=np.int64)])
        tails[begin:end] = np.repeat(running[bounds[1:] - begin], np.diff(bounds)) - running[:-1]
    return tails


def _postings(texts: Sequence[str], rule: QueryRule) -> tuple[Ints, Small, Ints]:
    """Every (text, gram) once, of texts that may be paired.

    Returns:
        Keys, sorted: the text's place among the eligible ones in the high half, the gram in the low half. Weight of
        each gram. Position of each eligible text among all.
    """
    vocabulary: defaultdict[str, int] = defaultdict(count().__next__)
    lengths = np.fromiter((text.count(" ") + 1 if text else 0 for text in texts), np.int32, len(texts))
    words = chain.from_iterable(map(str.split, texts))
    flat = np.fromiter(map(vocabulary.__getitem__, words), dtype=np.int32, count=int(lengths.sum()))
    owner = np.repeat(np.arange(len(texts), dtype=np.int32), lengths)
    of_word = np.array([rule.word_weight(word) for word in vocabulary], dtype=np.int32)
    silent = rule.function_words | {MASK}
    tells = np.array([word not in silent for word in vocabulary], dtype=bool)
    eligible = _eligible(flat, owner, tells, lengths, rule.informative_tokens)
    keep = np.zeros(len(texts), bool)
    keep[eligible] = True
    place = np.cumsum(keep, dtype=np.int32) - 1
    of_eligible = keep[owner]
    flat, owner = flat[of_eligible], place[owner[of_eligible]]
    inside = np.flatnonzero(owner[1:] == owner[:-1])
    neighbours = _joined(flat[inside], flat[inside + 1])
    order = np.argsort(neighbours)
    pairs = neighbours[order]
    del neighbours
    first = _first_of_each(pairs)
    pairs = pairs[first]
    ids = np.empty(order.size, np.int32)
    ids[order] = np.cumsum(first, dtype=np.int32) + np.int32(of_word.size - 1)
    del order, first
    weight = np.concatenate([of_word, of_word[_high(pairs)] * of_word[_low(pairs)] // rule.rare_weight])
    keys = np.empty(flat.size + ids.size, np.int64)
    _high(keys)[: flat.size], _low(keys)[: flat.size] = owner, flat
    _high(keys)[flat.size :], _low(keys)[flat.size :] = owner[inside], ids
    del flat, owner, inside, ids
    keys.sort()
    return keys[_first_of_each(keys)], weight.astype(np.int32), eligible


def _eligible(flat: Small, owner: Small, tells: NDArray[np.bool_], lengths: Small, least: int) -> Ints:
    """Positions of the texts that have a word, and so many distinct ones that say something."""
    telling = tells[flat]
    keys = _joined(owner[telling], flat[telling])
    keys.sort()
    counts = np.bincount(_high(keys)[_first_of_each(keys)], minlength=lengths.size)
    return np.flatnonzero((counts >= least) & (lengths > 0))


def _joined(high: Small, low: Small) -> Ints:
    """Two numbers in one, sorted by the first and then by the second."""
    keys = high.astype(np.int64)
    keys <<= 32
    keys |= low
    return keys


def _halves(keys: Ints) -> Small:
    return keys.view(np.int32).reshape(-1, 2)[:, :: 1 if sys.byteorder == "little" else -1]


def _low(keys: Ints) -> Small:
    """The second of the two numbers in each key, to be read and written in place."""
    return _halves(keys)[:, 0]


def _high(keys: Ints) -> Small:
    """The first, likewise."""
    return _halves(keys)[:, 1]


def _first_of_each(ordered: Ints) -> NDArray[np.bool_]:
    """Which of some sorted numbers are not the one before again."""
    first = np.ones(ordered.size, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first


def _distinct(keys: Ints) -> Ints:
    """Sorted, each once. By sorting: on keys that are mostly different it beats the hashing of `np.unique`."""
    ordered = np.sort(keys)
    return ordered[_first_of_each(ordered)]


def _candidates(index: _Index, threshold: float) -> Iterator[tuple[Ints, Ints]]:
    """Batches of distinct pairs (left < right) that share a prefix gram and could reach the threshold."""
    # Weights are whole, so that a tail reaches the threshold exactly where it reaches the next whole number.
    least = np.ceil(threshold * index.total).astype(np.int32)
    prefix = np.flatnonzero(index.tail >= np.repeat(least, np.diff(index.start))).astype(np.int32)
    by_gram = prefix[np.argsort(index.gram[prefix], kind="stable")]
    del prefix
    partners = _after_in_run(index.gram[by_gram])
    reached = np.cumsum(partners, dtype=np.int64)
    begin = 0
    while begin < by_gram.size:
        base = reached[begin - 1] if begin else 0
        stop = max(begin + 1, int(np.searchsorted(reached, base + BATCH_PAIRS, side="right")))
        yield _pairs(index, by_gram, np.arange(begin, stop), partners[begin:stop], threshold)
        begin = stop


def _after_in_run(ordered: Small) -> Small:
    """For each of some sorted numbers how many equal ones come after it."""
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    ends = np.append(starts[1:], ordered.size)
    last: Small = np.repeat((ends - 1).astype(np.int32), ends - starts)
    last -= np.arange(ordered.size, dtype=np.int32)
    return last


def _pairs(index: _Index, by_gram: Small, rows: Ints, partners: Small, threshold: float) -> tuple[Ints, Ints]:
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
