"""How likely an item is to be kept, from what verdicts have said of items like it. Chooses nothing: `planning` does.

A version of which little is known is taken to be like its family, and a family like all: Beta posteriors, each with the
one above as its prior. Counts of a level leave out those of the level below, so that nothing is counted twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

Hint = bool | None
"""Success as the source's listing tells it; None where it does not."""


class Tally(NamedTuple):
    """What verdicts have said of a group of items."""

    judged: int = 0
    kept: int = 0
    negative: int = 0
    """Clean failures among them."""

    def without(self, part: "Tally") -> "Tally":
        """The group without a part of it. A part that is not of the group leaves nothing negative."""
        judged, kept, negative = (max(0, whole - less) for whole, less in zip(self, part, strict=True))
        return Tally(judged, kept, negative)


NOTHING = Tally()


@dataclass(frozen=True, slots=True)
class ProblemKnown:
    """What is known of one problem."""

    kept: int = 0
    """Trajectories of it that are kept and count."""
    kept_by_family: Mapping[str, int] = field(default_factory=dict)
    by_hint: Mapping[Hint, Tally] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What verdicts have said, for the problems and agents that have open items."""

    overall: Mapping[Hint, Tally] = field(default_factory=dict)
    families: Mapping[tuple[str, Hint], Tally] = field(default_factory=dict)
    versions: Mapping[tuple[str, Hint], Tally] = field(default_factory=dict)
    problems: Mapping[str, ProblemKnown] = field(default_factory=dict)
    sampled: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Problems on which a version has been judged; no more than a policy's `sample_problems` need be named."""


@dataclass(frozen=True, slots=True)
class Pseudo:
    """A rate that is assumed before anything is known, and how many verdicts the assumption weighs."""

    rate: float
    weight: float


@dataclass(frozen=True, slots=True)
class Prior:
    """What is assumed before anything is known, and how far each level is taken to be like the one above."""

    kept_success: Pseudo = Pseudo(0.4, 4.0)
    kept_failure: Pseudo = Pseudo(0.002, 100.0)
    """SN15 counts it as failed; a verdict can hardly come to see it otherwise."""
    kept_untold: Pseudo = Pseudo(0.2, 4.0)
    negative_success: Pseudo = Pseudo(0.002, 100.0)
    negative_failure: Pseudo = Pseudo(0.3, 4.0)
    negative_untold: Pseudo = Pseudo(0.2, 4.0)
    family_weight: float = 2.0
    """Verdicts that the rate of all weighs in a family's."""
    version_weight: float = 1.0
    """Verdicts that a family's rate weighs in a version's. Low, since versions are mostly all or nothing: what is done
    by code is never kept."""
    problem_weight: float = 2.0
    """Kept trajectories that would have been expected of a problem before its own difficulty weighs half."""

    def kept(self, hint: Hint) -> Pseudo:
        """Of being kept."""
        return self.kept_untold if hint is None else self.kept_success if hint else self.kept_failure

    def negative(self, hint: Hint) -> Pseudo:
        """Of being a clean failure."""
        return self.negative_untold if hint is None else self.negative_success if hint else self.negative_failure


PRIOR_1 = Prior()


class Chance(NamedTuple):
    """Chances of an item, and how many verdicts on its version under the same hint they rest on."""

    kept: float
    negative: float
    judged: int


class Chances:
    """Chances of items in the light of one state of knowledge; each is worked out once."""

    def __init__(self, knowledge: Knowledge, prior: Prior) -> None:
        self._knowledge = knowledge
        self._prior = prior
        self._versions: dict[tuple[str, str, Hint], Chance] = {}
        self._problems: dict[tuple[str, Hint], float] = {}

    def of(self, version: str, family: str, problem: str, hint: Hint) -> Chance:
        """Chances of an item of this version and problem, by what its listing tells."""
        key = version, family, hint
        alone = self._versions.get(key)
        if alone is None:
            alone = self._versions[key] = self._of_version(version, family, hint)
        share = self._problems.get((problem, hint))
        if share is None:
            share = self._problems[problem, hint] = self._of_problem(problem, hint)
        return Chance(alone.kept * share, alone.negative, alone.judged)

    def _of_version(self, version: str, family: str, hint: Hint) -> Chance:
        known, prior = self._knowledge, self._prior
        own = known.versions.get((version, hint), NOTHING)
        kin = known.families.get((family, hint), NOTHING)
        all_else = known.overall.get(hint, NOTHING).without(kin)
        kin_else = kin.without(own)
        kept, negative = prior.kept(hint), prior.negative(hint)
        rates = []
        for pseudo, of_all, of_kin, of_own in (
            (kept, all_else.kept, kin_else.kept, own.kept),
            (negative, all_else.negative, kin_else.negative, own.negative),
        ):
            overall = _posterior(of_all, all_else.judged, pseudo.rate, pseudo.weight)
            of_family = _posterior(of_kin, kin_else.judged, overall, prior.family_weight)
            rates.append(_posterior(of_own, own.judged, of_family, prior.version_weight))
        return Chance(rates[0], rates[1], own.judged)

    def _of_problem(self, problem: str, hint: Hint) -> float:
        """How much rarer than elsewhere items of a problem are kept: at most 1, and 1 while nothing is known.

        Gamma-Poisson: kept over expected, each with the prior's weight added.
        """
        told = self._knowledge.problems.get(problem)
        of_problem = NOTHING if told is None else told.by_hint.get(hint, NOTHING)
        pseudo = self._prior.kept(hint)
        of_all = self._knowledge.overall.get(hint, NOTHING)
        expected = of_problem.judged * _posterior(of_all.kept, of_all.judged, pseudo.rate, pseudo.weight)
        weight = self._prior.problem_weight
        return min(1.0, (of_problem.kept + weight) / (expected + weight))


def _posterior(hits: int, tries: int, rate: float, weight: float) -> float:
    """Mean of a Beta posterior whose prior has mean `rate` and weighs `weight` tries."""
    return (hits + weight * rate) / (tries + weight)
