"""`/v1/stats` and `/v1/races` say what was put in."""

import pytest
from sqlalchemy import text
from starlette.testclient import TestClient

from service.api import create_app
from service.store.engine import open_engine
from tests.api import corpus
from tests.api.corpus import HOSTILE

# Ten items: five problems for each of two agents, one of them never given. Of the nine trajectories the first five are
# kept, the last is unjudged, the three between are rejected.


def test_stats_count_every_trajectory_once(client: TestClient):
    stats = client.get("/v1/stats").json()
    assert (stats["races"], stats["trajectories"]) == (1, 9)
    assert stats["by_class"] == {"agentic": 5, "scripted": 3, "unjudged": 1}
    assert stats["verdicts"] == {
        "kept": 5,
        "kept_negative": 0,
        "rejected": 3,
        "unjudged": 1,
        "reasons": {"kept": 5, "loop": 3},
    }
    assert stats["pools"] == {"train": 1, "eval": 1, "reserve": 1, "quarantined": 1}
    assert stats["clusters"] == 4
    assert stats["harvest"] == {
        "items": 10,
        "expected": 0,
        "fetched": 9,
        "changed": 0,
        "embargoed": 0,
        "failed": 0,
        "gone": 1,
        "reasons": {"no_object": 1},
    }
    assert stats["commitments"] == {"committed": 0, "verified": 0, "contradicted": 1}
    assert stats["rows"] is None


def test_stats_name_the_released_snapshot(client: TestClient, service):
    stats = client.get("/v1/stats").json()
    assert stats["snapshot"] == {
        "id": service.snapshot_id,
        "rows": {"train": 3, "eval": 3},
        "audit": {"ok": True},
        "left_out": {"pools": {"reserve": 2, "quarantined": 0}, "selection": {"duplicate": 2, "family_cap": 1}},
    }
    assert stats["refusal"] is None


def test_stats_by_dimensions(client: TestClient):
    rows = client.get("/v1/stats", params={"by": "agent,verdict"}).json()["rows"]
    assert sorted(rows, key=lambda row: row["count"]) == [
        {"agent": HOSTILE, "verdict": None, "count": 1},
        {"agent": HOSTILE, "verdict": "rejected", "count": 3},
        {"agent": "honest", "verdict": "kept", "count": 5},
    ]


def test_a_dimension_asked_for_twice_counts_once(client: TestClient):
    assert client.get("/v1/stats", params={"by": "kind,kind"}).json()["rows"] == [
        {"kind": "legacy_shoppingbench", "count": 9}
    ]


def test_unknown_dimensions_are_refused(client: TestClient):
    assert client.get("/v1/stats", params={"by": "agent,hotkey"}).status_code == 422


def test_races_show_their_ledger(client: TestClient):
    (race,) = client.get("/v1/races").json()["races"]
    assert race["race_number"] == 7
    assert race["agents"] == 2
    assert race["ledger"] == {"fetched": 9, "gone": 1}
    assert race["seed_commitment"]["state"] == "contradicted"
    assert race["seed_commitment"]["checks"]["secret"] == "fails"  # 11 11 ... is not the sha256 of one zero byte
    assert race["seed_commitment"]["checks"]["drand_signature"] == "unchecked"


def test_what_the_source_leaves_out_is_null(database_url: str, service, tmp_path):
    """Every column that may be null is null at once: no route may answer with a fault for it."""
    engine = open_engine(database_url)
    corpus.fill(engine, tmp_path)
    with engine.begin() as connection:
        for change in (
            "UPDATE races SET suite_id = NULL, race_number = NULL, started_at = NULL, completed_at = NULL",
            "UPDATE agent_versions SET miner_hotkey = NULL, version_number = NULL",
            "UPDATE evaluation_runs SET race_id = NULL, suite_id = NULL, validator_hotkey = NULL, completed_at = NULL",
            "UPDATE problems SET suite_id = NULL, query = NULL, reward = NULL, voucher = NULL",
            "UPDATE cluster_members SET query = NULL",
            "UPDATE verdicts SET reported_query = NULL",
        ):
            connection.execute(text(change))
    client = TestClient(create_app(engine, service.settings), raise_server_exceptions=False)
    (race,) = client.get("/v1/races").json()["races"]
    assert (race["suite_id"], race["race_number"]) == (None, None)
    items = client.get("/v1/trajectories").json()["trajectories"]
    assert len(items) == 9
    paths = ["/", "/partials/overview", "/v1/stats?by=race", "/v1/snapshots"]
    paths += [f"/v1/trajectories/{item['trajectory_id']}" for item in items]
    assert {path: client.get(path).status_code for path in paths} == dict.fromkeys(paths, 200)
    engine.dispose()


@pytest.mark.parametrize(
    ("stored", "code", "message"),
    [
        ("COMPONENT_TOO_LARGE: leak cluster a: 30 of 200", "COMPONENT_TOO_LARGE", "leak cluster a: 30 of 200"),
        ("told otherwise: by hand", "REFUSED", "told otherwise: by hand"),
    ],
)
def test_refused_pools_name_their_own_code(database_url: str, service, tmp_path, stored: str, code: str, message: str):
    engine = open_engine(database_url)
    corpus.fill(engine, tmp_path)
    with engine.begin() as connection:
        connection.execute(text("UPDATE pool_assignments SET refusal = :refusal"), {"refusal": stored})
    stats = TestClient(create_app(engine, service.settings)).get("/v1/stats").json()
    assert stats["refusal"] == {"code": code, "message": message}
    engine.dispose()
