"""Selection: caps, duplicates, reasons, and independence of order."""

import dataclasses
import math
import random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from service.domain.attribution.provenance import Trust
from service.domain.rows.candidates import SELECTION_1, Candidate, SelectionPolicy, candidate
from service.domain.rows.minhash import resemblance, shingles, signature
from service.domain.rows.selection import SelectionReason, points, select
from service.domain.rows.splits import Config, Split
from service.domain.trajectory import ExecutionKind, Step, ToolCall, Trajectory
from tests.domain.sample_rows import problem, shopping_trajectory, shopping_verdict


def make(key: str, **changes: object) -> Candidate:
    base = Candidate(
        key=key,
        problem_id="p",
        category="product",
        family=key,
        config=Config.AGENTIC,
        split=Split.TRAIN,
        trust=Trust.CLAIMED,
        query_confirmed=True,
        calls_digest=key,
        signature=b"",
        distinct_calls=4,
        repeated_calls=0,
        reformulations=0,
        verified=False,
    )
    return dataclasses.replace(base, **changes)


def test_points_are_derived_from_the_calls():
    trajectory = shopping_trajectory()
    one = candidate("k", "f", problem(), trajectory, shopping_verdict(), split=Split.TRAIN)
    # 4 distinct calls of 8, one search (no reformulation), the recommended product was viewed, no call repeated.
    assert points(one, SELECTION_1) == 4 / 8 + 0 + 1 + 1
    # Two of four calls repeat earlier ones: 2 distinct calls.
    looping = make("k", distinct_calls=2, repeated_calls=2, reformulations=3)
    assert points(looping, SELECTION_1) == 2 / 8 + 1 + 0 + 0.5


def test_calls_that_mean_the_same_make_duplicates():
    first = shopping_trajectory()
    view = msgspec.structs.replace(first.steps[1].calls[0], arguments={"shop": None, "product_ids": [" 77 "]})
    steps = (first.steps[0], msgspec.structs.replace(first.steps[1], calls=(view,)), first.steps[2])
    other = msgspec.structs.replace(first, steps=steps)
    one, two = (candidate("k", "f", problem(), each, shopping_verdict(), split=Split.TRAIN) for each in (first, other))
    assert one.calls_digest == two.calls_digest


def episode(*calls: ToolCall) -> Trajectory:
    steps = tuple(Step(index=index, calls=(call,)) for index, call in enumerate(calls))
    return Trajectory(kind=ExecutionKind.ENVPACK, query="a kettle", steps=steps)


def test_an_episode_is_ranked_by_its_own_tools():
    listing = {"results": [{"product_id": "p1"}, {"product_id": "p2"}]}
    search = ToolCall(name="search", arguments={"query": "kettle"}, result=listing)
    narrow = ToolCall(name="filter", arguments={"max_price": 9}, result=listing)
    failed = ToolCall(name="place_test_order", arguments={"product_id": "p9"}, error_code="bad_arguments")
    order = ToolCall(name="place_test_order", arguments={"product_id": "p1"}, result={"ok": 1})
    checked = candidate(
        "k", "f", problem(), episode(search, narrow, failed, order), shopping_verdict(), split=Split.TRAIN
    )
    # Two different searches are one reformulation, and the second shows the product again.
    assert (checked.reformulations, checked.verified) == (1, True)
    blind = candidate("k", "f", problem(), episode(search, order), shopping_verdict(), split=Split.TRAIN)
    assert (blind.reformulations, blind.verified) == (0, False)


def test_runs_that_were_taken_back_go_first():
    rows = [make("a", tombstoned=True, trust=Trust.CONTRADICTED), make("b")]
    assert select(rows) == (("b",), {"a": SelectionReason.TOMBSTONED})
    taken_back = candidate(
        "k", "f", problem(), shopping_trajectory(), shopping_verdict(), split=Split.TRAIN, tombstoned=True
    )
    assert taken_back.tombstoned


def test_duplicates_keep_the_best_ranked_and_are_per_problem():
    rows = [make("a", calls_digest="x"), make("b", calls_digest="x", verified=True)]
    rows.append(make("c", calls_digest="x", problem_id="other"))
    selection = select(rows)
    assert selection.chosen == ("b", "c")
    assert selection.dropped == {"a": SelectionReason.DUPLICATE}


def test_caps():
    # Family cap 2: the third of one family goes, though the problem has places left.
    family = [make(f"f{i}", family="one") for i in range(3)]
    assert select(family).dropped == {"f2": SelectionReason.FAMILY_CAP}
    # Problem cap 8: ten families of one trajectory each leave two out; equal points, so keys decide.
    many = [make(f"m{i}") for i in range(10)]
    assert select(many).dropped == {"m8": SelectionReason.PROBLEM_CAP, "m9": SelectionReason.PROBLEM_CAP}


