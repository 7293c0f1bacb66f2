"""The near-equal rule: what it ignores, what it weighs, and its symmetry."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.leaks.queries import QueryRule, informative, near_equal, normalise, similarity

RULE = QueryRule()
VOUCHER = "\n\nMy budget is only `425`, but I have a voucher with the following rules:\n1. It applies to all products."


def test_spacing_case_punctuation_width_and_numbers_are_ignored() -> None:
    assert normalise("  Find\t\uff21 1,200.50 mm\n\nKettle!", RULE) == "find a 0 mm kettle"


def test_the_voucher_block_is_cut() -> None:
    assert normalise("A kettle." + VOUCHER, RULE) == "a kettle"


def test_a_text_that_is_only_a_voucher_block_keeps_it() -> None:
    assert normalise(VOUCHER, RULE).startswith("my budget is only 0 but")


def test_weights_are_worked_out_by_hand() -> None:
    # Words: red 50 (common), kettle 100, tripod 100. Neighbours: red kettle 50 * 100 / 100 = 50, red tripod 50.
    # Shared: red = 50. Union: 50 + 100 + 50 + 100 + 50 = 350.
    assert similarity("red kettle", "red tripod", RULE) == (50, 350)
    # Function words and masks weigh 10, so two of them in a row weigh 10 * 10 / 100 = 1.
    assert similarity("the 0", "the 0", RULE) == (21, 21)


def test_fewer_than_four_informative_words_are_near_to_nothing_but_their_equal() -> None:
    short, longer = "a foldable magnetic kettle", "a foldable magnetic kettle please"
    assert informative(normalise(short, RULE), RULE) == 3
    assert not near_equal(short, longer, RULE)
    assert near_equal(short, short.upper() + "!", RULE)
    assert near_equal("a foldable magnetic vintage kettle", "a foldable magnetic vintage kettle please", RULE)


def test_an_empty_text_is_near_to_nothing() -> None:
    assert not near_equal("", "...", RULE)


@given(st.text(max_size=60), st.text(max_size=60))
def test_nearness_is_symmetric(a: str, b: str) -> None:
    assert near_equal(a, b, RULE) == near_equal(b, a, RULE)


@given(
    st.lists(st.sampled_from(["the", "red", "kettle", "foldable", "tripod", "0", "violin"]), min_size=1, max_size=12)
)
def test_a_text_is_wholly_like_itself(words: list[str]) -> None:
    shared, union = similarity(" ".join(words), " ".join(words), RULE)
    assert shared == union > 0


def edited(query: str) -> dict[str, str]:
    """One text in the guises a paraphrase by edit gives it; a voucher block stays where it is, at the end."""
    body, block, rules = query.partition("\n\nMy budget is only")
    clauses = re.split(r"(?<=[,;.])\s+", body.strip())
    guises = {
        "white space": body.replace(" ", " \n "),
        "punctuation": re.sub(r"[,.;:!?()]", "", body),
        "numbers": re.sub(r"\d+", "777", body),
        "voucher": body + VOUCHER,
        "clause order": " ".join(reversed(clauses)),
        "price wording": re.sub(r"(priced |costing )?(above|over) (\d+) (pesos|PHP)", r"at \3 php or more", body),
        "opening": re.sub(r"^(Looking for|Show me|Find)", "Can you help me find", body),
    }
    return {name: text + block + rules for name, text in guises.items()}


GUISES = list(edited(""))
EQUAL_GUISES = GUISES[:4]
"""Normalisation alone undoes these, so even the shortest text keeps its place."""


@pytest.mark.parametrize("guise", GUISES)
def test_a_query_is_near_equal_to_its_edits(guise: str, queries: list[str]) -> None:
    assert [query for query in queries if not near_equal(query, edited(query)[guise], RULE)] == []


@pytest.mark.shared
@pytest.mark.parametrize("guise", GUISES)
def test_recorded_queries_are_near_equal_to_their_edits(guise: str, benchmark_queries: list[str]) -> None:
    long_enough = [
        query
        for query in benchmark_queries
        if guise in EQUAL_GUISES or informative(normalise(query, RULE), RULE) >= RULE.informative_tokens
    ]
    # 37 of the 900 have fewer than four informative words.
    assert len(long_enough) == (900 if guise in EQUAL_GUISES else 863)
    assert [query for query in long_enough if not near_equal(query, edited(query)[guise], RULE)] == []
