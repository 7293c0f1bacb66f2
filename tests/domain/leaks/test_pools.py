"""Pools are a pure function of content and history, and never loosen."""

import random
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.leaks.leakage import Edge, EdgeKind, clusters
from service.domain.leaks.pools import (
    POOLS_1,
    Accepted,
    Assignment,
    Pool,
    PoolPlan,
    PoolProblem,
    PoolReason,
    Shares,
    assign,
    draw,
    may_show,
)
from service.errors import ErrorCode, SluiceError

NODES = [f"p{n:02}" for n in range(16)]
PROBLEMS = [PoolProblem(node, ["product", "shop", "voucher"][n % 3]) for n, node in enumerate(NODES)]
EVEN = PoolPlan(shares=Shares(eval=0.3, reserve=0.2))
"""Shares that give sixteen problems some of each."""


def edge(a: str, b: str, kind: EdgeKind, evidence: str = "x") -> Edge:
    return Edge(min(a, b), max(a, b), kind, evidence)


def pairs(kind: EdgeKind) -> st.SearchStrategy[list[Edge]]:
    two = st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)).filter(lambda ends: ends[0] != ends[1])
    return st.lists(
        st.builds(lambda ends, evidence: edge(*ends, kind, evidence), two, st.sampled_from("xyz")), max_size=8
    )


JOINS, SUSPICIONS = pairs(EdgeKind.GOLD_ID), pairs(EdgeKind.SUSPECT)
HISTORY = st.frozensets(st.sampled_from(NODES), max_size=4)
NOBODY: frozenset[str] = frozenset()


HELD = st.dictionaries(st.sampled_from(NODES), st.sampled_from([Pool.EVAL, Pool.RESERVE]), max_size=4)
NOTHING: dict[str, Pool] = {}


def placed(
    joins: list[Edge], suspicions: list[Edge], train: frozenset[str], former: Mapping[str, Pool]
) -> list[Assignment]:
    return assign(PROBLEMS, clusters(joins, NODES), suspicions, train, EVEN, former)


def drawn(pool: Pool) -> list[str]:
    return [problem.problem_id for problem in PROBLEMS if draw(problem, EVEN) is pool]


def pool_of(assigned: list[Assignment], problem_id: str) -> tuple[Pool, PoolReason]:
    return next((one.pool, one.reason) for one in assigned if one.problem_id == problem_id)


def test_draws_follow_the_shares_of_their_category() -> None:
    plan = replace(POOLS_1, category_shares={"shop": Shares(eval=0.5, reserve=0.0)})
    problems = [PoolProblem(f"q{n}", category) for n in range(4000) for category in ("product", "shop")]
    counts = {
        category: [sum(draw(one, plan) is pool for one in problems if one.category == category) for pool in Pool]
        for category in ("product", "shop")
    }
    # Four standard deviations of 4,000 draws are at most 4 * sqrt(4000 / 4) = 127.
    assert counts["product"][:3] == pytest.approx([2800, 800, 400], abs=127)
    assert counts["shop"][:3] == pytest.approx([2000, 2000, 0], abs=127)
    assert counts["shop"][2] == counts["shop"][3] == counts["product"][3] == 0


def test_the_key_decides_the_draw() -> None:
    problems = [PoolProblem(f"q{n}", "product") for n in range(200)]
    assert [draw(one, POOLS_1) for one in problems] == [draw(one, PoolPlan()) for one in problems]
    assert [draw(one, POOLS_1) for one in problems] != [draw(one, replace(POOLS_1, key="other")) for one in problems]
    assert POOLS_1.digest != replace(POOLS_1, key="other").digest


def test_an_unrelated_problem_does_not_move_the_others() -> None:
    alone = assign(PROBLEMS[:-1], clusters([], NODES), [], NOBODY, EVEN)
    assert placed([], [], NOBODY, NOTHING)[:-1] == alone


def test_the_strictest_draw_takes_the_component() -> None:
    train, held, reserve = drawn(Pool.TRAIN)[0], drawn(Pool.EVAL)[0], drawn(Pool.RESERVE)[0]
    both = placed([edge(train, held, EdgeKind.GOLD_ID)], [], NOBODY, NOTHING)
    assert pool_of(both, train) == (Pool.EVAL, PoolReason.COMPONENT)
    assert pool_of(both, held) == (Pool.EVAL, PoolReason.DRAW)
    three = [edge(train, held, EdgeKind.GOLD_ID), edge(held, reserve, EdgeKind.GOLD_ID)]
    assert {pool_of(placed(three, [], NOBODY, NOTHING), one)[0] for one in (train, held, reserve)} == {Pool.RESERVE}


