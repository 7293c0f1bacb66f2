"""Public benchmarks in the leak graph: how files are read, what joins what, and every contact named."""

import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.leaks.benchmarks import (
    Benchmark,
    BenchmarkItem,
    BenchmarkPolicy,
    Contact,
    benchmarks_digest,
    checked_name,
    contacts,
    excluded_clusters,
    node_id,
    nodes,
)
from service.domain.leaks.leakage import LEAK_1, Edge, EdgeKind, ProblemFacts, clusters, edges
from service.domain.leaks.queries import near_equal, normalise
from service.errors import SluiceError
from tests.domain.leaks.test_leakage import KETTLE, KETTLE_AGAIN, PROBLEMS, TENT, ids, problem

EXCLUDE, DECLARED = BenchmarkPolicy.EXCLUDE, BenchmarkPolicy.DECLARED_PUBLIC


@pytest.mark.parametrize("name", ["", "A", "a b", "-a", "a" * 65, "a/b", "ä", "a\n"])
def test_a_name_that_cannot_stand_in_an_id_is_refused(name: str) -> None:
    with pytest.raises(SluiceError, match="cannot name"):
        checked_name(name)
    assert checked_name("shopping-bench_1.0") == "shopping-bench_1.0"


def test_the_digest_is_that_of_the_set() -> None:
    one, other = ("a", "exclude", "1"), ("b", "exclude", "2")
    assert benchmarks_digest([one, other]) == benchmarks_digest([other, one])
    assert benchmarks_digest([one]) != benchmarks_digest([("a", "declared-public", "1")])


def benchmark(*items: tuple[str | None, tuple[str, ...]], name: str = "bench") -> Benchmark:
    return Benchmark(name, EXCLUDE, tuple(BenchmarkItem(line, *item) for line, item in enumerate(items, start=1)))


def found(problems: list[ProblemFacts], *public: Benchmark) -> list[Contact]:
    tied = edges(problems, LEAK_1, nodes(public))
    cluster_of = clusters(tied, [one.problem_id for one in problems], [one.problem_id for one in nodes(public)])
    return contacts(problems, public, tied, cluster_of, LEAK_1.queries)


def test_an_item_joins_problems_that_share_nothing_else() -> None:
    public = benchmark((KETTLE, ("7",)))
    problems = [problem("p1", KETTLE_AGAIN), problem("p2", TENT, gold_ids=ids("7"))]
    tied = edges(problems, LEAK_1, nodes([public]))
    assert clusters(tied, ["p1", "p2"], [node_id("bench", 1)]) == {
        "p1": "p1",
        "p2": "p1",
        node_id("bench", 1): "p1",
    }


def test_a_chain_of_items_joins_too() -> None:
    public = benchmark((KETTLE, ("7",)), (None, ("7", "8")))
    problems = [problem("p1", KETTLE_AGAIN), problem("p2", gold_ids=ids("8"))]
    tied = edges(problems, LEAK_1, nodes([public]))
    items = [node_id("bench", 1), node_id("bench", 2)]
    assert set(clusters(tied, ["p1", "p2"], items).values()) == {"p1"}


def test_a_cluster_is_called_by_a_problem_and_an_item_alone_by_itself() -> None:
    # By letters alone the item comes before both problems.
    problems = [problem("x1", gold_ids=ids("7")), problem("x2", gold_ids=ids("7"))]
    public = benchmark((None, ("7",)), (None, ("9",)))
    tied = edges(problems, LEAK_1, nodes([public]))
    cluster_of = clusters(tied, ["x2", "x1"], [one.problem_id for one in nodes([public])])
    assert cluster_of[node_id("bench", 1)] == "x1"
    assert cluster_of[node_id("bench", 2)] == node_id("bench", 2)
    assert excluded_clusters([public], cluster_of) == {"x1", node_id("bench", 2)}
    assert excluded_clusters([public._replace(policy=DECLARED)], cluster_of) == frozenset()


def test_an_item_with_the_id_of_a_problem_is_refused() -> None:
    with pytest.raises(SluiceError, match="has the id of a problem"):
        edges([problem(node_id("bench", 1), KETTLE)], LEAK_1, nodes([benchmark((KETTLE, ()))]))


