"""Which problems are tied, by what, and what that makes of the clusters."""

import random
from collections import Counter
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.leaks.leakage import LEAK_1, Edge, EdgeKind, LeakPlan, ProblemFacts, clusters, edges
from service.domain.leaks.queries import QueryRule, near_equal

KETTLE = "a foldable magnetic vintage kettle"
KETTLE_AGAIN = "please, a foldable magnetic vintage kettle above 30 pesos"
TENT = "an insulated waterproof cordless tent"


def problem(problem_id: str, query: str | None = None, confirmed: bool = True, **ids: Any) -> ProblemFacts:
    return ProblemFacts(problem_id, "legacy_shoppingbench", "product", query, confirmed, **ids)


def ids(*values: str) -> frozenset[str]:
    return frozenset(values)


def kinds(*problems: ProblemFacts) -> list[tuple[str, str, EdgeKind]]:
    return [(edge.a, edge.b, edge.kind) for edge in edges(problems, LEAK_1)]


def test_problems_that_share_nothing_are_not_tied() -> None:
    assert kinds(problem("p1", KETTLE, gold_ids=ids("1")), problem("p2", TENT, gold_ids=ids("2"))) == []


def test_a_gold_id_ties() -> None:
    found = edges([problem("p2", gold_ids=ids("1", "2")), problem("p1", gold_ids=ids("2", "3"))], LEAK_1)
    assert found == [Edge("p1", "p2", EdgeKind.GOLD_ID, "product:2")]


def test_a_confirmed_winner_ties_to_gold_and_to_another_winner() -> None:
    gold, winner = problem("p1", gold_ids=ids("1")), problem("p2", winner_ids=ids("1"))
    assert kinds(gold, winner) == [("p1", "p2", EdgeKind.WINNER_ID)]
    assert kinds(winner, problem("p3", winner_ids=ids("1"))) == [("p2", "p3", EdgeKind.WINNER_ID)]


def test_a_winner_that_one_family_gave_is_only_suspect() -> None:
    suspect = problem("p2", suspect_winner_ids=ids("1"))
    assert kinds(problem("p1", gold_ids=ids("1")), suspect) == [("p1", "p2", EdgeKind.SUSPECT)]
    assert kinds(suspect, problem("p3", suspect_winner_ids=ids("1"))) == [("p2", "p3", EdgeKind.SUSPECT)]


def test_equal_and_near_texts_tie() -> None:
    assert kinds(problem("p1", KETTLE), problem("p2", KETTLE.upper() + "!")) == [("p1", "p2", EdgeKind.EQUAL_QUERY)]
    assert kinds(problem("p1", KETTLE), problem("p2", KETTLE_AGAIN)) == [("p1", "p2", EdgeKind.NEAR_QUERY)]


@pytest.mark.parametrize("text", [KETTLE, KETTLE_AGAIN])
def test_a_text_one_family_reports_is_only_suspect(text: str) -> None:
    assert kinds(problem("p1", KETTLE), problem("p2", text, confirmed=False)) == [("p1", "p2", EdgeKind.SUSPECT)]


def test_a_task_ties_across_packs() -> None:
    assert kinds(problem("w1/t", task="t"), problem("w2/t", task="t"), problem("w2/u", task="u")) == [
        ("w1/t", "w2/t", EdgeKind.TASK)
    ]


def test_evidence_never_quotes_a_query() -> None:
    found = edges([problem("p1", KETTLE), problem("p2", KETTLE), problem("p3", KETTLE_AGAIN)], LEAK_1)
    assert {edge.kind for edge in found} == {EdgeKind.EQUAL_QUERY, EdgeKind.NEAR_QUERY}
    assert not any("kettle" in edge.shared for edge in found)


def test_suspect_edges_join_nothing() -> None:
    tied = [Edge("p1", "p2", EdgeKind.SUSPECT, "x"), Edge("p2", "p3", EdgeKind.GOLD_ID, "y")]
    assert clusters(tied, ["p3", "p2", "p1"]) == {"p1": "p1", "p2": "p2", "p3": "p2"}


