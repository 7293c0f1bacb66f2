"""Agent versions that behave nearly the same: the same calls and the same words on nearly all problems they share.

Weaker evidence than code: two who copied neither code nor hotkey may follow one model. It keeps look-alikes from
filling a problem's places, and says nothing of whose word counts.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from service.domain.attribution.replies import call_key
from service.domain.canonical import digest
from service.domain.leaks.families import FamilyRule, Kin
from service.domain.rows.candidates import Candidate
from service.domain.trajectory import Trajectory


class Behaviour(NamedTuple):
    """What one agent version did at one problem."""

    version: str
    family: str
    problem_id: str
    digest: str
    """Equal where calls and think texts are the same."""


def behaviour(version: str, family: str, problem_id: str, trajectory: Trajectory) -> Behaviour:
    """The calls and think texts of a trajectory, boiled down."""
    calls = [call_key(call.name, call.arguments) for call in trajectory.tool_calls]
    thinks = [" ".join((step.think or "").split()) for step in trajectory.steps]
    return Behaviour(version, family, problem_id, digest([calls, thinks]))


def alike(candidates: Sequence[Candidate], did: Iterable[Behaviour], rule: FamilyRule) -> list[Candidate]:
    """The candidates, those of look-alikes under one family."""
    did = list(did)
    family_of = {one.version: one.family for one in did}
    kin = Kin((family_of[one], family_of[other]) for one, other in pairs(did, rule))
    return [replace(one, family=kin.root(one.family)) for one in candidates]


NEIGHBOURS = 16
"""Versions that did the same at a problem, with which each is compared: copies of copies are found through others."""


def pairs(behaviours: Iterable[Behaviour], rule: FamilyRule) -> list[tuple[str, str]]:
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
