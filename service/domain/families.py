"""Which agent versions are one family: by hotkey, by near-duplicate code, by near-duplicate behaviour.

A family is the unit of independence: what its members say counts once. Links by behaviour are weaker evidence, and
only keep copies from filling a problem's places. Families only ever grow together: a link is never taken back.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from service.domain.canonical import digest
from service.domain.code_sketch import Sketch


@dataclass(frozen=True, slots=True)
class FamilyRule:
    """The numbers that families are made by."""

    name: str = "families-1"
    version: int = 1
    code_jaccard: float = 0.8
    """Share of the shingles of both sources that are common to them, from which one is a near-duplicate."""
    code_containment: float = 0.93
    """The same, as a share of the smaller one's: a copy with much beside it."""
    least_shingles: int = 100
    """Shorter sources are alike only if they are equal: there is little to tell them by."""
    shared_problems: int = 20
    """Problems that two versions must have in common before their behaviour can be alike."""
    same_share: float = 0.95
    """Share of those on which they make the same calls and say the same."""

    @property
    def digest(self) -> str:
        """Sha256 hex of every number that can change a family."""
        return digest(self)


FAMILIES_1 = FamilyRule()


class CodePair(NamedTuple):
    """Two near-duplicate sources, `a < b` by place."""

    a: int
    b: int
    similarity: float
    """The larger of Jaccard similarity and containment in the smaller."""


class Behaviour(NamedTuple):
    """What one agent version did at one problem: its calls and think texts, as a digest."""

    version: str
    problem_id: str
    digest: str


def near_code(sketches: Sequence[Sketch], new: Iterable[int], rule: FamilyRule) -> Iterator[CodePair]:
    """Near-duplicates of each of the `new` among all; exact over the shingles that the sketches kept.

    Cost per new one: the number of places where one of its shingles is kept.
    """
    if not sketches:
        return
    sizes = np.array([len(one) for one in sketches])
    owners = np.repeat(np.arange(len(sketches)), sizes)
    shingles = np.concatenate(list(sketches))
    order = np.argsort(shingles, kind="stable")
    shingles, owners = shingles[order], owners[order]
    for place in new:
        mine = sketches[place]
        starts, ends = np.searchsorted(shingles, mine, "left"), np.searchsorted(shingles, mine, "right")
        spans = [owners[start:end] for start, end in zip(starts, ends, strict=True)]
        shared = np.bincount(np.concatenate(spans or [owners[:0]]), minlength=len(sketches))
        smaller = np.minimum(sizes, len(mine))
        jaccard = shared / np.maximum(1, sizes + len(mine) - shared)
        contained = shared / np.maximum(1, smaller)
        alike = (jaccard >= rule.code_jaccard) | (contained >= rule.code_containment)
        for other in np.flatnonzero(alike & ((smaller >= rule.least_shingles) | (jaccard == 1.0))):
            if other != place:
                similarity = float(max(jaccard[other], contained[other]))
                yield CodePair(min(place, int(other)), max(place, int(other)), similarity)


NEIGHBOURS = 16
"""Versions that did the same at a problem, with which each is compared: copies of copies are found through others."""


def alike_in_behaviour(behaviours: Iterable[Behaviour], rule: FamilyRule) -> list[tuple[str, str]]:
    """Pairs of versions that did the same on nearly all of the problems they share, sorted.

    Where many did the same at a problem, each is compared with those next to it, so that the cost is that of the
    behaviours. A version that did several things at a problem did the same as another if it did any of its.
    """
    problems: defaultdict[str, set[str]] = defaultdict(set)
    same: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for one in behaviours:
        problems[one.version].add(one.problem_id)
        same[one.problem_id, one.digest].add(one.version)
    agreed: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for (problem_id, _), versions in same.items():
        ordered = sorted(versions)
        for place, version in enumerate(ordered):
            for other in ordered[place + 1 : place + 1 + NEIGHBOURS]:
                agreed[version, other].add(problem_id)
    found = []
    for (version, other), at in agreed.items():
        if len(at) >= rule.same_share * rule.shared_problems:
            shared = len(problems[version] & problems[other])
            if shared >= rule.shared_problems and len(at) >= rule.same_share * shared:
                found.append((version, other))
    return sorted(found)


def joined(families: Iterable[str], links: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The family that each is part of once all links are drawn, named after its member that sorts first.

    Independent of the order and repetition of both. A link of one that is not among `families` joins what it names.
    """
    parent: dict[str, str] = {family: family for family in families}

    def root(family: str) -> str:
        parent.setdefault(family, family)
        while parent[family] != family:
            parent[family] = parent[parent[family]]
            family = parent[family]
        return family

    for one, other in links:
        low, high = sorted((root(one), root(other)))
        parent[high] = low
    return {family: root(family) for family in sorted(parent)}


def sizes(family_of: Mapping[str, str]) -> dict[str, int]:
    """Number of members by family."""
    return dict(Counter(family_of.values()))