def test_an_edge_to_an_unknown_problem_is_refused() -> None:
    with pytest.raises(KeyError):
        clusters([Edge("p1", "p9", EdgeKind.TASK, "x")], ["p1"])


def test_a_changed_number_or_word_changes_the_digest() -> None:
    assert LeakPlan().digest == LEAK_1.digest
    rule = QueryRule()
    other_words = replace(rule, common_words=rule.common_words | {"kettle"})
    plans = [LeakPlan(queries=one) for one in (rule, replace(rule, threshold=0.6), other_words)]
    plans += [LeakPlan(witness_families=3), LeakPlan(winner_share=0.6)]
    assert len({plan.digest for plan in plans}) == 5


NODES = [f"p{n:02}" for n in range(12)]
EDGES = st.lists(
    st.tuples(st.sampled_from(NODES), st.sampled_from(NODES), st.sampled_from(EdgeKind))
    .filter(lambda drawn: drawn[0] != drawn[1])
    .map(lambda drawn: Edge(min(drawn[:2]), max(drawn[:2]), drawn[2], "x")),
    max_size=20,
)


def reachable(tied: list[Edge], start: str) -> set[str]:
    """Everything a plain walk over joining edges reaches."""
    seen, ahead = {start}, [start]
    while ahead:
        here = ahead.pop()
        for edge in tied:
            if edge.kind is not EdgeKind.SUSPECT and here in edge[:2]:
                ahead.extend({edge.a, edge.b} - seen)
                seen.update(edge[:2])
    return seen


@given(EDGES, st.randoms(use_true_random=False))
def test_clusters_are_what_a_walk_reaches_whatever_the_order(tied: list[Edge], rng: random.Random) -> None:
    found = clusters(tied, NODES)
    assert found == {node: min(reachable(tied, node)) for node in NODES}
    shuffled = rng.sample(tied, len(tied)) + tied[:3]
    assert clusters(shuffled, rng.sample(NODES, len(NODES))) == found


PRODUCTS = st.frozensets(st.sampled_from("123456"), max_size=2)
QUERIES = st.sampled_from([None, KETTLE, KETTLE.title(), KETTLE_AGAIN, TENT, "the kettle", ""])
PROBLEMS = st.lists(
    st.builds(
        ProblemFacts,
        problem_id=st.sampled_from(NODES),
        kind=st.just("legacy_shoppingbench"),
        category=st.just("product"),
        query=QUERIES,
        query_confirmed=st.booleans(),
        gold_ids=PRODUCTS,
        winner_ids=PRODUCTS,
        suspect_winner_ids=PRODUCTS,
        task=st.sampled_from([None, None, "t1", "t2"]),
    ),
    max_size=9,
    unique_by=lambda facts: facts.problem_id,
)


def joined(a: ProblemFacts, b: ProblemFacts) -> bool:
    """What ties two problems for sure, said pair by pair."""
    texts = a.query_confirmed and b.query_confirmed and near_equal(a.query or "", b.query or "", LEAK_1.queries)
    products = (a.gold_ids | a.winner_ids) & (b.gold_ids | b.winner_ids)
    return bool(texts or products or (a.task and a.task == b.task))


def suspected(a: ProblemFacts, b: ProblemFacts) -> bool:
    """What casts a suspicion on two problems."""
    everything = [facts.gold_ids | facts.winner_ids | facts.suspect_winner_ids for facts in (a, b)]
    return bool(everything[0] & everything[1]) or near_equal(a.query or "", b.query or "", LEAK_1.queries)


