"""The planner in a simulated race, against other orders: item calls until the corpus has what it needs first.

Run from the checkout: `python -m benchmarks.plan [--seeds N] [--plot FILE]`. 100 agent versions, three validators, 90
problems: 27,000 items. Verdicts on what is asked for are known one queue later. The orders see the same races.
"""

import argparse
import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.race_plot import Curve, plot
from service.domain.harvest.chances import Hint, Knowledge, ProblemKnown, Tally
from service.domain.harvest.gains import PLAN_1, Candidate, Standing
from service.domain.harvest.planning import plan

VERSIONS, VALIDATORS, PROBLEMS, MINERS = 100, 3, 90, 40
ITEMS = VERSIONS * VALIDATORS * PROBLEMS
REQUESTS_PER_ITEM = 2
QUEUE_ITEMS = 25
"""One minute at 50 requests: what is asked for and not judged."""
SAMPLED_ON = 5
COVERAGE_TARGET, SAMPLING_TARGET = 0.02, 0.15
"""Shares of the items in which both are to be reached."""
COVERAGE = "problems with a kept trajectory, of those that have one"
SAMPLING = f"agent versions seen on {SAMPLED_ON} problems"
SUCCESS = {"product": 0.6, "shop": 0.3, "voucher": 0.3}
HARD_PROBLEMS = 9
"""Almost nobody solves them."""
LIMIT = 4_050
"""Item calls after which a planned order is broken off: the target for sampling. The others cost nothing to follow."""


class Item(NamedTuple):
    """One item of the race and what would become of it."""

    candidate: Candidate
    finished_at: float
    success: bool
    is_kept: bool
    is_negative: bool


@dataclass(frozen=True, slots=True)
class Race:
    """A simulated race."""

    items: list[Item]
    coverable: frozenset[str]
    """Problems of which some trajectory is kept."""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent version: what it is good for."""

    name: str
    family: str
    skill: float
    is_agentic: bool
    passes: float
    """Share of its successes that pass the other gates."""


def agents(rng: random.Random) -> list[Agent]:
    """Versions of forty miners. Half are driven by code and never kept; a third copy another miner's agent."""
    share = rng.uniform(0.45, 0.55)
    made: list[Agent] = []
    for number in range(VERSIONS):
        family = f"miner-{number % MINERS:02}"
        own = [agent for agent in made if agent.family == family]
        if made and rng.random() < 1 / 3:
            like = rng.choice(made)
        elif own:
            like = own[-1]
        else:
            is_agentic = rng.random() >= share
            like = Agent("", family, rng.uniform(0.5, 1.4), is_agentic, rng.uniform(0.4, 0.95))
        skill = min(1.5, max(0.3, like.skill + rng.uniform(-0.1, 0.1)))
        made.append(Agent(f"version-{number:03}", family, skill, like.is_agentic, like.passes))
    return made


def race(seed: int, *, told: bool) -> Race:
    """Simulate a race. `told`: the listing tells each item's success."""
    rng = random.Random(seed)
    names = [f"problem-{number:02}" for number in range(PROBLEMS)]
    kinds = [list(SUCCESS)[number % len(SUCCESS)] for number in range(PROBLEMS)]
    hard = set(rng.sample(names, HARD_PROBLEMS))
    ease = {name: rng.uniform(0.01, 0.08) if name in hard else rng.uniform(0.5, 1.5) for name in names}
    runs = [(agent, validator) for agent in agents(rng) for validator in range(VALIDATORS)]
    rng.shuffle(runs)
    items = []
    for agent, _ in runs:
        start = rng.uniform(0.0, 6 * 3600.0)
        for number, (name, kind) in enumerate(zip(names, kinds, strict=True)):
            success = rng.random() < min(0.97, SUCCESS[kind] * agent.skill * ease[name])
            sound = agent.is_agentic and rng.random() < agent.passes
            hint: Hint = success if told else None
            candidate = Candidate(
                len(items) + 1, name, agent.name, agent.family, hint, REQUESTS_PER_ITEM, 0, Standing.NEW
            )
            finished_at = start + 60.0 * number + rng.uniform(0.0, 300.0)
            items.append(Item(candidate, finished_at, success, success and sound, sound and not success))
    return Race(items, frozenset(item.candidate.problem_id for item in items if item.is_kept))


class Learned:
    """What verdicts have told, kept as the planner takes it."""

    def __init__(self) -> None:
        self.overall: dict[Hint, Tally] = {}
        self.families: dict[tuple[str, Hint], Tally] = {}
        self.versions: dict[tuple[str, Hint], Tally] = {}
        self.problems: dict[tuple[str, Hint], Tally] = {}
        self.kept: dict[str, dict[str, int]] = {}
        self.sampled: dict[str, frozenset[str]] = {}

    def judge(self, item: Item) -> None:
        """Learn one verdict."""
        _, problem, version, family, hint, *_ = item.candidate
        for tallies, key in (
            (self.overall, hint),
            (self.families, (family, hint)),
            (self.versions, (version, hint)),
            (self.problems, (problem, hint)),
        ):
            judged, kept, negative = tallies.get(key, Tally())  # type: ignore[attr-defined]
            tallies[key] = Tally(judged + 1, kept + item.is_kept, negative + item.is_negative)  # type: ignore[index]
        self.sampled[version] = self.sampled.get(version, frozenset()) | {problem}
        if item.is_kept:
            of_problem = self.kept.setdefault(problem, {})
            of_problem[family] = of_problem.get(family, 0) + 1

    def knowledge(self) -> Knowledge:
        """As the store would tell it."""
        problems = {problem for problem, _ in self.problems}
        known = {
            problem: ProblemKnown(
                kept=sum(self.kept.get(problem, {}).values()),
                kept_by_family=self.kept.get(problem, {}),
                by_hint={hint: tally for hint in (True, False, None) if (tally := self.problems.get((problem, hint)))},
            )
            for problem in problems
        }
        return Knowledge(self.overall, self.families, self.versions, known, self.sampled)


