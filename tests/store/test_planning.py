"""What the planner is told, against rows counted by hand."""

from datetime import timedelta

import pytest
from sqlalchemy import Engine

from service.domain.harvest.chances import Hint, ProblemKnown, Tally
from service.domain.harvest.gains import Candidate, Standing
from service.domain.harvest.planning import plan
from service.domain.policy import DEFAULT_POLICIES
from service.domain.sn15.tombstones import Subject, TombstoneReason
from service.store import policies
from service.store.corpus import tombstones, trajectories, verdicts
from service.store.corpus.tombstones import Word
from service.store.corpus.trajectories import NewTrajectory
from service.store.corpus.verdicts import NewVerdict
from service.store.engine import reading, transaction
from service.store.harvest import ledger, listings, planning
from service.store.harvest.ledger import ExpectedItem, Note
from service.store.harvest.planning import Outlook
from service.store.harvest.reach import Reach, reach
from service.store.models import AgentVersion, EvaluationRun, LedgerState, Problem
from tests.store.conftest import NOW

RULES = DEFAULT_POLICIES.rules.digest
PROBLEMS = ("p", "q", "r")
LEGACY, ENVPACK = "legacy_shoppingbench", "envpack"
Numbers = dict[tuple[str, str], int]
"""By run and problem."""
FAMILIES = {"a1": "a", "a2": "a", "b1": "b"}
RUNS = {"run-a1": ("a1", LEGACY), "run-a1-again": ("a1", LEGACY), "run-a2": ("a2", LEGACY), "run-b1": ("b1", ENVPACK)}
SUCCESS: dict[tuple[str, str], Hint] = {
    ("run-a1", "p"): True,
    ("run-a1", "q"): True,
    ("run-a1-again", "p"): True,
    ("run-a2", "p"): True,
}
"""Everything else is a failure, but for the runs of envpack: their listing tells nothing."""


def hint(run: str, problem: str) -> Hint:
    return None if RUNS[run][1] == ENVPACK else SUCCESS.get((run, problem), False)


@pytest.fixture
def items(engine: Engine) -> Numbers:
    """Four runs of three problems; ledger ids."""
    with transaction(engine) as session:
        agents = [
            AgentVersion(agent_version_id=version, agent_name="n", family=family, version_number=1, source={})
            for version, family in FAMILIES.items()
        ]
        listings.save_agents(session, agents)
        runs = [
            EvaluationRun(
                eval_run_id=run,
                agent_version_id=version,
                phase="RACE",
                kind=kind,
                status="SUCCESS",
                is_over=True,
                counts=True,
                source={},
            )
            for run, (version, kind) in RUNS.items()
        ]
        listings.save_runs(session, runs)
        listings.save_problems(session, [Problem(problem_id=p, kind=LEGACY, category="product") for p in PROBLEMS])
        expected = []
        for run in RUNS:
            for problem in PROBLEMS:
                told = hint(run, problem)
                judgement = {} if told is None else {"success": told}
                expected.append(ExpectedItem(run, problem, problem, None, judgement))
        ledger.expect(session, expected, NOW)
        policies.record(session, "rules", "sluice-1/1", RULES, {})
    with reading(engine) as session:
        rows = session.connection().exec_driver_sql("SELECT eval_run_id, problem_id, ledger_id FROM harvest_ledger")
        return {(run, problem): number for run, problem, number in rows}


def fetch(engine: Engine, items: Numbers, key: tuple[str, str], outcome: str | None) -> int:
    """Store an item, with a verdict or none; returns the trajectory."""
    run, problem = key
    with transaction(engine) as session:
        new = NewTrajectory(items[key], run, problem, problem, RUNS[run][1], b"[]", "e" * 64, {})
        (number,) = trajectories.add(session, [new])
        ledger.mark_fetched(session, [items[key]], NOW)
        if outcome is not None:
            reason = "kept" if outcome == "kept" else "loop"
            row = NewVerdict(number, "e" * 64, outcome, reason, "agentic", "claimed", [], {}, [], None)
            assert verdicts.add(session, RULES, [row]) == 1
        return number


