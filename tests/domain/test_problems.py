"""What agents say of a problem counts only from two families up."""

import random

from service.domain.problems import ConfirmedQuery, QueryReport, Win, confirm_query, winner_ids


def test_the_api_text_needs_no_witness() -> None:
    reports = [QueryReport("f1", "lies"), QueryReport("f2", "lies")]
    assert confirm_query(reports, "a red kite") == ConfirmedQuery("a red kite", confirmed=True)


def test_two_families_confirm_a_text_and_one_does_not() -> None:
    one_family = [QueryReport("f1", "a red kite"), QueryReport("f1", "a red kite")]
    assert confirm_query(one_family, None) == ConfirmedQuery("a red kite", confirmed=False)
    assert confirm_query([*one_family, QueryReport("f2", " a red kite\n")], "  ") == ConfirmedQuery("a red kite", True)


def test_many_versions_of_one_family_cannot_outvote_two_families() -> None:
    flood = [QueryReport("f1", f"lie {n % 2}") for n in range(50)]
    honest = [QueryReport("f2", "truth"), QueryReport("f3", "truth")]
    assert confirm_query(flood + honest, None) == ConfirmedQuery("truth", confirmed=True)


def test_the_order_of_reports_does_not_matter() -> None:
    reports = [QueryReport(f"f{n % 4}", f"text {n % 3}") for n in range(12)]
    expected = confirm_query(reports, None)
    for seed in range(5):
        assert confirm_query(random.Random(seed).sample(reports, len(reports)), None) == expected


def test_no_report_is_no_text() -> None:
    assert confirm_query([], None) == ConfirmedQuery(None, confirmed=False)
    assert confirm_query([QueryReport("f1", "  ")], "") == ConfirmedQuery(None, confirmed=False)


def test_a_winner_id_needs_two_families_and_a_majority_of_the_winning_ones() -> None:
    wins = [Win("f1", ("1",), None), Win("f2", ("1", "2"), None), Win("f3", ("3", "2"), None)]
    # Three winning families. 1: f1, f2 = 2 of 3. 2: f2, f3 = 2 of 3. 3: f3 alone.
    assert winner_ids(wins) == (frozenset({"1", "2"}), frozenset({"3"}))


def test_half_of_the_winners_is_no_majority() -> None:
    wins = [Win(f"f{n}", ("1" if n < 2 else "2",), None) for n in range(4)]
    assert winner_ids(wins) == (frozenset(), frozenset({"1", "2"}))


def test_unscored_positions_say_nothing() -> None:
    wins = [Win("f1", ("1", "9"), 1), Win("f2", ("1", "9"), 1)]
    assert winner_ids(wins) == (frozenset({"1"}), frozenset())


def test_one_family_entered_often_stays_suspect() -> None:
    assert winner_ids([Win("f1", ("1",), None)] * 20) == (frozenset(), frozenset({"1"}))


def test_no_winner_no_ids() -> None:
    assert winner_ids([]) == (frozenset(), frozenset())
