"""Pages of trajectories, and what one shows of itself: content of held-out problems is in no answer."""

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from service.store import policies
from service.store.figures.dossier import Withheld, withheld
from service.store.figures.statistics import Dimension
from service.store.models import SnapshotRow
from service.store.release import pools
from service.store.release.pools import PoolRow
from tests.api.conftest import Service
from tests.api.corpus import HOSTILE, SECRET_QUERY


def listed(client: TestClient, **filters: str) -> list[dict]:
    return client.get("/v1/trajectories", params=filters).json()["trajectories"]


def test_pages_hold_every_trajectory_once_in_order(client: TestClient):
    seen, after = [], 0
    while after is not None:
        page = client.get("/v1/trajectories", params={"after": after, "limit": 2}).json()
        assert len(page["trajectories"]) <= 2
        seen += [row["trajectory_id"] for row in page["trajectories"]]
        after = page["next_after"]
    assert len(seen) == 9
    assert seen == sorted(set(seen))


def test_a_full_last_page_has_no_next(client: TestClient):
    page = client.get("/v1/trajectories", params={"limit": 9}).json()
    assert (len(page["trajectories"]), page["next_after"]) == (9, None)


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ({"agent": "honest"}, 5),
        ({"agent": HOSTILE}, 4),
        ({"class": "scripted"}, 3),
        ({"verdict": "kept"}, 5),
        ({"reason": "loop"}, 3),
        ({"category": "Product"}, 9),
        ({"race": "race-1"}, 9),
        ({"kind": "envpack"}, 0),
        ({"agent": "honest", "verdict": "rejected"}, 0),
        ({"agent": "' OR 1=1 --"}, 0),
    ],
)
def test_filters(client: TestClient, filters: dict[str, str], count: int):
    assert len(listed(client, **filters)) == count


@pytest.mark.parametrize(
    "query",
    [
        *("limit=0", "limit=501", "after=-1", f"after={2**63}", "limit=x", "agent=%00"),
        *("verdict=bogus", "class=bogus", "kind=bogus", "verdicts=kept"),
    ],
)
def test_bad_parameters_are_problems(client: TestClient, query: str):
    answer = client.get(f"/v1/trajectories?{query}")
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "BAD_INPUT"


def test_an_unknown_parameter_is_named(client: TestClient):
    for path in ("/v1/trajectories", "/v1/stats", "/v1/races", "/v1/snapshots"):
        fault = client.get(path, params={"verdicts": "kept"}).json()
        assert (fault["status"], fault["context"]) == (422, {"unknown": ["verdicts"]})
    assert "known are by" in client.get("/v1/stats?x=1").json()["detail"]
    assert ", class, verdict," in client.get("/v1/trajectories?x=1").json()["detail"]


def test_the_key_is_that_of_published_rows(client: TestClient):
    for row in listed(client):
        assert row["trajectory_key"] == f"{row['eval_run_id']}/{row['problem_id']}"
    assert of(client, "p-train")["trajectory_key"] == "run-v1/p-train"


def of(client: TestClient, problem_id: str, agent: str = "honest") -> dict:
    row = next(row for row in listed(client, agent=agent) if row["problem_id"] == problem_id)
    return client.get(f"/v1/trajectories/{row['trajectory_id']}").json()


@pytest.mark.parametrize("problem_id", ["p-train", "p-eval"])
def test_open_problems_show_their_content(client: TestClient, problem_id: str):
    detail = of(client, problem_id)
    assert detail["withheld"] is None
    assert detail["content"]["query"] == SECRET_QUERY
    (step,) = detail["content"]["steps"]
    assert step["calls"][0]["name"] == "find_product"
    (found,) = step["calls"][0]["result"]
    assert found["title"] == HOSTILE
    assert str(found["deep"]).count("[") == 61
    assert "bare_nan" in detail["content"]["defects"]
    assert detail["verdict"]["answer"] == ["secret-answer"]
    assert detail["content"]["unknown_fields"] == ["/*/extra_info/step"]


@pytest.mark.parametrize("problem_id", ["p-reserve", "p-quarantined", "p-new"])
def test_held_out_problems_show_none(client: TestClient, problem_id: str):
    """Reserve is held for future evaluation; a problem without a pool may still be drawn into it."""
    detail = of(client, problem_id)
    assert detail["withheld"] == "held_out"
    assert detail["content"] is None
    assert (detail["verdict"]["answer"], detail["verdict"]["signals"]) == (None, None)
    assert detail["judgement"] is None
    assert SECRET_QUERY not in str(detail)
    assert "secret-answer" not in str(detail)