def test_what_was_published_in_train_is_quarantined_when_its_component_is_held_out() -> None:
    train, other, held = drawn(Pool.TRAIN)[0], drawn(Pool.TRAIN)[1], drawn(Pool.EVAL)[0]
    joins = [edge(train, held, EdgeKind.GOLD_ID), edge(other, held, EdgeKind.GOLD_ID)]
    assigned = placed(joins, [], frozenset({train}), NOTHING)
    assert pool_of(assigned, train) == (Pool.QUARANTINED, PoolReason.PUBLISHED)
    # A model trained on the older snapshot may know these answers, so they measure nothing.
    assert pool_of(assigned, held) == (Pool.QUARANTINED, PoolReason.EXPOSED)
    assert pool_of(assigned, other) == (Pool.QUARANTINED, PoolReason.EXPOSED)


def test_reserve_stays_reserve_beside_what_was_published() -> None:
    train, reserve = drawn(Pool.TRAIN)[0], drawn(Pool.RESERVE)[0]
    assigned = placed([edge(train, reserve, EdgeKind.GOLD_ID)], [], frozenset({train}), NOTHING)
    assert pool_of(assigned, train) == (Pool.QUARANTINED, PoolReason.PUBLISHED)
    assert pool_of(assigned, reserve) == (Pool.RESERVE, PoolReason.DRAW)


def test_what_was_held_out_once_never_goes_to_train() -> None:
    train = drawn(Pool.TRAIN)[0]
    assert pool_of(placed([], [], NOBODY, {train: Pool.EVAL}), train) == (Pool.EVAL, PoolReason.COMPONENT)


def test_what_was_in_reserve_stays_there_when_its_tie_is_gone() -> None:
    train, held, reserve = drawn(Pool.TRAIN)[0], drawn(Pool.EVAL)[0], drawn(Pool.RESERVE)[0]
    tied = placed([edge(train, reserve, EdgeKind.GOLD_ID), edge(held, reserve, EdgeKind.GOLD_ID)], [], NOBODY, {})
    former = {one.problem_id: one.pool for one in tied if one.problem_id in (train, held)}
    alone = placed([], [], NOBODY, former)
    # Nothing of reserve was ever published; as eval, both would be.
    assert pool_of(alone, train) == pool_of(alone, held) == (Pool.RESERVE, PoolReason.COMPONENT)


@pytest.mark.parametrize(
    ("history", "is_published", "shown"),
    [
        ({}, True, False),
        ({2: "train"}, False, True),
        ({1: "eval", 2: "train"}, False, True),
        ({1: "train"}, True, False),  # it has no pool in the newest generation
        ({2: "eval"}, False, False),
        ({2: "eval"}, True, True),
        ({2: "quarantined"}, True, False),
        ({2: "reserve"}, True, False),
        ({1: "reserve", 2: "train"}, True, False),
        ({1: "reserve", 2: "eval"}, True, False),
    ],
)
def test_content_is_shown_of_train_and_of_published_eval_unless_it_was_ever_in_reserve(
    history: dict[int, str], is_published: bool, shown: bool
) -> None:
    assert may_show(history, 2, is_published=is_published) is shown
    assert may_show(history, None, is_published=is_published) is False


def test_a_suspicion_quarantines_the_train_side_only() -> None:
    train, held = drawn(Pool.TRAIN)[0], drawn(Pool.EVAL)[0]
    assigned = placed([], [edge(train, held, EdgeKind.SUSPECT)], NOBODY, NOTHING)
    assert pool_of(assigned, train) == (Pool.QUARANTINED, PoolReason.SUSPECT)
    assert pool_of(assigned, held) == (Pool.EVAL, PoolReason.DRAW)


def test_suspicions_of_one_evidence_hold_between_the_ends_of_a_star() -> None:
    hub, other = drawn(Pool.TRAIN)[:2]
    held = drawn(Pool.EVAL)[0]
    star = [edge(hub, other, EdgeKind.SUSPECT, "x"), edge(hub, held, EdgeKind.SUSPECT, "x")]
    assert pool_of(placed([], star, NOBODY, NOTHING), other)[0] is Pool.QUARANTINED
    chain = [star[0], edge(hub, held, EdgeKind.SUSPECT, "y")]
    assert pool_of(placed([], chain, NOBODY, NOTHING), other)[0] is Pool.TRAIN


@given(JOINS, SUSPICIONS, HISTORY, HELD, st.randoms(use_true_random=False))
def test_order_does_not_matter(
    joins: list[Edge], suspicions: list[Edge], train: frozenset[str], held: dict[str, Pool], rng: random.Random
) -> None:
    shuffled = assign(
        rng.sample(PROBLEMS, len(PROBLEMS)),
        clusters(rng.sample(joins, len(joins)), NODES),
        rng.sample(suspicions, len(suspicions)) * 2,
        train,
        EVEN,
        dict(rng.sample(list(held.items()), len(held))),
    )
    assert shuffled == placed(joins, suspicions, train, held)


