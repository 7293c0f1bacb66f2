"""The plan: everything once and in the end, the same whatever the order given, and as good as looking at every item."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.harvest.chances import Chances, Hint, Knowledge, Prior, ProblemKnown, Pseudo, Tally
from service.domain.harvest.gains import PLAN_1, Candidate, Gains, PlanPolicy, Standing
from service.domain.harvest.planning import Choice, PlanReason, plan

EVERYTHING = float("inf")
NEVER = 10**9
NO_TURNS = replace(PLAN_1, longest_due_every=NEVER)
HINTS: tuple[Hint, ...] = (True, False, None)
FAMILY = {"a1": "a", "a2": "a", "b1": "b", "c1": "c"}
PROBLEMS = ("p", "q", "r")

tallies = st.integers(0, 12).flatmap(
    lambda judged: st.integers(0, judged).flatmap(
        lambda kept: st.integers(0, judged - kept).map(lambda negative: Tally(judged, kept, negative))
    )
)


@st.composite
def knowledge(draw: st.DrawFn) -> Knowledge:
    """What verdicts might have said; the counts of a level are the sums of the one below."""
    versions = {(version, hint): draw(tallies) for version in FAMILY for hint in HINTS if draw(st.booleans())}
    families: dict[tuple[str, Hint], Tally] = {}
    overall: dict[Hint, Tally] = {}
    for (version, hint), tally in versions.items():
        family = FAMILY[version]
        families[family, hint] = plus(families.get((family, hint), Tally()), tally)
        overall[hint] = plus(overall.get(hint, Tally()), tally)
    problems = {}
    for name in PROBLEMS:
        by_family = draw(st.dictionaries(st.sampled_from("abc"), st.integers(1, 3), max_size=2))
        by_hint = {hint: draw(tallies) for hint in HINTS}
        problems[name] = ProblemKnown(sum(by_family.values()), by_family, by_hint)
    sampled = draw(st.dictionaries(st.sampled_from(sorted(FAMILY)), st.frozensets(st.sampled_from(PROBLEMS))))
    return Knowledge(overall, families, versions, problems, sampled)


def plus(one: Tally, other: Tally) -> Tally:
    return Tally(*(a + b for a, b in zip(one, other, strict=True)))


@st.composite
def items(draw: st.DrawFn, most: int = 24) -> list[Candidate]:
    numbers = draw(st.lists(st.integers(1, 999), unique=True, max_size=most))
    made = []
    for number in numbers:
        version = draw(st.sampled_from(sorted(FAMILY)))
        standing = draw(st.sampled_from(Standing))
        made.append(
            Candidate(
                number,
                draw(st.sampled_from(PROBLEMS)),
                version,
                FAMILY[version],
                draw(st.sampled_from(HINTS)),
                draw(st.sampled_from((1, 2))),
                draw(st.integers(0, 5)),
                standing,
            )
        )
    return made


def numbers(choices: list[Choice]) -> list[int]:
    return [choice.item.ledger_id for choice in choices]


def item(
    number: int,
    problem: str = "p",
    version: str = "a1",
    hint: Hint = True,
    cost: int = 2,
    attempts: int = 0,
    standing: Standing = Standing.NEW,
) -> Candidate:
    return Candidate(number, problem, version, FAMILY.get(version, version), hint, cost, attempts, standing)


@settings(max_examples=50)
@given(items(), items(), knowledge(), st.integers(1, 7))
def test_every_open_item_is_planned_exactly_once(
    opened: list[Candidate], flying: list[Candidate], known: Knowledge, every: int
) -> None:
    chosen = plan(opened, flying, known, replace(PLAN_1, longest_due_every=every), EVERYTHING)
    assert sorted(numbers(chosen)) == sorted(each.ledger_id for each in opened)
    assert all(choice.gain > 0 for choice in chosen)


@settings(max_examples=50)
@given(items(), items(), knowledge(), st.randoms(use_true_random=False))
def test_the_order_of_what_is_given_does_not_matter(
    opened: list[Candidate], flying: list[Candidate], known: Knowledge, shuffle: Random
) -> None:
    chosen = plan(opened, flying, known, PLAN_1, EVERYTHING)
    for given_items in (opened, flying):
        shuffle.shuffle(given_items)
    assert plan(opened, flying, known, PLAN_1, EVERYTHING) == chosen


@given(items(most=16), items(most=6), knowledge(), st.sampled_from([2, 5, NEVER]))
def test_the_lazy_choice_is_that_of_looking_at_every_item(
    opened: list[Candidate], flying: list[Candidate], known: Knowledge, every: int
) -> None:
    policy = replace(PLAN_1, longest_due_every=every)
    gains = Gains(known, policy)
    asked = sum(tally.judged for tally in known.overall.values()) + len(flying)
    for each in sorted(flying):
        gains.underway.add(each)
    left, expected = set(opened), []
    while left:
        asked += 1
        if asked % every == 0:
            best = min(left, key=lambda each: (each.attempts, each.ledger_id))
        else:
            best = max(left, key=lambda each: (gains.gain(each), -each.ledger_id))
        expected.append(best.ledger_id)
        left.remove(best)
        gains.underway.add(best)
    assert numbers(plan(opened, flying, known, policy, EVERYTHING)) == expected


@settings(max_examples=50)
@given(items(), knowledge(), st.integers(1, 9))
def test_a_plan_ends_with_its_budget(opened: list[Candidate], known: Knowledge, requests: int) -> None:
    chosen = plan(opened, [], known, PLAN_1, requests)
    spent = sum(choice.item.cost for choice in chosen)
    assert len(chosen) == len(opened) or requests <= spent < requests + chosen[-1].item.cost
    assert chosen == plan(opened, [], known, PLAN_1, EVERYTHING)[: len(chosen)]


@settings(max_examples=20)
@given(st.integers(1, 5), st.integers(2, 9))
def test_nothing_waits_for_ever(requests: int, every: int) -> None:
    """A poor item, and at every plan a new and better one: its turn comes after `every` choices at the latest."""
    policy = replace(PLAN_1, longest_due_every=every)
    poor, asked = item(1, hint=False), 0
    for round_number in range(every + 1):
        better = [item(100 * (round_number + 1) + n, f"new-{round_number}-{n}", cost=1) for n in range(requests + 1)]
        known = Knowledge(overall={True: Tally(asked, asked, 0)})
        chosen = plan([poor, *better], [], known, policy, requests)
        asked += len(chosen)
        if poor in (choice.item for choice in chosen):
            assert asked < every + requests
            return
    pytest.fail("it was never chosen")


def test_an_problem_with_nothing_kept_goes_first_then_unseen_versions_then_depth_then_failures() -> None:
    known = Knowledge(
        overall={True: Tally(20, 10, 0)},
        versions={("a1", True): Tally(10, 8, 0)},
        families={("a", True): Tally(10, 8, 0)},
        problems={"p": ProblemKnown(1, {"a": 1}, {}), "q": ProblemKnown(1, {"b": 1}, {})},
        sampled={"a1": frozenset("stuvw")},
    )
    opened = [
        item(1, "p", "a1", False),
        item(2, "q", "a1", True),
        item(3, "p", "c1", False),
        item(4, "r", "a1", True),
        item(5, "p", "a1", True, standing=Standing.REREAD),
    ]
    chosen = plan(opened, [], known, NO_TURNS, EVERYTHING)
    assert [(choice.item.ledger_id, choice.reason) for choice in chosen] == [
        (4, PlanReason.FIRST_KEPT),
        (3, PlanReason.VERSION_UNSAMPLED),
        (2, PlanReason.DEPTH),
        (5, PlanReason.LISTED_OTHERWISE),
        (1, PlanReason.CLEAN_FAILURE),
    ]


def test_what_is_chosen_lowers_what_its_problem_and_its_version_still_promise() -> None:
    """Equal in all else: the second choice goes to another problem and to another version."""
    opened = [
        item(number, problem, version)
        for number, (problem, version) in enumerate(
            [(p, v) for p in ("p", "q") for v in ("b1", "c1")],
        )
    ]
    first, second, *_ = plan(opened, [], Knowledge(), NO_TURNS, EVERYTHING)
    assert (first.item.problem_id, first.item.agent_version_id) == ("p", "b1")
    assert (second.item.problem_id, second.item.agent_version_id) == ("q", "c1")


def test_what_is_under_way_counts_as_chosen() -> None:
    opened = [item(1, "p"), item(2, "q")]
    assert numbers(plan(opened, [item(9, "p", "b1")], Knowledge(), NO_TURNS, 1)) == [2]


def test_half_the_cost_counts_twice() -> None:
    opened = [item(1, "p", "b1", cost=2), item(2, "q", "c1", cost=1)]
    first, second = plan(opened, [], Knowledge(), NO_TURNS, EVERYTHING)
    assert first.item.ledger_id == 2
    assert first.gain == pytest.approx(2 * second.gain)


def test_a_failed_try_halves_the_gain_and_an_embargo_does_not() -> None:
    opened = [
        item(1, "p", "b1", attempts=1, standing=Standing.RETRY),
        item(2, "q", "c1", attempts=3),
        item(3, "r", "a1", attempts=2, standing=Standing.RETRY),
    ]
    chosen = plan(opened, [], Knowledge(), NO_TURNS, EVERYTHING)
    gain = {choice.item.ledger_id: choice.gain for choice in chosen}
    assert gain[1] == pytest.approx(gain[2] / 2)
    assert gain[3] == pytest.approx(gain[2] / 4)
    assert [choice.reason for choice in chosen] == ["first_kept", "due_again", "due_again"]


def test_the_longest_due_has_every_nth_turn_over_plans() -> None:
    """18 were asked for before, so of every 20 the next but one has its turn."""
    known = Knowledge(overall={True: Tally(17, 17, 0)})
    opened = [item(1, "p", "a1", False), *(item(number, f"new-{number}") for number in range(2, 9))]
    chosen = plan(opened, [item(99)], known, PLAN_1, EVERYTHING)
    assert [choice.reason for choice in chosen[:3]] == ["first_kept", "longest_due", "first_kept"]
    assert chosen[1].item.ledger_id == 1


def test_chances_shrink_from_the_version_to_its_family_to_all() -> None:
    prior = Prior(kept_success=Pseudo(0.4, 4.0), family_weight=2.0, version_weight=1.0)
    known = Knowledge(
        overall={True: Tally(30, 9, 0)},
        families={("a", True): Tally(12, 6, 0)},
        versions={("a1", True): Tally(2, 2, 0)},
    )
    chances = Chances(known, prior)
    # All others: 30 - 12 = 18 judged, 9 - 6 = 3 kept: (3 + 4 * 0.4) / (18 + 4) = 4.6 / 22.
    # Others of the family: 10 judged, 4 kept: (4 + 2 * 4.6 / 22) / (10 + 2); of the version: (2 + that) / (2 + 1).
    overall = 4.6 / 22
    family = (4 + 2 * overall) / 12
    assert chances.of("a1", "a", "p", True).kept == pytest.approx((2 + family) / 3)
    # A version of the family of which nothing is known: all twelve are its kin's.
    assert chances.of("a2", "a", "p", True).kept == pytest.approx((6 + 2 * overall) / 14)
    # Of another family nothing is known: as all thirty, 9 kept.
    assert chances.of("b1", "b", "p", True).kept == pytest.approx((9 + 1.6) / 34)
    assert chances.of("b1", "b", "p", None).kept == pytest.approx(0.2)


def test_a_problem_that_yields_less_than_expected_promises_less() -> None:
    # Of all: (16 + 1.6) / (40 + 4) = 0.4 are kept, so 4 of these 10; none was: (0 + 2) / (4 + 2) = 1/3 is left.
    known = Knowledge(overall={True: Tally(40, 16, 0)}, problems={"p": ProblemKnown(0, {}, {True: Tally(10, 0, 10)})})
    chances = Chances(known, Prior())
    assert chances.of("b1", "b", "p", True).kept == pytest.approx(chances.of("b1", "b", "q", True).kept / 3)


def test_the_digest_names_every_number() -> None:
    changed = replace(PLAN_1, optimism=0.4), replace(PLAN_1, prior=Prior(version_weight=2.0))
    assert len({PLAN_1.digest, PlanPolicy().digest, *(policy.digest for policy in changed)}) == 3