def planned(simulated: Race, *, limit: int = LIMIT) -> Iterator[Item]:
    """Items in the planner's order: half a queue is planned whenever so much of the queue has been judged."""
    open_items = {item.candidate.ledger_id: item for item in simulated.items}
    learned, asked, judged = Learned(), [], 0
    while open_items and len(asked) < limit:
        while len(asked) - judged > QUEUE_ITEMS // 2:
            learned.judge(asked[judged])
            judged += 1
        choices = plan(
            [item.candidate for item in open_items.values()],
            [item.candidate for item in asked[judged:]],
            learned.knowledge(),
            PLAN_1,
            QUEUE_ITEMS * REQUESTS_PER_ITEM / 2,
        )
        for choice in choices:
            item = open_items.pop(choice.item.ledger_id)
            asked.append(item)
            yield item


def covered_first(simulated: Race) -> list[Item]:
    """No order can be faster: one kept item of each problem, of versions that are to be sampled, then the rest."""
    first: dict[str, Item] = {}
    for item in simulated.items:
        if item.is_kept:
            first.setdefault(item.candidate.problem_id, item)
    chosen = list(first.values())
    seen: dict[str, set[str]] = {}
    for item in chosen:
        seen.setdefault(item.candidate.agent_version_id, set()).add(item.candidate.problem_id)
    for item in simulated.items:
        of_version = seen.setdefault(item.candidate.agent_version_id, set())
        if len(of_version) < SAMPLED_ON and item.candidate.problem_id not in of_version:
            of_version.add(item.candidate.problem_id)
            chosen.append(item)
    return chosen


def curves(simulated: Race, order: Iterator[Item] | list[Item]) -> tuple[Curve, Curve]:
    """Shares of problems with a kept trajectory and of versions seen on enough problems, by item call, until full."""
    covered: set[str] = set()
    seen: dict[str, set[str]] = {}
    sampled = 0
    coverage, sampling = [], []
    for item in order:
        if item.is_kept:
            covered.add(item.candidate.problem_id)
        of_version = seen.setdefault(item.candidate.agent_version_id, set())
        before = len(of_version)
        of_version.add(item.candidate.problem_id)
        sampled += before < SAMPLED_ON <= len(of_version)
        coverage.append(len(covered) / len(simulated.coverable))
        sampling.append(sampled / VERSIONS)
        if coverage[-1] == sampling[-1] == 1.0:
            break
    return coverage, sampling


def calls_until_full(curve: Curve) -> int | None:
    """Item calls until the share is 1; None: not reached."""
    return next((calls for calls, share in enumerate(curve, 1) if share == 1.0), None)


def orders(simulated: Race, seed: int) -> dict[str, Iterator[Item] | list[Item]]:
    """Every order by name."""
    shuffled = list(simulated.items)
    random.Random(seed).shuffle(shuffled)
    return {
        "planner": planned(simulated),
        "newest first": sorted(simulated.items, key=lambda item: -item.finished_at),
        "run by run": simulated.items,
        "random": shuffled,
        "oracle": covered_first(simulated),
    }


def measured(seeds: int, *, told: bool) -> Iterator[tuple[int, str, Curve, Curve, float]]:
    """Seed, order, both curves and processor seconds of every order on every race."""
    for seed in range(1, seeds + 1):
        simulated = race(seed, told=told)
        for name, order in orders(simulated, seed).items():
            start = time.process_time()
            coverage, sampling = curves(simulated, order)
            yield seed, name, coverage, sampling, time.process_time() - start


def main() -> None:
    """Run every order on every race, print the figures and draw the first race."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--plot", type=Path, help="write the curves of the first race here, as SVG")
    options = arguments.parse_args()
    drawn: dict[str, dict[str, Curve]] = {COVERAGE: {}, SAMPLING: {}}
    for told in (True, False):
        for seed, name, coverage, sampling, seconds in measured(options.seeds, told=told):
            figures = {
                "success_listed": told,
                "seed": seed,
                "order": name,
                "coverage_calls": calls_until_full(coverage),
                "sampling_calls": calls_until_full(sampling),
                "covered_at_end": round(coverage[-1], 4),
                "cpu_seconds": round(seconds, 1),
            }
            print(json.dumps(figures), flush=True)
            if told and seed == 1:
                drawn[COVERAGE][name], drawn[SAMPLING][name] = coverage, sampling
        if told and options.plot is not None:
            title = f"A simulated race: {VERSIONS * VALIDATORS} runs of {PROBLEMS} problems"
            marks = {COVERAGE: int(ITEMS * COVERAGE_TARGET), SAMPLING: int(ITEMS * SAMPLING_TARGET)}
            options.plot.write_text(plot(title, drawn, ITEMS, marks))


if __name__ == "__main__":
    main()
