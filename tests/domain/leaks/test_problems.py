"""What agents say of a problem counts only from two families up."""

import random
from dataclasses import replace

import pytest

from service.domain.leaks.leakage import LEAK_1, ProblemFacts
from service.domain.leaks.problems import (
    ConfirmedQuery,
    FamilyReport,
    PublishedProblem,
    QueryReport,
    Win,
    confirm_query,
    describe,
    winner_ids,
)


def test_the_api_text_needs_no_witness() -> None:
    reports = [QueryReport("f1", "lies"), QueryReport("f2", "lies")]
    assert confirm_query(reports, "a red kite", LEAK_1) == ConfirmedQuery("a red kite", confirmed=True)


def test_two_families_confirm_a_text_and_one_does_not() -> None:
    one_family = [QueryReport("f1", "a red kite"), QueryReport("f1", "a red kite")]
    assert confirm_query(one_family, None, LEAK_1) == ConfirmedQuery("a red kite", confirmed=False)
    assert confirm_query([*one_family, QueryReport("f2", " a red kite\n")], "  ", LEAK_1) == ConfirmedQuery(
        "a red kite", True
    )


def test_many_versions_of_one_family_cannot_outvote_two_families() -> None:
    flood = [QueryReport("f1", f"lie {n % 2}") for n in range(50)]
    honest = [QueryReport("f2", "truth"), QueryReport("f3", "truth")]
    assert confirm_query(flood + honest, None, LEAK_1) == ConfirmedQuery("truth", confirmed=True)


def test_the_order_of_reports_does_not_matter() -> None:
    reports = [QueryReport(f"f{n % 4}", f"text {n % 3}") for n in range(12)]
    expected = confirm_query(reports, None, LEAK_1)
    for seed in range(5):
        assert confirm_query(random.Random(seed).sample(reports, len(reports)), None, LEAK_1) == expected


def test_no_report_is_no_text() -> None:
    assert confirm_query([], None, LEAK_1) == ConfirmedQuery(None, confirmed=False)
    assert confirm_query([QueryReport("f1", "  ")], "", LEAK_1) == ConfirmedQuery(None, confirmed=False)


def test_a_winner_id_needs_two_families_and_a_majority_of_the_winning_ones() -> None:
    wins = [Win("f1", ("1",), None), Win("f2", ("1", "2"), None), Win("f3", ("3", "2"), None)]
    # Three winning families. 1: f1, f2 = 2 of 3. 2: f2, f3 = 2 of 3. 3: f3 alone.
    assert winner_ids(wins, LEAK_1) == (frozenset({"1", "2"}), frozenset({"3"}))


def test_half_of_the_winners_is_no_majority() -> None:
    wins = [Win(f"f{n}", ("1" if n < 2 else "2",), None) for n in range(4)]
    assert winner_ids(wins, LEAK_1) == (frozenset(), frozenset({"1", "2"}))


def test_unscored_positions_say_nothing() -> None:
    wins = [Win("f1", ("1", "9"), 1), Win("f2", ("1", "9"), 1)]
    assert winner_ids(wins, LEAK_1) == (frozenset({"1"}), frozenset())


def test_one_family_entered_often_stays_suspect() -> None:
    assert winner_ids([Win("f1", ("1",), None)] * 20, LEAK_1) == (frozenset(), frozenset({"1"}))


def test_no_winner_no_ids() -> None:
    assert winner_ids([], LEAK_1) == (frozenset(), frozenset())


def test_the_plan_says_how_many_families_prove_something() -> None:
    three = replace(LEAK_1, witness_families=3)
    reports = [QueryReport("f1", "a red kite"), QueryReport("f2", "a red kite")]
    assert confirm_query(reports, None, LEAK_1).confirmed
    assert not confirm_query(reports, None, three).confirmed
    wins = [Win("f1", ("1",), None), Win("f2", ("1",), None), Win("f3", ("2",), None)]
    assert winner_ids(wins, LEAK_1).confirmed == {"1"}
    assert winner_ids(wins, three).confirmed == frozenset()
    # Two of three winning families are no more than two thirds.
    assert winner_ids(wins, replace(LEAK_1, winner_share=0.67)).confirmed == frozenset()


def published(category: str = "shop", reward: list[dict[str, object]] | None = None) -> PublishedProblem:
    return PublishedProblem("p1", "legacy_shoppingbench", category, None, reward)


REPORTS = [
    FamilyReport("f1", "a red kite", ("1", "2", "3"), True),
    FamilyReport("f2", "a red kite", ("1", "2", "3"), True),
    FamilyReport("f3", None, ("8",), False),
]


def test_a_problem_is_described_from_what_is_published_and_what_families_say() -> None:
    reward: list[dict[str, object]] = [{"product_id": 7}, {"title": ["no id"]}, {"product_id": None}]
    assert describe(published("voucher", reward), REPORTS, LEAK_1) == ProblemFacts(
        problem_id="p1",
        kind="legacy_shoppingbench",
        category="voucher",
        query="a red kite",
        query_confirmed=True,
        gold_ids=frozenset({"7"}),
        winner_ids=frozenset({"1", "2", "3"}),  # three targets, so three positions are scored; losers say nothing
        suspect_winner_ids=frozenset(),
        task=None,
    )


@pytest.mark.parametrize(
    ("category", "reward", "scored"),
    [
        ("product", [{"product_id": "1"}], {"1"}),
        ("product", None, {"1"}),
        ("shop", [{"product_id": "1"}, {"product_id": "2"}], {"1", "2"}),
        ("shop", None, {"1", "2", "3"}),
    ],
)
def test_only_scored_positions_count(category: str, reward: list[dict[str, object]] | None, scored: set[str]) -> None:
    assert describe(published(category, reward), REPORTS, LEAK_1).winner_ids == scored


def test_an_episode_is_the_same_task_in_every_world() -> None:
    ids = ["worlds-3/pack-1/TF8-1", "worlds-4/pack-1/TF8-1", "worlds-4/pack-2/TF8-1", "TF8-1"]
    tasks = [describe(PublishedProblem(one, "envpack", "tf8", None, None), [], LEAK_1).task for one in ids]
    # Another pack may number its tasks alike, so its name is part of the identity.
    assert tasks == ["pack-1/TF8-1", "pack-1/TF8-1", "pack-2/TF8-1", "TF8-1"]
