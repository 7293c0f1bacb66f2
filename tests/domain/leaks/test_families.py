"""Families: by hotkey, by code that is nearly the same, however it is dressed up; and no further."""

import random
import re
import time
from collections.abc import Iterable
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.agent_code.sketch import Sketch, sketch
from service.domain.leaks.families import FAMILIES_1, CodedAgent, FamilyRule, Kin, code_links, joined, near_code
from tests.domain import agent_sources as sources

WORDS = re.compile(r"(?<![\"'\w.])(messages|steps|results|content|found|think|number|call|terms|shopper|picked)\b")


def renamed(source: str) -> str:
    """Local names spelled otherwise, and other numbers."""
    return re.sub(r"\b\d+\b", "77", WORDS.sub(lambda name: name[0][::-1], source))


def reformatted(source: str) -> str:
    """Other comments, blank lines, quotes and words."""
    lines = [
        f"{line}  # {place}" if line.strip() and '"""' not in line else line
        for place, line in enumerate(source.split("\n"))
    ]
    return "\n\n".join(lines[:20]) + "\n" + "\n".join(lines[20:]).replace("Searching", "Seeking")


def shuffled(source: str) -> str:
    """Top-level functions in another order."""
    head, *functions = re.split(r"\n\n\n(?=def |@Tool|class )", source)
    return "\n\n\n".join([head, *functions[::-1]])


def padded(source: str) -> str:
    """With much more beside it."""
    more = "\n\n".join(f"def unused_{n}(a, b):\n    return [a + {n}, b * len(str(a)), {{'k': b}}]" for n in range(6))
    return source + "\n\n" + more + "\n\n" + "\n".join(f"TABLE_{n} = ({n}, 'x', [{n}, 3.0], None)" for n in range(30))


def similarity(one: str, other: str) -> float:
    """Jaccard similarity of two sources' sketches."""
    a, b = sketch(one.encode()), sketch(other.encode())
    shared = len(np.intersect1d(a, b))
    return shared / (len(a) + len(b) - shared)


def alike(one: str, other: str) -> bool:
    return bool(list(near_code([sketch(one.encode()), sketch(other.encode())], [0], FAMILIES_1)))


KINDS = [
    "REACT",
    "NATIVE",
    "TABLE",
    "BRANCHES",
    "REGEX",
    "CLASSIFY",
    "EXTRACT",
    "ECHO",
    "FORGED_INLINE",
    "FORGED_CAREFULLY",
]


@pytest.mark.parametrize("change", [renamed, reformatted, shuffled, padded])
@pytest.mark.parametrize("kind", ["REACT", "NATIVE", "ECHO"])
def test_a_copy_that_is_dressed_up_is_found(change: object, kind: str) -> None:
    source = getattr(sources, kind)
    copy = change(source)  # type: ignore[operator]
    compile(copy, "copy", "exec")  # the change left it a program
    assert alike(source, copy)


def test_agents_that_share_a_template_are_not_one() -> None:
    """Each starts with the same 45 lines, half of most of them."""
    for one, other in combinations(KINDS, 2):
        assert not alike(getattr(sources, one), getattr(sources, other)), (one, other)
    assert similarity(sources.REGEX, sources.CLASSIFY) > 0.3


def test_a_hybrid_made_of_another_is_one_with_it() -> None:
    assert alike(sources.NATIVE, sources.HYBRID)


def test_names_and_texts_play_no_part() -> None:
    assert np.array_equal(
        sketch(b"def f(a):\n    return [a, 'x', 1] + a.b(c=3)\n" * 3),
        sketch(b"def gg(zz):\n    return [zz, 'yyy', 22] + zz.k(l=4.5)\n" * 3),
    )
    assert len(sketch(b"")) == len(sketch(b"def f(:")) == 0


def test_short_sources_are_alike_only_if_equal() -> None:
    short = "def agent_main(problem):\n" + "\n".join(f"    x{n} = [y, {n}] + z({n})" for n in range(8))
    assert len(sketch(short.encode())) < FAMILIES_1.least_shingles
    assert alike(short, short)
    assert not alike(short, short + "\n    return [x1 for x1 in y if x1 not in z]")


numbers = st.lists(st.integers(0, 40), min_size=0, max_size=30, unique=True).map(
    lambda n: np.array(sorted(n), dtype=np.uint64)
)


@given(st.lists(numbers, min_size=1, max_size=12), st.floats(0.2, 1.0), st.floats(0.3, 1.0), st.integers(0, 6))
def test_near_code_finds_what_comparing_all_pairs_does(
    sketches: list[Sketch], jaccard: float, containment: float, least: int
) -> None:
    rule = FamilyRule(code_jaccard=jaccard, code_containment=containment, least_shingles=least)
    expected = set()
    for a, b in combinations(range(len(sketches)), 2):
        one, other = set(sketches[a].tolist()), set(sketches[b].tolist())
        shared, smaller = len(one & other), min(len(one), len(other))
        near = shared >= jaccard * max(1, len(one | other)) or shared >= containment * max(1, smaller)
        if near and shared and (smaller >= least or one == other):
            expected.add((a, b))
    found = {(pair.a, pair.b) for pair in near_code(sketches, range(len(sketches)), rule)}
    assert found == expected