@given(JOINS, SUSPICIONS, HISTORY, HELD, JOINS, SUSPICIONS)
def test_new_edges_never_loosen_a_pool(
    joins: list[Edge],
    suspicions: list[Edge],
    train: frozenset[str],
    held: dict[str, Pool],
    more_joins: list[Edge],
    more_suspicions: list[Edge],
) -> None:
    before = placed(joins, suspicions, train, held)
    after = placed(joins + more_joins, suspicions + more_suspicions, train, held)
    for was, now in zip(before, after, strict=True):
        assert now.draw is was.draw
        assert was.pool is Pool.TRAIN or now.pool is not Pool.TRAIN
        assert was.pool is not Pool.RESERVE or now.pool in (Pool.RESERVE, Pool.QUARANTINED)
        assert now.pool is not Pool.EVAL or now.problem_id not in train


@given(st.lists(st.tuples(JOINS, SUSPICIONS), min_size=2, max_size=4))
def test_no_generation_loosens_another_though_edges_come_and_go(
    arrivals: list[tuple[list[Edge], list[Edge]]],
) -> None:
    train: frozenset[str] = frozenset()
    former: dict[str, Pool] = {}
    for joins, suspicions in arrivals:
        for one in placed(joins, suspicions, train, former):
            had = former.get(one.problem_id)
            assert had is None or one.pool in (had, Pool.RESERVE, Pool.QUARANTINED)
            assert had is not Pool.RESERVE or one.pool is not Pool.EVAL
            if one.pool is Pool.RESERVE or (one.pool is Pool.EVAL and had is None):
                former[one.problem_id] = one.pool


@given(st.lists(st.tuples(JOINS, SUSPICIONS), min_size=2, max_size=4))
def test_no_two_snapshots_of_one_lineage_share_a_component_across_the_splits(
    arrivals: list[tuple[list[Edge], list[Edge]]],
) -> None:
    joins: list[Edge] = []
    suspicions: list[Edge] = []
    train: frozenset[str] = frozenset()
    held: dict[str, Pool] = {}
    for more_joins, more_suspicions in arrivals:
        joins, suspicions = joins + more_joins, suspicions + more_suspicions
        assigned = placed(joins, suspicions, train, held)
        trains = {one.problem_id for one in assigned if one.pool is Pool.TRAIN}
        evals = {one.problem_id for one in assigned if one.pool is Pool.EVAL}
        cluster = clusters(joins, NODES)
        assert not {cluster[one] for one in trains | train} & {cluster[one] for one in evals}
        assert not {cluster[one] for one in held} & {cluster[one] for one in trains}
        train |= trains
        held |= {one.problem_id: one.pool for one in assigned if one.pool in (Pool.EVAL, Pool.RESERVE)}


MANY = [PoolProblem(f"q{n:04}", "product") for n in range(1000)]
MANY_IDS = [problem.problem_id for problem in MANY]


def chain(length: int) -> list[Edge]:
    return [edge(a, b, EdgeKind.NEAR_QUERY) for a, b in pairwise(MANY_IDS[:length])]


def test_a_component_over_five_per_cent_stops_the_stage() -> None:
    assign(MANY, clusters(chain(50), MANY_IDS), [], NOBODY, POOLS_1)
    with pytest.raises(SluiceError) as raised:
        assign(MANY, clusters(chain(51), MANY_IDS), [], NOBODY, POOLS_1)
    assert raised.value.code is ErrorCode.COMPONENT_TOO_LARGE
    assert raised.value.context == {"cluster_id": "q0000", "problems": 51, "total": 1000}


def test_small_corpora_have_no_limits() -> None:
    few = MANY[:199]
    everything = clusters(chain(199), MANY_IDS)
    assert len(assign(few, everything, [], frozenset(MANY_IDS), POOLS_1)) == 199


def test_quarantine_over_one_per_cent_stops_the_stage_unless_accepted_before() -> None:
    components = clusters(chain(30), MANY_IDS)
    published = frozenset(MANY_IDS[:20])
    assert {draw(problem, POOLS_1) for problem in MANY[:30]} > {Pool.EVAL}
    with pytest.raises(SluiceError) as raised:
        assign(MANY, components, [], published, POOLS_1)
    assert raised.value.code is ErrorCode.QUARANTINE_TOO_LARGE
    accepted = frozenset(MANY_IDS[:30])
    assigned = assign(MANY, components, [], published, POOLS_1, quarantined_before=accepted)
    assert {one.pool for one in assigned[:20]} == {Pool.QUARANTINED}