def test_one_familys_word_is_a_suspicion_that_joins_nothing() -> None:
    public = benchmark((KETTLE, ("7",)))
    problems = [problem("p1", KETTLE, confirmed=False), problem("p2", suspect_winner_ids=ids("7"))]
    assert [(one.problem_id, one.kind) for one in found(problems, public)] == [
        ("p1", EdgeKind.SUSPECT),
        ("p2", EdgeKind.SUSPECT),
    ]
    tied = edges(problems, LEAK_1, nodes([public]))
    assert len(set(clusters(tied, ["p1", "p2"], [node_id("bench", 1)]).values())) == 3


def test_contacts_never_quote_a_query() -> None:
    assert not any("kettle" in one.shared for one in found([problem("p1", KETTLE)], benchmark((KETTLE_AGAIN, ()))))


ITEMS = st.lists(
    st.tuples(
        st.sampled_from([None, KETTLE, KETTLE_AGAIN, TENT]),
        st.frozensets(st.sampled_from("123456"), max_size=2).map(lambda drawn: tuple(sorted(drawn))),
    ),
    max_size=4,
)


def expected(problems: list[ProblemFacts], public: Benchmark) -> set[tuple[str, int, EdgeKind]]:
    """Contacts, said pair by pair."""
    told = set()
    for one in problems:
        for item in public.items:
            for product_id in item.gold_ids:
                for kind, answers in (
                    (EdgeKind.GOLD_ID, one.gold_ids),
                    (EdgeKind.WINNER_ID, one.winner_ids - one.gold_ids),
                    (EdgeKind.SUSPECT, one.suspect_winner_ids - one.winner_ids - one.gold_ids),
                ):
                    if product_id in answers:
                        told.add((one.problem_id, item.line, kind))
            if near_equal(one.query or "", item.query or "", LEAK_1.queries):
                equal = normalise(one.query or "", LEAK_1.queries) == normalise(item.query or "", LEAK_1.queries)
                sure = EdgeKind.EQUAL_QUERY if equal else EdgeKind.NEAR_QUERY
                told.add((one.problem_id, item.line, sure if one.query_confirmed else EdgeKind.SUSPECT))
    return told


@given(PROBLEMS, ITEMS)
def test_contacts_are_what_comparing_all_pairs_finds(problems: list[ProblemFacts], items: list) -> None:
    public = benchmark(*items)
    assert {(one.problem_id, one.line, one.kind) for one in found(problems, public)} == expected(problems, public)


@given(PROBLEMS, ITEMS)
def test_clusters_with_items_are_what_comparing_all_pairs_makes(problems: list[ProblemFacts], items: list) -> None:
    public = nodes([benchmark(*items)])
    everyone = [*problems, *public]
    pairs = [
        Edge(*sorted((a.problem_id, b.problem_id)), EdgeKind.TASK, "")
        for a, b in combinations(everyone, 2)
        if joined(a, b)
    ]
    names = [one.problem_id for one in problems], [one.problem_id for one in public]
    assert clusters(edges(problems, LEAK_1, public), *names) == clusters(pairs, *names)


def joined(a: ProblemFacts, b: ProblemFacts) -> bool:
    """What ties two nodes for sure."""
    texts = a.query_confirmed and b.query_confirmed and near_equal(a.query or "", b.query or "", LEAK_1.queries)
    products = (a.gold_ids | a.winner_ids) & (b.gold_ids | b.winner_ids)
    return bool(texts or products or (a.task and a.task == b.task))


@given(PROBLEMS, ITEMS, st.randoms(use_true_random=False))
def test_items_take_away_no_edge_between_problems(
    problems: list[ProblemFacts], items: list, rng: random.Random
) -> None:
    public = nodes([benchmark(*items)])
    with_items = edges(rng.sample(problems, len(problems)), LEAK_1, rng.sample(public, len(public)))
    assert with_items == edges(problems, LEAK_1, public)
    assert set(edges(problems, LEAK_1)) <= set(with_items)