def test_what_says_nearly_the_same_is_a_near_duplicate():
    words = [f"word{number}" for number in range(300)]
    text = signature(shingles(words, 3), 128)
    # One word of 300 changed: 3 of 298 shingles differ on each side, Jaccard 295/301 = 0.98.
    changed = signature(shingles([*words[:150], "other", *words[151:]], 3), 128)
    # Half of the words are others: at most 148 of some 448 shingles are shared.
    other = signature(shingles([*words[:150], *(f"else{number}" for number in range(150))], 3), 128)
    rows = [make("a", signature=text, verified=True), make("b", signature=changed), make("c", signature=other)]
    rows.append(make("d", signature=text, problem_id="q"))
    rows.append(make("e", signature=text, config=Config.UNATTRIBUTED))
    assert select(rows) == (("a", "c", "d", "e"), {"b": SelectionReason.NEAR_DUPLICATE})


@given(st.sets(st.integers(0, 400), min_size=1), st.sets(st.integers(0, 400), min_size=1))
def test_resemblance_estimates_the_jaccard_similarity(one: set[int], other: set[int]):
    exact = len(one & other) / len(one | other)
    ours, theirs = (signature(map(str, numbers), 1024) for numbers in (one, other))
    # Six standard errors of an estimate from 1,024 draws; the CRCs of so few texts do not collide.
    assert math.isclose(resemblance(ours, theirs), exact, abs_tol=6 * 0.5 / 32)
    assert resemblance(ours, ours) == 1.0


def test_nothing_resembles_nothing():
    assert resemblance(signature((), 128), signature((), 128)) == 0.0
    assert shingles(["one", "two"], 3) == {"one two"}


def test_configurations_have_places_of_their_own():
    rows = [make(f"{config}-{index}", config=config, family="one") for config in Config for index in range(3)]
    # Two places a family in each of four configurations.
    assert select(rows).counts == {"family_cap": 4}


def test_no_category_takes_more_than_its_share_of_the_training_rows():
    rows = [make(f"a{index}", problem_id=f"a{index}", category="shop") for index in range(10)]
    rows += [make(f"b{index}", problem_id=f"b{index}") for index in range(4)]
    # 4 rows may be two fifths: 6 of the other category, the best first; all are of equal worth, so keys decide.
    dropped = dict.fromkeys(("a6", "a7", "a8", "a9"), SelectionReason.BALANCE)
    assert select(rows).dropped == dropped
    in_eval = [dataclasses.replace(row, split=Split.EVAL) for row in rows]
    assert select(in_eval).dropped == {}
    assert select(rows[:10]).dropped == {}


def test_weights_are_the_policys():
    looked = make("a", verified=True, distinct_calls=1)
    deep = make("b", distinct_calls=8)
    policy = SelectionPolicy(verification_weight=0.0)
    # 1/8 depth and 1 regularity against 1 and 1; verification adds one to the first by default.
    assert (points(looked, SELECTION_1), points(looked, policy), points(deep, policy)) == (2.125, 1.125, 2.0)


def test_a_dropped_row_takes_no_place():
    policy = SelectionPolicy(per_problem=1, min_trust=Trust.WITNESSED)
    rows = [make("a", verified=True), make("b", trust=Trust.WITNESSED)]
    selection = select(rows, policy)
    assert selection.chosen == ("b",)
    assert selection.counts == {"trust_too_low": 1}


def test_unconfirmed_queries_are_left_out_by_name():
    assert select([make("a", query_confirmed=False)]).dropped == {"a": SelectionReason.QUERY_UNCONFIRMED}
    loose = SelectionPolicy(require_confirmed_query=False)
    assert select([make("a", query_confirmed=False)], loose).chosen == ("a",)


candidates = st.lists(
    st.builds(
        make,
        st.uuids().map(str),
        problem_id=st.sampled_from("pq"),
        family=st.sampled_from("abc"),
        trust=st.sampled_from(Trust),
        query_confirmed=st.booleans(),
        calls_digest=st.sampled_from("uvwxyz"),
        distinct_calls=st.integers(1, 12),
        verified=st.booleans(),
    ),
    max_size=40,
    unique_by=lambda one: one.key,
)


@given(candidates, st.randoms(use_true_random=False))
def test_order_does_not_matter_and_nothing_is_lost(rows: list[Candidate], shuffler: random.Random):
    first = select(rows)
    shuffled = list(rows)
    shuffler.shuffle(shuffled)
    assert select(shuffled) == first
    assert sorted([*first.chosen, *first.dropped]) == sorted(row.key for row in rows)
    chosen = [row for row in rows if row.key in first.chosen]
    for row in chosen:
        assert sum(other.problem_id == row.problem_id for other in chosen) <= 8
        assert sum((other.problem_id, other.family) == (row.problem_id, row.family) for other in chosen) <= 2


def test_every_number_is_in_the_digest():
    digests = {SELECTION_1.digest}
    for field in dataclasses.fields(SelectionPolicy):
        value = getattr(SELECTION_1, field.name)
        other = Trust.WITNESSED if isinstance(value, Trust) else value + "x" if isinstance(value, str) else value + 1
        digests.add(dataclasses.replace(SELECTION_1, **{field.name: other}).digest)
    # The default and one more for each field.
    assert len(digests) == 1 + len(dataclasses.fields(SelectionPolicy))
