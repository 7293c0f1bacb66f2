"""Which agent versions are one family: by hotkey, by near-duplicate code, by near-duplicate behaviour.

A family is the unit of independence: what its members say counts once. Links by behaviour are weaker evidence, and
only keep copies from filling a problem's places. Families only ever grow together: a link is never taken back.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from service.domain.agent_code.sketch import Sketch
from service.domain.canonical import digest


@dataclass(frozen=True, slots=True)
class FamilyRule:
    """The numbers that families are made by."""

    name: str = "families-1"
    version: int = 1
    code_jaccard: float = 0.75
    """Share of the shingles of both sources that are common to them, from which one is a near-duplicate."""
    code_containment: float = 0.9
    """The same, as a share of the smaller one's: a copy with much beside it."""
    least_shingles: int = 60
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


class CodedAgent(NamedTuple):
    """An agent version whose code is known."""

    version: str
    family: str
    code_sha256: str


class Link(NamedTuple):
    """Two families that are one, and the versions that show it; `family_a < family_b`."""

    family_a: str
    family_b: str
    version_a: str
    version_b: str
    similarity: float


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


class Kin:
    """Families that are one another's, as links join them. Independent of the order of links."""

    def __init__(self, links: Iterable[tuple[str, str]] = ()) -> None:
        self._parent: dict[str, str] = {}
        for one, other in links:
            self.join(one, other)

    def root(self, family: str) -> str:
        """What the whole family is called: its member that sorts first."""
        parent = self._parent
        while (above := parent.setdefault(family, family)) != family:
            parent[family] = parent[above]
            family = above
        return family

    def join(self, one: str, other: str) -> bool:
        """Join two; returns whether they were apart."""
        low, high = sorted((self.root(one), self.root(other)))
        self._parent[high] = low
        return low != high

    def names(self) -> dict[str, str]:
        """What every family that was named is called."""
        return {family: self.root(family) for family in sorted(self._parent)}


def joined(families: Iterable[str], links: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What each family is called once all links are drawn, those included that only a link names."""
    kin = Kin(links)
    for family in families:
        kin.root(family)
    return kin.names()


def code_links(
    agents: Sequence[CodedAgent],
    sketches: Mapping[str, Sketch],
    new: Iterable[str],
    known: Iterable[tuple[str, str]],
    rule: FamilyRule,
) -> list[Link]:
    """Links that join families whose code is the same or nearly so, where none does already.

    Args:
        agents: every version with code.
        sketches: of every source, by sha256.
        new: versions that were never compared with the others.
        known: pairs of families that links join already.
        rule: how alike code must be.

    Returns:
        No more links than it takes: what is one family through others is not linked again.
    """
    kin, found = Kin(known), []
    order, holders = sorted(sketches), defaultdict[str, list[CodedAgent]](list)
    for agent in sorted(agents):
        holders[agent.code_sha256].append(agent)
    fresh = set(new)
    changed = [sha256 for sha256 in order if any(agent.version in fresh for agent in holders[sha256])]
    for sha256 in changed:
        for agent in holders[sha256][1:]:
            found += _link(kin, holders[sha256][0], agent, 1.0)
    place = {sha256: number for number, sha256 in enumerate(order)}
    for pair in near_code([sketches[one] for one in order], [place[one] for one in changed], rule):
        ones, others = holders[order[pair.a]], holders[order[pair.b]]
        if ones and others:
            found += _link(kin, ones[0], others[0], pair.similarity)
    return found


def _link(kin: Kin, one: CodedAgent, other: CodedAgent, similarity: float) -> list[Link]:
    if not kin.join(one.family, other.family):
        return []
    first, last = sorted((one, other), key=lambda agent: agent.family)
    return [Link(first.family, last.family, first.version, last.version, similarity)]