def test_suspicion_has_a_limit_of_its_own() -> None:
    alone = clusters([], MANY_IDS)
    held = next(problem.problem_id for problem in MANY if draw(problem, POOLS_1) is Pool.EVAL)
    suspicions = [edge(held, one, EdgeKind.SUSPECT) for one in MANY_IDS if one != held]
    with pytest.raises(SluiceError, match="one agent family alone") as raised:
        assign(MANY, alone, suspicions, NOBODY, POOLS_1)
    assert raised.value.code is ErrorCode.QUARANTINE_TOO_LARGE


EXCLUDED = st.frozensets(st.sampled_from(NODES), max_size=4)
ITEM = "benchmark:bench:1"


@given(JOINS, SUSPICIONS, HISTORY, HELD, EXCLUDED)
def test_what_touches_an_excluded_benchmark_is_in_no_train_and_nothing_else_changes(
    joins: list[Edge],
    suspicions: list[Edge],
    train: frozenset[str],
    former: dict[str, Pool],
    touched: frozenset[str],
) -> None:
    cluster_of = clusters(joins, NODES)
    excluded = frozenset(cluster_of[node] for node in touched)
    before = placed(joins, suspicions, train, former)
    after = assign(PROBLEMS, cluster_of, suspicions, train, EVEN, former, NOBODY, excluded)
    suspected = {
        cluster_of[end]
        for edge in suspicions
        for other in suspicions
        if other.shared == edge.shared and excluded & {cluster_of[other.a], cluster_of[other.b]}
        for end in (edge.a, edge.b)
    }
    for was, now in zip(before, after, strict=True):
        would_train = was.pool is Pool.TRAIN or was.reason is PoolReason.SUSPECT
        if would_train and was.cluster_id in excluded | suspected:
            assert (now.pool, now.reason) == (Pool.QUARANTINED, PoolReason.BENCHMARK)
        else:
            assert now == was


def test_a_suspicion_of_an_excluded_item_keeps_a_problem_out_of_train() -> None:
    node = drawn(Pool.TRAIN)[0]
    cluster_of = clusters([], NODES) | {ITEM: ITEM}
    suspicion = [edge(node, ITEM, EdgeKind.SUSPECT)]
    for excluded, pool in ((frozenset({ITEM}), Pool.QUARANTINED), (NOBODY, Pool.TRAIN)):
        found = assign(PROBLEMS, cluster_of, suspicion, NOBODY, EVEN, NOTHING, NOBODY, excluded)
        assert {one.problem_id: one.pool for one in found}[node] is pool


def test_no_limit_counts_what_a_benchmark_excludes() -> None:
    many = [PoolProblem(f"p{n:04}", "product") for n in range(400)]
    names = [one.problem_id for one in many]
    found = assign(many, clusters([], names), [], NOBODY, POOLS_1, NOTHING, NOBODY, frozenset(names))
    assert Pool.TRAIN not in {one.pool for one in found}
    assert {one.reason for one in found if one.pool is Pool.QUARANTINED} == {PoolReason.BENCHMARK}


def test_a_cluster_that_was_accepted_passes_and_a_larger_one_asks_again() -> None:
    many = [PoolProblem(f"p{n:04}", "product") for n in range(400)]
    names = [one.problem_id for one in many]
    together = clusters([edge(names[0], name, EdgeKind.GOLD_ID) for name in names[1:30]], names)

    def draw_pools(accepted: Accepted) -> list[Assignment]:
        return assign(many, together, [], NOBODY, POOLS_1, NOTHING, NOBODY, NOBODY, accepted)

    # 30 of 400 is over the twentieth that the plan allows.
    for too_little in (Accepted(), Accepted(component=29)):
        with pytest.raises(SluiceError) as raised:
            draw_pools(too_little)
        assert raised.value.code is ErrorCode.COMPONENT_TOO_LARGE
    assert draw_pools(Accepted(component=30)) == draw_pools(Accepted(everything=True))


def test_an_accepted_quarantine_passes() -> None:
    many = [PoolProblem(f"p{n:04}", "product") for n in range(400)]
    names = [one.problem_id for one in many]
    held = {name: Pool.EVAL for name in names}
    published = frozenset(names)
    with pytest.raises(SluiceError) as raised:
        assign(many, clusters([], names), [], published, POOLS_1, held)
    assert raised.value.code is ErrorCode.QUARANTINE_TOO_LARGE
    found = assign(many, clusters([], names), [], published, POOLS_1, held, accepted=Accepted(everything=True))
    assert {(one.pool, one.reason) for one in found} == {(Pool.QUARANTINED, PoolReason.PUBLISHED)}
