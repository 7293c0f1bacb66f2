"""Generation after generation: whatever is learned when, no held-out problem is ever given away by what was trained on.

A model's lineage may have seen every train split there ever was, so each generation is held against all of them.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.leaks.leakage import LEAK_1, Edge, EdgeKind, ProblemFacts, clusters, edges
from service.domain.leaks.pools import Assignment, Pool, PoolPlan, PoolProblem, Shares, assign
from service.domain.leaks.queries import near_equal
from tests.domain.leaks.test_leakage import KETTLE, KETTLE_AGAIN, TENT

PLAN = PoolPlan(shares=Shares(eval=0.35, reserve=0.15))
NAMES = [f"p{n:02}" for n in range(14)]
TEXTS = (None, KETTLE, KETTLE_AGAIN, KETTLE.upper(), TENT, "a lamp")
STRICTNESS = {Pool.TRAIN: 0, Pool.EVAL: 1, Pool.RESERVE: 2}

Ids = dict[str, frozenset[str]]
"""Product ids by problem."""


@dataclass
class Lineage:
    """Everything that was known and published so far."""

    facts: dict[str, ProblemFacts] = field(default_factory=dict)
    former: dict[str, Pool] = field(default_factory=dict)
    train: set[str] = field(default_factory=set)
    held: set[str] = field(default_factory=set)
    quarantined: frozenset[str] = frozenset()


STEP = st.tuples(
    st.lists(st.sampled_from(NAMES), max_size=6, unique=True),
    st.dictionaries(st.sampled_from(NAMES), st.frozensets(st.sampled_from("1234"), max_size=2), max_size=5),
    st.dictionaries(st.sampled_from(NAMES), st.frozensets(st.sampled_from("5678"), max_size=2), max_size=5),
    st.randoms(use_true_random=False),
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(TEXTS)), st.lists(STEP, min_size=1, max_size=6))
def test_no_generation_gives_away_what_any_other_holds_out(
    texts: dict[str, str | None], steps: list[tuple[list[str], Ids, Ids, random.Random]]
) -> None:
    line = Lineage()
    for arrived, gold, winners, rng in steps:
        learn(line, arrived, gold, winners, texts)
        if not line.facts:
            continue
        assigned = draw(line, rng)
        assert assigned == draw(line, random.Random(rng.random())), "the order of what is given must not matter"
        for one in assigned:
            before = line.former.get(one.problem_id, Pool.TRAIN)
            if one.pool in STRICTNESS:
                assert STRICTNESS[one.pool] >= STRICTNESS[before], "pools never loosen"
        train = {one.problem_id for one in assigned if one.pool is Pool.TRAIN and rng.random() < 0.7}
        held = {one.problem_id for one in assigned if one.pool is Pool.EVAL and rng.random() < 0.7}
        # Of this generation against itself and all before: what was published on both sides before a tie was known
        # cannot be undone, and is marked; nothing new may be added to it.
        for a, b in (*product(train | line.train, held), *product(train, held | line.held)):
            assert not tied(line.facts[a], line.facts[b]), (a, b)
        publish(line, assigned, train, held)


def learn(line: Lineage, arrived: Sequence[str], given: Ids, winners: Ids, texts: dict[str, str | None]) -> None:
    """Gold only ever becomes known; winners are those of now, so that ties may go again."""
    for name in arrived:
        line.facts.setdefault(name, ProblemFacts(name, "legacy_shoppingbench", "product", texts.get(name), True))
    for name, facts in line.facts.items():
        gold = facts.gold_ids | given.get(name, frozenset())
        line.facts[name] = replace(facts, gold_ids=gold, winner_ids=winners.get(name, frozenset()))


def draw(line: Lineage, rng: random.Random) -> list[Assignment]:
    """The pools of everything known, given in any order."""
    names = rng.sample(sorted(line.facts), len(line.facts))
    found = edges([line.facts[name] for name in names], LEAK_1)
    suspects = [edge for edge in found if edge.kind is EdgeKind.SUSPECT]
    return assign(
        [PoolProblem(name, "product") for name in names],
        clusters(rng.sample(found, len(found)), names),
        suspects,
        frozenset(line.train),
        PLAN,
        line.former,
        line.quarantined,
    )


def publish(line: Lineage, assigned: Sequence[Assignment], train: set[str], held: set[str]) -> None:
    line.train |= train
    line.held |= held
    for one in assigned:
        if one.pool in (Pool.EVAL, Pool.RESERVE) and line.former.get(one.problem_id) is not Pool.RESERVE:
            line.former[one.problem_id] = one.pool
    line.quarantined = frozenset(one.problem_id for one in assigned if one.pool is Pool.QUARANTINED)


def tied(a: ProblemFacts, b: ProblemFacts) -> bool:
    """One problem gives the other away: the same, its answer, or its text."""
    same_text = bool(a.query and b.query) and near_equal(a.query or "", b.query or "", LEAK_1.queries)
    answers = (a.gold_ids | a.winner_ids) & (b.gold_ids | b.winner_ids)
    return a.problem_id == b.problem_id or bool(answers) or same_text


def test_a_tie_is_an_edge_whoever_says_it() -> None:
    """The pairwise word that the tests above use is the graph's own."""
    a = ProblemFacts("a", "k", "product", KETTLE, True)
    b = ProblemFacts("b", "k", "product", KETTLE_AGAIN, True)
    assert tied(a, b)
    assert [edge.kind for edge in edges([a, b], LEAK_1)] == [EdgeKind.NEAR_QUERY]
    assert isinstance(edges([a, b], LEAK_1)[0], Edge)
