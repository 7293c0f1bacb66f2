"""Look-alikes: agents that do and say the same on nearly all problems they share fill a problem's places together."""

from dataclasses import replace
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from service.domain.attribution.classes import Trust
from service.domain.leaks.families import FAMILIES_1, FamilyRule
from service.domain.leaks.likeness import Behaviour, alike, behaviour, pairs
from service.domain.rows.candidates import Candidate
from service.domain.rows.splits import Config, Split
from service.domain.trajectory import ExecutionKind, Step, ToolCall, Trajectory

RULE = replace(FAMILIES_1, shared_problems=4, same_share=0.75)


def did(version: str, digests: str) -> list[Behaviour]:
    """What a version did at one problem a letter; `-`: it was not given the problem."""
    return [Behaviour(version, f"f{version}", f"p{n}", what) for n, what in enumerate(digests) if what != "-"]


def test_the_same_on_nearly_all_shared_problems_is_alike() -> None:
    assert pairs([*did("a", "xyzw"), *did("b", "xyzw")], RULE) == [("a", "b")]
    assert pairs([*did("a", "xyzw"), *did("b", "xyzq")], RULE) == [("a", "b")]  # three of four are 0.75
    assert pairs([*did("a", "xyzw"), *did("b", "xyqq")], RULE) == []
    assert pairs([*did("a", "xyzw----"), *did("b", "xyzwqqqq")], RULE) == [("a", "b")]  # of those both have


def test_too_few_shared_problems_say_nothing() -> None:
    assert pairs([*did("a", "xyz"), *did("b", "xyz")], RULE) == []


def test_a_version_that_did_several_things_did_any_of_them() -> None:
    assert pairs([*did("a", "xyzw"), *did("a", "qqqq"), *did("b", "qyqw")], RULE) == [("a", "b")]


behaviours = st.lists(
    st.builds(
        lambda version, problem, what: Behaviour(version, f"f{version}", problem, what),
        st.sampled_from("abcde"),
        st.sampled_from("12345678"),
        st.sampled_from("xy"),
    ),
    max_size=60,
)


@given(behaviours, st.integers(1, 5), st.sampled_from([0.5, 0.8, 1.0]))
def test_it_is_what_comparing_all_pairs_gives(made: list[Behaviour], least: int, share: float) -> None:
    rule = FamilyRule(shared_problems=least, same_share=share)
    expected = []
    for one, other in combinations("abcde", 2):
        both = {b.problem_id for b in made if b.version == one} & {b.problem_id for b in made if b.version == other}
        same = {
            b.problem_id
            for b in made
            if b.version == one and b._replace(version=other, family=f"f{other}") in set(made)
        }
        if len(both) >= least and len(same) >= share * len(both):
            expected.append((one, other))
    assert pairs(made, rule) == expected
    assert pairs(made[::-1], rule) == expected


def test_thousands_of_copies_cost_no_more_than_their_number() -> None:
    copies = [one for n in range(3_000) for one in did(f"v{n:04}", "xyzw")]
    found = pairs(copies, RULE)
    assert len(found) < 17 * 3_000
    reached = {"v0000"}
    for one, other in found:
        if one in reached:
            reached.add(other)
    assert len(reached) == 3_000


def test_only_calls_and_words_count_and_not_what_came_back() -> None:
    call = ToolCall(name="find_product", arguments={"q": "shoe", "page": 1}, result=[1])
    said = Trajectory(kind=ExecutionKind.LEGACY, steps=(Step(index=0, think="I  look.", calls=(call,)),))
    call = ToolCall(name="find_product", arguments={"page": 1, "q": "shoe"}, result=[2, 3])
    again = Trajectory(kind=ExecutionKind.LEGACY, steps=(Step(index=0, think="I look.", calls=(call,)),))
    other = Trajectory(kind=ExecutionKind.LEGACY, steps=(Step(index=0, think="I see.", calls=(call,)),))
    digests = [behaviour("v", "f", "p", one).digest for one in (said, again, other)]
    assert digests[0] == digests[1] != digests[2]


def test_candidates_of_look_alikes_are_put_under_one_family() -> None:
    kept = [*did("a", "xyzw"), *did("b", "xyzw"), *did("c", "qqqq")]
    candidates = [
        Candidate(
            key=f"{one.version}{one.problem_id}",
            problem_id=one.problem_id,
            category="product",
            family=one.family,
            config=Config.AGENTIC,
            split=Split.TRAIN,
            trust=Trust.CLAIMED,
            query_confirmed=True,
            calls_digest=one.digest,
            signature=b"",
            distinct_calls=1,
            repeated_calls=0,
            reformulations=0,
            verified=False,
        )
        for one in kept
    ]
    put = alike(candidates, kept, RULE)
    assert [one.key for one in put] == [one.key for one in candidates]
    assert [one.family for one in put] == ["fa"] * 8 + ["fc"] * 4
    assert alike(candidates, kept, FAMILIES_1) == candidates  # four problems are too few for it