pairs = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("abcdefgh")), max_size=12)


def reached(families: Iterable[str], links: list[tuple[str, str]], start: str) -> set[str]:
    found = {start}
    for _ in links:
        found |= {b for a, b in links if a in found} | {a for a, b in links if b in found}
    return found


@given(pairs, st.randoms(use_true_random=False))
def test_families_are_what_can_be_reached_over_links(links: list[tuple[str, str]], rng: random.Random) -> None:
    expected = {name: min(reached("abcdefgh", links, name)) for name in "abcdefgh"}
    assert joined("abcdefgh", links) == expected
    assert joined("hgfedcba", rng.sample(links, len(links)) + links) == expected


def agents(*named: tuple[str, str, str]) -> list[CodedAgent]:
    return [CodedAgent(*one) for one in named]


def test_equal_code_joins_families_and_one_hotkeys_versions_are_one_already() -> None:
    shape = {"s1": sketch(sources.REACT.encode()), "s2": sketch(sources.REGEX.encode())}
    known = agents(("v1", "f1", "s1"), ("v2", "f2", "s1"), ("v3", "f2", "s2"), ("v4", "f3", "s2"), ("v5", "f3", "s1"))
    links = code_links(known, shape, ["v1", "v2", "v3", "v4", "v5"], [], FAMILIES_1)
    assert {(link.family_a, link.family_b) for link in links} == {("f1", "f2"), ("f1", "f3")}  # two links join three
    assert {link.similarity for link in links} == {1.0}
    assert code_links(known, shape, ["v5"], [("f1", "f2"), ("f2", "f3")], FAMILIES_1) == []
    assert code_links(known[:1], shape, ["v1"], [], FAMILIES_1) == []


def test_families_do_not_depend_on_the_order_in_which_agents_come() -> None:
    copies = [sources.NATIVE, renamed(sources.NATIVE), sources.HYBRID, sources.REACT, reformatted(sources.REACT)]
    shape = {f"s{n}": sketch(copy.encode()) for n, copy in enumerate(copies)}
    everyone = agents(*((f"v{n}", f"f{n}", f"s{n}") for n in range(len(copies))))
    for order in list(permutations(range(len(copies))))[::7]:
        links: list[tuple[str, str]] = []
        for place, newest in enumerate(order):
            here = [everyone[n] for n in order[: place + 1]]
            there = {agent.code_sha256: shape[agent.code_sha256] for agent in here}
            drawn = code_links(here, there, [everyone[newest].version], links, FAMILIES_1)
            links += [(link.family_a, link.family_b) for link in drawn]
        assert Kin(links).names() == {"f0": "f0", "f1": "f0", "f2": "f0", "f3": "f3", "f4": "f3"}


@pytest.mark.nightly
def test_five_thousand_versions_are_compared_in_minutes() -> None:
    """A third of them variants of one agent, which share nearly all shingles; the rest share a template."""
    rng = np.random.default_rng(15)
    template, copied = rng.integers(0, 2**63, 200), rng.integers(0, 2**63, 400)
    made = [
        np.unique(np.concatenate([template, copied[: 395 + n % 5] if n % 3 == 0 else rng.integers(0, 2**63, 400)]))
        for n in range(5_000)
    ]
    shape = {f"s{n:04}": one.astype(np.uint64) for n, one in enumerate(made)}
    everyone = agents(*((f"v{n:04}", f"f{n:04}", f"s{n:04}") for n in range(5_000)))
    began = time.monotonic()
    links = code_links(everyone, shape, [one.version for one in everyone], [], FAMILIES_1)
    assert time.monotonic() - began < 300
    assert len(links) == len(range(0, 5_000, 3)) - 1


def test_every_number_of_the_rule_is_in_its_digest() -> None:
    rules = [FamilyRule(code_jaccard=0.7), FamilyRule(code_containment=0.8), FamilyRule(least_shingles=9)]
    rules += [FamilyRule(shared_problems=9), FamilyRule(same_share=0.9), FAMILIES_1]
    assert len({rule.digest for rule in rules}) == len(rules)


@pytest.mark.shared
def test_of_the_recorded_sources_two_are_one_and_none_else(shared_data: Path) -> None:
    paths = sorted((shared_data / "agent_code").glob("*.py"))
    found = near_code([sketch(path.read_bytes()) for path in paths], range(len(paths)), FAMILIES_1)
    assert {(paths[pair.a].stem, paths[pair.b].stem) for pair in found} == {("hybrid_native", "native_tools")}
