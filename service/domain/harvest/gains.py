"""What each open item would add to the corpus per request, as things stand and with what is under way counted.

Chooses nothing: `planning` does. Every gain only falls as more is asked for, which is what lets the choice be lazy.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from enum import StrEnum
from math import sqrt
from typing import NamedTuple

from service.domain.canonical import digest
from service.domain.harvest.chances import PRIOR_1, Chance, Chances, Hint, Knowledge, Prior, ProblemKnown


class Standing(StrEnum):
    """Why an item is open."""

    NEW = "new"
    """Not given yet; what withheld it for a time is no word against it."""
    RETRY = "retry"
    """The last try failed."""
    REREAD = "reread"
    """Stored, and listed otherwise since."""


class Candidate(NamedTuple):
    """One open item. Items that differ in the ledger id alone promise the same."""

    ledger_id: int
    problem_id: str
    agent_version_id: str
    family: str
    hint: Hint
    cost: int
    """Requests it takes."""
    attempts: int
    """Tries so far that speak against the item itself."""
    standing: Standing


@dataclass(frozen=True, slots=True)
class PlanPolicy:
    """The numbers a plan is made by. Gains are in units of the first kept trajectory of a problem."""

    name: str = "plan-1"
    version: int = 1
    prior: Prior = PRIOR_1
    optimism: float = 0.5
    """A version of which nothing is known counts as so much better than its chance (a share); the bonus falls with the
    root of what was asked of it."""
    first_value: float = 1.0
    """Of the first kept trajectory of a problem."""
    sample_value: float = 0.02
    """Of seeing a version on its first problem, whatever comes of it; it falls to zero over `sample_problems`."""
    family_value: float = 0.01
    """The same for the items of a family."""
    sample_problems: int = 5
    """Distinct problems on which a version is to be seen."""
    depth_value: float = 0.02
    """Of the second kept trajectory of a problem, if by a family that has none of it; it falls as one over the kept
    trajectories of the problem, and once more over those of the family."""
    negative_value: float = 0.001
    """Of a clean failure."""
    reread_value: float = 0.005
    """Of asking again for what is stored."""
    floor_value: float = 1e-6
    """Of anything at all."""
    retry_share: float = 0.5
    """What each failed try leaves of the gain."""
    longest_due_every: int = 20
    """One choice in so many goes to the item that has waited longest."""

    @property
    def digest(self) -> str:
        """Sha256 hex of the policy."""
        return digest(self)


PLAN_1 = PlanPolicy()
"""Our own numbers; the benchmark shows what they come to."""


class Parts(NamedTuple):
    """What a gain is made of, before failed tries and cost."""

    first: float
    version: float
    family: float
    depth: float
    negative: float
    floor: float


_UNKNOWN = ProblemKnown()
_NO_PROBLEMS: frozenset[str] = frozenset()


class Underway:
    """What has been asked for and not been judged, items chosen in this plan included."""

    def __init__(self, knowledge: Knowledge, chances: Chances) -> None:
        self._chances = chances
        self.missing: defaultdict[str, float] = defaultdict(lambda: 1.0)
        """By problem: chance that nothing under way will be kept."""
        self.expected: defaultdict[str, float] = defaultdict(float)
        """By problem: kept trajectories expected."""
        self.by_family: defaultdict[tuple[str, str], float] = defaultdict(float)
        """The same by problem and family."""
        self.of_version: Counter[tuple[str, Hint]] = Counter()
        self.of_family: Counter[str] = Counter()
        self.sampled: dict[str, set[str]] = {version: set(seen) for version, seen in knowledge.sampled.items()}

    def add(self, item: Candidate) -> None:
        """Count an item as asked for. One that is stored already teaches nothing new."""
        if item.standing is Standing.REREAD:
            return
        chance = self._chances.of(item.agent_version_id, item.family, item.problem_id, item.hint).kept
        self.missing[item.problem_id] *= 1.0 - chance
        self.expected[item.problem_id] += chance
        self.by_family[item.problem_id, item.family] += chance
        self.of_version[item.agent_version_id, item.hint] += 1
        self.of_family[item.family] += 1
        self.sampled.setdefault(item.agent_version_id, set()).add(item.problem_id)


class Gains:
    """The gain of items as things stand; every part only falls as more is asked for."""

    def __init__(self, knowledge: Knowledge, policy: PlanPolicy) -> None:
        self._policy = policy
        self._knowledge = knowledge
        self._chances = Chances(knowledge, policy.prior)
        self._judged_of_family: Counter[str] = Counter()
        for (family, _), tally in knowledge.families.items():
            self._judged_of_family[family] += tally.judged
        self.underway = Underway(knowledge, self._chances)

    def chance(self, item: Candidate) -> Chance:
        """Chances of the item, without optimism."""
        return self._chances.of(item.agent_version_id, item.family, item.problem_id, item.hint)

    def problem(self, item: Candidate) -> ProblemKnown:
        """What is known of its problem."""
        return self._knowledge.problems.get(item.problem_id, _UNKNOWN)

    def gain(self, item: Candidate) -> float:
        """Expected gain per request."""
        parts = self.parts(item)
        policy = self._policy
        if item.standing is Standing.REREAD:
            return (policy.reread_value + parts.floor) * policy.retry_share**item.attempts / item.cost
        tries = item.attempts if item.standing is Standing.RETRY else 0
        return sum(parts) * policy.retry_share**tries / item.cost

    def parts(self, item: Candidate) -> Parts:
        """What its gain is made of; optimism counts what is under way of its version as known."""
        policy, underway = self._policy, self.underway
        problem_id, version, family = item.problem_id, item.agent_version_id, item.family
        chance, problem = self.chance(item), self.problem(item)
        asked = chance.judged + underway.of_version[version, item.hint]
        hoped = min(1.0, chance.kept * (1.0 + policy.optimism / sqrt(1.0 + asked)))
        first = 0.0 if problem.kept else hoped * underway.missing[problem_id] * policy.first_value
        of_family = problem.kept_by_family.get(family, 0) + underway.by_family[problem_id, family]
        depth = hoped * policy.depth_value / ((1.0 + problem.kept + underway.expected[problem_id]) * (1.0 + of_family))
        seen = underway.sampled.get(version, _NO_PROBLEMS)
        left = 0 if problem_id in seen else max(0, policy.sample_problems - len(seen))
        seen_of_family = self._judged_of_family[family] + underway.of_family[family]
        family_left = max(0, policy.sample_problems - seen_of_family)
        return Parts(
            first=first,
            version=policy.sample_value * left / policy.sample_problems,
            family=policy.family_value * family_left / policy.sample_problems,
            depth=depth,
            negative=policy.negative_value * chance.negative / (1.0 + asked),
            floor=policy.floor_value,
        )