def test_an_eval_problem_shows_no_more_than_its_published_rows(client: TestClient):
    """The second agent's trajectory is in no snapshot: what it did might tell the answer that the split asks for."""
    detail = of(client, "p-eval", HOSTILE)
    assert (detail["withheld"], detail["content"], detail["judgement"]) == ("held_out", None, None)
    assert (detail["verdict"]["answer"], detail["verdict"]["signals"]) == (None, None)
    assert of(client, "p-train", HOSTILE)["withheld"] is None


def explained(client: TestClient, problem_id: str, agent: str = "honest") -> dict:
    row = next(row for row in listed(client, agent=agent) if row["problem_id"] == problem_id)
    answer = client.get(f"/v1/trajectories/{row['trajectory_id']}/verdict")
    assert answer.status_code == 200
    return answer.json()


def test_a_verdict_is_explained_call_by_call(client: TestClient):
    told = explained(client, "p-train")
    assert (told["outcome"], told["decided"]["name"], told["withheld"]) == ("kept", "kept", None)
    kinds = [entry["kind"] for entry in told["entries"]]
    assert kinds == ["think", "call"]  # the one step of the payload; it has no log
    assert SECRET_QUERY in told["entries"][1]["what"]


@pytest.mark.parametrize("problem_id", ["p-reserve", "p-quarantined", "p-new"])
def test_the_explanation_of_a_held_out_row_names_issuers_alone(client: TestClient, problem_id: str):
    told = explained(client, problem_id)
    assert told["withheld"] == "held_out"
    assert [(entry["kind"], entry["what"], entry["seconds"]) for entry in told["entries"]] == [("call", None, None)]
    assert (told["failed"], told["contradictions"], told["unsupported"]) == ([], [], [])


def test_what_is_not_there_has_no_explanation(client: TestClient):
    assert client.get("/v1/trajectories/999999/verdict").status_code == 404


def every_path(client: TestClient, service: Service) -> dict[str, str]:
    """The text that each route gives, by path; files apart, which are the published rows themselves."""
    snapshot = f"/v1/snapshots/{service.snapshot_id}"
    paths = ["/v1/stats", "/v1/races", "/v1/trajectories", "/v1/snapshots", "/", "/partials/overview"]
    paths += [snapshot, f"{snapshot}/manifest", f"{snapshot}/status", f"{snapshot}/files/audit.json"]
    paths += [f"/v1/stats?by={dimension}" for dimension in Dimension]
    for row in listed(client):
        paths += [f"/v1/trajectories/{row['trajectory_id']}", f"/v1/trajectories/{row['trajectory_id']}/verdict"]
    return {path: client.get(path).text for path in paths}


def test_gold_is_in_no_answer(client: TestClient, service: Service):
    assert not [path for path, text in every_path(client, service).items() if "gold-" in text]


def test_queries_and_answers_are_told_of_open_trajectories_alone(client: TestClient, service: Service):
    """Open are both trajectories of the train problem and the published one of the eval problem."""
    rows = [row for row in listed(client) if row["problem_id"] == "p-train"]
    rows += [row for row in listed(client, agent="honest") if row["problem_id"] == "p-eval"]
    may_tell = {f"/v1/trajectories/{row['trajectory_id']}{more}" for row in rows for more in ("", "/verdict")}
    told = every_path(client, service)
    assert {path for path, text in told.items() if SECRET_QUERY in text or "secret-answer" in text} == may_tell


def test_a_problem_once_in_reserve_stays_closed(service: Service):
    """A newer draw that opens it does not count: only an explicit retirement would."""
    with Session(service.engine) as session:
        newest = pools.latest(session)
        assert newest is not None
        policy = "pools-digest-2"
        policies.record(session, "pools", "pools", policy, {})
        members = [PoolRow("p-reserve", "train", "train", "draw"), PoolRow("p-train", "train", "train", "draw")]
        pools.save(session, clustering_id=newest.clustering_id, plan_digest=policy, members=members)
        session.flush()
        published = session.scalar(select(SnapshotRow.trajectory_id).where(SnapshotRow.problem_id == "p-eval"))
        assert published is not None
        assert withheld(session, published, "p-train") is None
        assert withheld(session, published, "p-reserve") is Withheld.HELD_OUT
        assert withheld(session, published, "p-eval") is Withheld.HELD_OUT  # has no pool in the newest draw
        session.rollback()


def test_unknown_id_is_a_problem(client: TestClient):
    answer = client.get("/v1/trajectories/999999")
    assert answer.status_code == 404
    assert answer.json()["context"] == {"trajectory_id": 999999}