def told(engine: Engine, sent: tuple[int, ...] = (), seconds: float = 1.0) -> Outlook:
    with reading(engine) as session:
        return planning.outlook(session, RULES, NOW + timedelta(seconds=seconds), sent)


def test_candidates_are_the_open_items_with_all_that_matters(engine: Engine, items: Numbers) -> None:
    found = told(engine)
    assert sorted(found.candidates) == sorted(
        Candidate(
            number, problem, RUNS[run][0], FAMILIES[RUNS[run][0]], hint(run, problem), 1 if run == "run-b1" else 2, 0,
            Standing.NEW,
        )
        for (run, problem), number in items.items()
    )  # fmt: skip
    assert found.in_flight == []
    assert found.knowledge.overall == {}


def test_what_is_claimed_sent_or_unjudged_is_under_way(engine: Engine, items: Numbers) -> None:
    claimed, sent = items["run-a1", "p"], items["run-a1", "q"]
    with transaction(engine) as session:
        ledger.claim(session, [claimed], "message", NOW, 60.0)
    fetch(engine, items, ("run-a2", "p"), None)
    found = told(engine, (sent,))
    flying = {claimed, sent, items["run-a2", "p"]}
    assert {item.ledger_id for item in found.in_flight} == flying
    assert {item.ledger_id for item in found.candidates} == set(items.values()) - flying
    # A claim that has ended keeps no one.
    assert claimed in {item.ledger_id for item in told(engine, seconds=61.0).candidates}


def test_closed_items_are_neither(engine: Engine, items: Numbers) -> None:
    gone, put_off, failed, changed = (items["run-a1", "p"], items["run-a1", "q"], items["run-a1", "r"], ("run-a2", "p"))
    fetch(engine, items, changed, "kept")
    with transaction(engine) as session:
        ledger.claim(session, [gone, put_off, failed], "m", NOW, 60.0)
        ledger.mark_refused(session, gone, "m", Note(LedgerState.GONE, "no_object", NOW, 1))
        later = NOW + timedelta(hours=1)
        ledger.mark_refused(session, put_off, "m", Note(LedgerState.EMBARGOED, "race_in_flight", later, 1))
        ledger.mark_refused(session, failed, "m", Note(LedgerState.FAILED, "truncated", NOW, 2))
        session.connection().exec_driver_sql(
            f"UPDATE harvest_ledger SET state = 'changed' WHERE ledger_id = {items[changed]}"
        )
    by_id = {item.ledger_id: item for item in told(engine).candidates}
    assert not by_id.keys() & {gone, put_off}
    assert (by_id[failed].standing, by_id[failed].attempts) == (Standing.RETRY, 2)
    assert by_id[items[changed]].standing is Standing.REREAD
    assert told(engine).in_flight == []


@pytest.fixture
def judged(engine: Engine, items: Numbers) -> Numbers:
    """Five verdicts; trajectories by item."""
    outcomes = {
        ("run-a1", "p"): "kept",
        ("run-a1-again", "p"): "rejected",
        ("run-a1", "r"): "kept_negative",
        ("run-a2", "p"): "kept",
        ("run-b1", "q"): "rejected",
    }
    return {key: fetch(engine, items, key, outcome) for key, outcome in outcomes.items()}


def test_knowledge_counts_verdicts_by_hand(engine: Engine, judged: Numbers) -> None:
    known = told(engine).knowledge
    assert known.overall == {True: Tally(3, 2, 0), False: Tally(1, 0, 1), None: Tally(1, 0, 0)}
    assert known.families == {
        ("a", True): Tally(3, 2, 0),
        ("a", False): Tally(1, 0, 1),
        ("b", None): Tally(1, 0, 0),
    }
    assert known.versions == {
        ("a1", True): Tally(2, 1, 0),
        ("a1", False): Tally(1, 0, 1),
        ("a2", True): Tally(1, 1, 0),
        ("b1", None): Tally(1, 0, 0),
    }
    assert known.problems == {
        "p": ProblemKnown(2, {"a": 2}, {True: Tally(3, 2, 0)}),
        "q": ProblemKnown(0, {}, {None: Tally(1, 0, 0)}),
        "r": ProblemKnown(0, {}, {False: Tally(1, 0, 1)}),
    }
    assert known.sampled == {"a1": {"p", "r"}, "a2": {"p"}, "b1": {"q"}}


