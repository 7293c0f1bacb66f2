"""Listings: facts are filled in, never taken back, and marks survive a refresh."""

import pytest
from sqlalchemy import Engine, select

from service.store import clusters, listings
from service.store.engine import transaction
from service.store.models import AgentVersion, EvaluationRun, Problem, Race
from tests.store.conftest import NOW


def test_problem_facts_are_added_and_never_taken_back(engine: Engine, ledger_ids: list[int]) -> None:
    with transaction(engine) as session:
        before = clusters.facts_known(session)
        reward = [{"product_id": "1"}]
        fuller = {"problem_id": "p0", "kind": "legacy_shoppingbench", "category": "product"}
        listings.save_problems(session, [Problem(**fuller, query="a query", reward=reward)])
        assert clusters.facts_known(session) == before + 2
        listings.save_problems(session, [Problem(**fuller, query="another query", reward=None)])
        assert clusters.facts_known(session) == before + 2
        problem = session.get_one(Problem, "p0", populate_existing=True)
        assert (problem.query, problem.reward) == ("a query", reward)


def test_a_refresh_keeps_the_marks_of_what_was_walked(engine: Engine, ledger_ids: list[int]) -> None:
    with transaction(engine) as session:
        listings.mark_run_listed(session, "run", NOW)
        listings.mark_races_walked(session, {"race"}, NOW)
        listings.save_races(
            session, [Race(race_id="race", suite_id=4, status="RACE_COMPLETE", is_complete=True, source={"new": 1})]
        )
        race = session.get_one(Race, "race", populate_existing=True)
        assert (race.suite_id, race.source, race.walked_at) == (4, {"new": 1}, NOW)
        assert listings.listed_runs(session, "agent") == {"run"}


def test_races_known_from_runs_alone_get_a_row(engine: Engine, ledger_ids: list[int]) -> None:
    with transaction(engine) as session:
        complete = listings.save_unlisted_races(session, {("race", 3), ("other", None)})
        assert complete == {"race"}
        assert session.get_one(Race, "other").status == listings.UNLISTED
        assert session.scalars(select(EvaluationRun.race_id)).all() == ["race"]


def run(**changed: object) -> EvaluationRun:
    """The fixture's run, refreshed."""
    facts = {"status": "SUCCESS", "is_over": True, "counts": True, **changed}
    return EvaluationRun(
        eval_run_id="run",
        agent_version_id="agent",
        race_id="race",
        suite_id=3,
        phase="RACE",
        kind="legacy_shoppingbench",
        source={},
        **facts,
    )


@pytest.mark.parametrize(
    ("changed", "listed", "settled"),
    [
        ({"status": "RUNNING", "is_over": False, "counts": False}, False, False),
        ({}, False, False),
        ({}, True, True),
        ({"status": "FAILED", "counts": False}, False, True),
    ],
    ids=["still running", "counts and is not listed", "counts and is listed", "failed for good"],
)
def test_only_runs_that_can_bring_nothing_more_settle_an_agent_and_a_race(
    engine: Engine, ledger_ids: list[int], changed: dict[str, object], listed: bool, settled: bool
) -> None:
    with transaction(engine) as session:
        listings.save_runs(session, [run(**changed)])
        if listed:
            listings.mark_run_listed(session, "run", NOW)
        listings.mark_races_walked(session, {"race"}, NOW)
        assert listings.settled_agents(session) == ({"agent"} if settled else set())
        assert listings.walked_races(session) == ({"race"} if settled else set())


def test_a_row_listed_twice_is_one_row(engine: Engine, ledger_ids: list[int]) -> None:
    problem = {"problem_id": "twice", "kind": "legacy_shoppingbench", "category": "product"}
    with transaction(engine) as session:
        listings.save_problems(session, [Problem(**problem, query="first"), Problem(**problem, query="second")])
        listings.save_runs(session, [run(), run(status="FAILED")])
        assert session.get_one(Problem, "twice").query == "first"
        assert session.get_one(EvaluationRun, "run").status == "SUCCESS"


def test_whose_run_it_is_never_changes(engine: Engine, ledger_ids: list[int]) -> None:
    with transaction(engine) as session:
        thief = AgentVersion(agent_version_id="thief", agent_name="thief", family="thief", source={})
        listings.save_agents(session, [thief])
        stolen = run()
        stolen.agent_version_id = "thief"
        listings.save_runs(session, [stolen])
        assert session.get_one(EvaluationRun, "run", populate_existing=True).agent_version_id == "agent"
