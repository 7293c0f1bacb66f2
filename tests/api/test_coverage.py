"""`/v1/coverage` and `sluice coverage` say the same, and what was put in."""

import json

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import Service
from tests.cli.test_reading import sluice

# Ten items of one race: nine fetched for two agents, one that has no object. Both runs are listed whole or neither is.


def test_a_race_is_covered_by_what_is_stored_of_it(client: TestClient):
    told = client.get("/v1/coverage").json()
    (race, qualifying) = told["races"]
    cover = race["cover"]
    assert (race["race_number"], qualifying["race_id"], qualifying["cover"]["items"]) == (7, "qualifying", 0)
    states = ("expected", "fetched", "changed", "embargoed", "failed", "gone")
    assert {state: cover[state] for state in states} == dict.fromkeys(states, 0) | {"fetched": 9, "gone": 1}
    assert cover["items"] == sum(cover[state] for state in states)
    assert cover["losses"] == [{"reason": "no_object", "items": 1, "attempts": 1}]
    assert sum(cover["runs"].values()) == 2
    assert told["agents"] is None
    assert told["history"] == {"total": None, "read_at": None, "listed": 10, "stored": 9, "difference": None}


def test_agent_versions_of_a_race_sum_to_it(client: TestClient):
    (race, _) = client.get("/v1/coverage").json()["races"]
    told = client.get("/v1/coverage", params={"race": race["race_id"]}).json()
    assert told["races"] == [race]
    assert sorted(agent["cover"]["items"] for agent in told["agents"]) == [5, 5]


@pytest.mark.parametrize(("race", "status"), [("no such race", 404), ("a\0b", 422), ("x" * 201, 422)])
def test_a_race_that_is_none(client: TestClient, race: str, status: int):
    assert client.get("/v1/coverage", params={"race": race}).status_code == status


def test_the_command_says_the_same(client: TestClient, service: Service):
    assert json.loads(sluice("coverage", "--json", service=service).stdout) == client.get("/v1/coverage").json()
    ran = sluice("coverage", "--json", "--race", "qualifying", service=service)
    assert json.loads(ran.stdout) == client.get("/v1/coverage", params={"race": "qualifying"}).json()


def test_the_command_for_people(service: Service):
    ran = sluice("coverage", service=service)
    assert ran.returncode == 0
    assert "Coverage by race" in ran.stdout
    assert "no_object" in ran.stdout


def test_an_unknown_race_is_exit_2(service: Service):
    ran = sluice("coverage", "--race", "nowhere", service=service)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "sluice: there is no race 'nowhere'\n"
