"""Listings: facts are filled in, never taken back, and marks survive a refresh."""

from datetime import timedelta

import pytest
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from service.store.engine import transaction
from service.store.harvest import listings, rereading
from service.store.models import AgentVersion, EvaluationRun, Problem, Race
from service.store.release import clusters
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
        rereading.mark_races_walked(session, {"race"}, NOW)
        listings.save_races(
            session, [Race(race_id="race", suite_id=4, status="RACE_COMPLETE", is_complete=True, source={"new": 1})]
        )
        race = session.get_one(Race, "race", populate_existing=True)
        assert (race.suite_id, race.source, race.walked_at) == (4, {"new": 1}, NOW)
        assert listings.listed_runs(session, "agent") == {"run": NOW}


def test_races_known_from_runs_alone_get_a_row(engine: Engine, ledger_ids: list[int]) -> None:
    with transaction(engine) as session:
        complete = listings.save_unlisted_races(session, {("race", 3), ("other", None)})
        assert complete == {"race"}
        assert session.get_one(Race, "other").status == listings.UNLISTED
        assert session.scalars(select(EvaluationRun.race_id)).all() == ["race"]


def run(**changed: object) -> EvaluationRun:
    """The fixture's run, refreshed."""
    facts = {"status": "SUCCESS", "is_over": True, "counts": True, "source": {}, **changed}
    return EvaluationRun(
        eval_run_id="run",
        agent_version_id="agent",
        race_id="race",
        suite_id=3,
        phase="RACE",
        kind="legacy_shoppingbench",
        **facts,
    )


HOUR = timedelta(hours=1)


def wanted(session: Session, *, hours_later: float = 0) -> bool:
    """Whether the fixture's agent is to be listed at a time after `NOW`."""
    now = NOW + hours_later * HOUR
    return rereading.wanted_agents(session, now, now - HOUR) == {"agent"}


def is_walked(session: Session) -> bool:
    return [reading.name for reading in rereading.race_readings(session)] == ["race"]


@pytest.mark.parametrize(
    ("changed", "listed", "brings_more"),
    [
        ({}, False, True),
        ({}, True, False),
        ({"status": "FAILED", "counts": False}, False, False),
        ({"status": "RUNNING", "is_over": False, "counts": False}, False, False),
    ],
    ids=["counts and is not listed", "counts and is listed", "failed for good", "still running in a race that is over"],
)
def test_agents_are_wanted_until_their_runs_can_bring_nothing_more(
    engine: Engine, ledger_ids: list[int], changed: dict[str, object], listed: bool, brings_more: bool
) -> None:
    with transaction(engine) as session:
        listings.save_runs(session, [run(**changed)])
        assert wanted(session), "it has never been read"
        rereading.mark_agent_read(session, "agent", NOW)
        if listed:
            listings.mark_run_listed(session, "run", NOW)
        rereading.mark_races_walked(session, {"race"}, NOW)
        assert wanted(session, hours_later=2) == brings_more
        assert is_walked(session) == (not brings_more and "is_over" not in changed)


def test_what_goes_on_is_listed_by_the_hour(engine: Engine, ledger_ids: list[int]) -> None:
    with transaction(engine) as session:
        listings.save_races(session, [Race(race_id="race", status="RACE_RUNNING", is_complete=False, source={})])
        listings.save_runs(session, [run(status="RUNNING", is_over=False, counts=False)])
        rereading.mark_agent_read(session, "agent", NOW)
        assert not wanted(session, hours_later=0.9)
        assert wanted(session, hours_later=1)


def test_a_race_that_was_called_off_is_waited_for_no_longer(engine: Engine, ledger_ids: list[int]) -> None:
    off = Race(race_id="race", status="RACE_CANCELLED", is_complete=False, is_cancelled=True, source={})
    with transaction(engine) as session:
        listings.save_races(session, [off])
        listings.save_runs(session, [run(status="RUNNING", is_over=False, counts=False)])
        rereading.mark_agent_read(session, "agent", NOW)
        rereading.mark_races_walked(session, set(), NOW)
        assert not wanted(session, hours_later=1_000)
        assert is_walked(session)


def test_items_that_were_withheld_are_waited_for(engine: Engine, ledger_ids: list[int]) -> None:
    with transaction(engine) as session:
        rereading.mark_agent_read(session, "agent", NOW)
        listings.put_off_listing(session, "run", NOW + HOUR)
        assert listings.waiting_runs(session, "agent", NOW) == {"run"}
        assert not wanted(session, hours_later=0.9)
        assert listings.waiting_runs(session, "agent", NOW + HOUR) == set()
        assert wanted(session, hours_later=1)
        assert listings.listing_attempts(session, "run") == 1
        listings.mark_run_listed(session, "run", NOW)
        assert listings.listing_attempts(session, "run") == 0


def test_a_run_that_is_listed_otherwise_is_to_have_its_items_listed_again(
    engine: Engine, ledger_ids: list[int]
) -> None:
    first = run(source={"validator_score": 1.0, "last_heartbeat_at": "10:00"})
    with transaction(engine) as session:
        listings.save_runs(session, [first])
        listings.mark_run_listed(session, "run", NOW)
        beaten = run(source={"validator_score": 1.0, "last_heartbeat_at": "11:00"})
        listings.save_runs(session, [beaten], {"last_heartbeat_at"})
        assert listings.listed_runs(session, "agent") == {"run": NOW}
        assert session.scalar(select(EvaluationRun.source))["last_heartbeat_at"] == "11:00"
        listings.save_runs(session, [run(source={"validator_score": 0.5})], {"last_heartbeat_at"})
        assert listings.listed_runs(session, "agent") == {}


def test_agents_are_to_be_read_once_after_their_race_is_complete(engine: Engine, ledger_ids: list[int]) -> None:
    complete = {"race_id": "race", "status": "RACE_COMPLETE", "is_complete": True, "source": {}}
    with transaction(engine) as session:
        rereading.mark_agent_read(session, "agent", NOW)
        listings.save_races(session, [Race(**complete, complete_since=NOW + HOUR)])
        listings.save_races(session, [Race(**complete, complete_since=NOW + 9 * HOUR)])
        assert rereading.unread_since_completion(session, {"race": ["agent"]}) == {"race": {"agent"}}
        rereading.mark_agent_read(session, "agent", NOW + HOUR)
        assert rereading.unread_since_completion(session, {"race": ["agent"]}) == {"race": set()}


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