@given(PROBLEMS)
def test_stars_of_edges_tie_what_comparing_all_pairs_ties(problems: list[ProblemFacts]) -> None:
    found = edges(problems, LEAK_1)
    pairs = [(a, b) for a, b in combinations(sorted(problems, key=lambda facts: facts.problem_id), 2)]
    every = [Edge(a.problem_id, b.problem_id, EdgeKind.TASK, "") for a, b in pairs if joined(a, b)]
    nodes = [facts.problem_id for facts in problems]
    cluster = clusters(found, nodes)
    assert cluster == clusters(every, nodes)
    for a, b in pairs:
        if suspected(a, b) and cluster[a.problem_id] != cluster[b.problem_id]:
            assert meet(found, cluster, a.problem_id, b.problem_id)
    for edge in found:
        assert edge.a < edge.b


def meet(found: list[Edge], cluster: dict[str, str], a: str, b: str) -> bool:
    """Whether some one evidence of suspicion names a problem of each cluster."""
    named: dict[str, set[str]] = {}
    for edge in found:
        if edge.kind is EdgeKind.SUSPECT:
            named.setdefault(edge.shared, set()).update((cluster[edge.a], cluster[edge.b]))
    return any({cluster[a], cluster[b]} <= clusters_named for clusters_named in named.values())


@given(PROBLEMS, st.randoms(use_true_random=False))
def test_edges_do_not_depend_on_the_order_of_problems(problems: list[ProblemFacts], rng: random.Random) -> None:
    assert edges(rng.sample(problems, len(problems)), LEAK_1) == edges(problems, LEAK_1)


@given(PROBLEMS, st.integers(0, 9))
def test_clusters_grown_step_by_step_equal_a_rebuild(problems: list[ProblemFacts], first: int) -> None:
    nodes = [facts.problem_id for facts in problems]
    whole = edges(problems, LEAK_1)
    assert clusters(edges(problems[:first], LEAK_1) + whole, nodes) == clusters(whole, nodes)


def test_a_family_that_repeats_one_text_everywhere_merges_nothing() -> None:
    flood = [problem(f"q{n:03}", KETTLE, confirmed=False, suspect_winner_ids=ids("1")) for n in range(200)]
    found = edges([problem("p1", KETTLE, gold_ids=ids("1")), *flood], LEAK_1)
    assert len(set(clusters(found, ["p1", *(facts.problem_id for facts in flood)]).values())) == 201
    # One star for the text and one for the product, not 20,100 pairs.
    assert len(found) == 400


@pytest.mark.shared
def test_gold_ids_of_the_benchmark_make_737_components(benchmark: list[dict[str, Any]]) -> None:
    shopping = [row for row in benchmark if row["file"] != "web_simpleqa"]
    problems = []
    for n, row in enumerate(shopping):
        targets = row["reward"] if isinstance(row["reward"], list) else [row["reward"]]
        gold = frozenset(target["product_id"] for target in targets)
        problems.append(problem(f"{row['file']}-{n:03}", row["query"], gold_ids=gold))
    found = edges(problems, LEAK_1)
    cluster = clusters(found, [facts.problem_id for facts in problems])
    sizes = Counter(Counter(cluster.values()).values())
    assert (len(problems), len(set(cluster.values()))) == (750, 737)
    assert sizes == {1: 724, 2: 13}
    assert {edge.kind for edge in found} == {EdgeKind.GOLD_ID}
    assert len({edge.shared for edge in found}) == 25


@pytest.mark.shared
@pytest.mark.parametrize(("with_web", "expected"), [(False, 25), (True, 31)])
def test_the_answers_that_several_benchmark_questions_share_are_found(
    benchmark: list[dict[str, Any]], with_web: bool, expected: int
) -> None:
    problems, holders = [], Counter[str]()
    for number, row in enumerate(benchmark):
        if with_web or row["file"] != "web_simpleqa":
            reward = row["reward"] if isinstance(row["reward"], list) else [row["reward"]]
            gold = frozenset(str(each["product_id"]) for each in reward)
            problems.append(problem(f"q{number:03}", row["query"], gold_ids=gold))
            holders.update(gold)
    found = {edge.shared for edge in edges(problems, LEAK_1) if edge.kind is EdgeKind.GOLD_ID}
    assert found == {f"product:{product_id}" for product_id, count in holders.items() if count > 1}
    assert len(found) == expected
