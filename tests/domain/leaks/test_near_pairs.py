"""The search finds exactly what comparing every pair by the rule finds."""

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.leaks import near_pairs as module
from service.domain.leaks.near_pairs import NearPair, near_pairs
from service.domain.leaks.queries import QueryRule, informative, normalise, similarity

RULE = QueryRule()
WORDS = ["the", "of", "0", "red", "steel", "kettle", "tent", "drill", "violin", "lantern", "blender", "stapler"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), max_size=25, unique=True)


def by_comparing_all(texts: list[str], rule: QueryRule) -> list[NearPair]:
    telling = [informative(text, rule) >= rule.informative_tokens for text in texts]
    pairs = []
    for a, b in combinations(range(len(texts)), 2):
        alike = similarity(texts[a], texts[b], rule)
        if telling[a] and telling[b] and alike.shared >= rule.threshold * alike.union:
            pairs.append(NearPair(a, b, alike))
    return pairs


@settings(max_examples=200)
@given(TEXTS, st.sampled_from([0.25, 0.5, 0.75, 1.0]), st.integers(0, 4))
def test_it_equals_the_comparison_of_all_pairs(texts: list[str], threshold: float, tokens: int) -> None:
    rule = replace(RULE, threshold=threshold, informative_tokens=tokens)
    assert near_pairs(texts, rule) == by_comparing_all(texts, rule)


def test_generated_queries_have_the_pairs_comparison_finds(queries: list[str]) -> None:
    texts = sorted({normalise(query, RULE) for query in queries})
    expected = by_comparing_all(texts, RULE)
    assert len(expected) > 10
    assert near_pairs(texts, RULE) == expected


def test_batches_change_nothing(queries: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    texts = sorted({normalise(query, RULE) for query in queries})
    whole = near_pairs(texts, RULE)
    monkeypatch.setattr(module, "BATCH_PAIRS", 7)
    assert near_pairs(texts, RULE) == whole


def test_nothing_in_nothing_out() -> None:
    assert near_pairs([], RULE) == []
    assert near_pairs(["kettle"], RULE) == []
    assert near_pairs(["", "the 0"], replace(RULE, informative_tokens=0)) == []


@pytest.mark.shared
def test_no_two_recorded_queries_are_joined(benchmark_queries: list[str]) -> None:
    texts = sorted({normalise(query, RULE) for query in benchmark_queries})
    # 900 distinct queries, 404,550 pairs: all ask for different things.
    assert len(texts) == 900
    assert near_pairs(texts, RULE) == []
    nearest = near_pairs(texts, replace(RULE, threshold=0.35))
    # The closest two, hair clips that differ in colour and count, stay well below the threshold.
    assert max(pair.similarity.ratio for pair in nearest) == pytest.approx(0.450, abs=0.0005)