def test_other_rules_say_nothing(engine: Engine, judged: Numbers) -> None:
    with reading(engine) as session:
        found = planning.outlook(session, "f" * 64, NOW + timedelta(seconds=1), ())
    assert found.knowledge.overall == {}
    assert len(found.in_flight) == len(judged)


def test_what_no_longer_counts_covers_no_problem(engine: Engine, judged: Numbers) -> None:
    words = [Word("run-a1", TombstoneReason.RUN_INVALIDATED, "runs", {})]
    with transaction(engine) as session:
        tombstones.settle(session, Subject.RUN, words)
    known = told(engine).knowledge
    assert known.problems["p"].kept == 1
    # What the verdict said of the version stays true.
    assert known.versions["a1", True] == Tally(2, 1, 0)


def test_a_family_tells_of_its_versions_without_open_items(engine: Engine, items: Numbers, judged: Numbers) -> None:
    others = [number for (run, _), number in items.items() if run == "run-a2"]
    with transaction(engine) as session:
        ledger.mark_fetched(session, others, NOW)
    found = told(engine)
    assert "a2" not in {item.agent_version_id for item in found.candidates}
    assert found.knowledge.families["a", True] == Tally(3, 2, 0)


@pytest.mark.parametrize(
    ("window", "longest_due", "problems"),
    [
        # Known of p: (1 + 2 kept) * (1 + 3 judged) = 12; of q and r: 1 * (1 + 1) = 2. Open are 1 of p, 3 of q, 3 of r.
        (1, 0, {"q"}),
        (4, 0, {"q", "r"}),
        (6, 0, {"q", "r"}),
        (7, 0, {"p", "q", "r"}),
        # p has been due longest: its item is let in first.
        (4, 1, {"p", "q"}),
    ],
)
def test_a_large_ledger_shows_some_problems_whole(
    engine: Engine, judged: Numbers, monkeypatch: pytest.MonkeyPatch, window: int, longest_due: int, problems: set[str]
) -> None:
    everything = told(engine).candidates
    with transaction(engine) as session:
        session.connection().exec_driver_sql(
            "UPDATE harvest_ledger SET next_try_at = next_try_at - interval '1 day' WHERE problem_id = 'p'"
        )
    monkeypatch.setattr(planning, "WINDOW", window)
    monkeypatch.setattr(planning, "LONGEST_DUE", longest_due)
    assert sorted(told(engine).candidates) == sorted(item for item in everything if item.problem_id in problems)


def test_the_first_choice_is_the_problem_with_nothing_kept_that_promises_most(
    engine: Engine, items: Numbers, judged: Numbers
) -> None:
    found = told(engine)
    first, *_ = plan(found.candidates, found.in_flight, found.knowledge, DEFAULT_POLICIES.plan, 1)
    assert (first.item.ledger_id, first.reason) == (items["run-a1", "q"], "first_kept")


def test_reach(engine: Engine, items: Numbers, judged: Numbers) -> None:
    def reached(problems: int) -> Reach:
        with reading(engine) as session:
            return reach(session, RULES, problems)

    # p is kept; q and r have open items. a1 is judged on p and r, a2 and b1 on one problem each.
    assert reached(2) == Reach(3, 1, 2, 0, 3, 1, 2, 0)
    assert reached(1) == Reach(3, 1, 2, 0, 3, 3, 0, 0)
    with transaction(engine) as session:
        ledger.mark_fetched(session, [number for (_, problem), number in items.items() if problem == "r"], NOW)
    assert reached(2) == Reach(3, 1, 1, 1, 3, 1, 2, 0)
