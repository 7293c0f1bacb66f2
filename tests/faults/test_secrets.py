"""A presigned URL is a credential: its query is in no log, whatever fails, and in no answer of the service."""

import logging
from typing import Any

import pytest
from starlette.testclient import TestClient

from service.api import create_app
from service.replay.faults import Fault
from tests.faults.conftest import EVER, Harvest
from tests.faults.test_transport import BOMB, EXPIRED, GIVEN, OBJECTS

MARKS = ("X-Amz", "x-amz", "Signature")
"""What the query of every presigned URL of the replay server holds."""
FAULTS = (
    Fault("/download-url$", 2, keep_bytes=40),
    Fault("/download-url$", 2, rewrite=lambda answer: answer | {"download_url": answer["download_url"] + "\n"}),
    Fault(
        "/download-url$",
        2,
        rewrite=lambda answer: answer | {"download_url": answer["download_url"].replace("127.0.0.1", "evil.example")},
    ),
    Fault(OBJECTS, 4, status=403, body=EXPIRED),
    Fault(OBJECTS, 2, status=503),
    Fault(OBJECTS, 1, keep_bytes=10, reset=True),
    Fault(OBJECTS, 1, keep_bytes=10, cut=True),
    Fault(OBJECTS, 1, missing_bytes=-9),
    Fault(OBJECTS, 2, status=302, headers={"Location": "/elsewhere?X-Amz-Signature=0"}),
    Fault(OBJECTS, 2, status=302, headers={"Location": "http://evil.example/x?X-Amz-Signature=0"}),
    Fault(GIVEN, 2, status=200, body=BOMB),
)


def test_no_log_and_no_answer_holds_the_query_of_a_presigned_url(
    harvest: Harvest, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger().setLevel(logging.DEBUG)
    harvest.walk()
    for fault in FAULTS:
        harvest.add(fault)
        harvest.let_time_pass()
        harvest.fetch()
        harvest.faults.clear()
    # What the replay server itself notes of the requests it gets is the other side's business.
    records = [record for record in caplog.records if not record.name.startswith("uvicorn")]
    said = "\n".join(record.getMessage() + str(record.exc_info) for record in records)
    assert harvest.faults.happened > len(FAULTS)
    assert not [mark for mark in MARKS if mark in said]
    assert not [path for path, body in answers(harvest) if any(mark in body for mark in MARKS)]


def test_the_marks_are_those_of_the_replay_server(harvest: Harvest) -> None:
    seen: list[str] = []

    def note(answer: Any) -> Any:
        seen.append(answer["download_url"])
        return answer

    harvest.add(Fault("/download-url$", EVER, rewrite=note))
    harvest.attempt()
    assert seen
    assert all(mark in url for url in seen for mark in ("X-Amz", "Signature"))


def answers(harvest: Harvest) -> list[tuple[str, str]]:
    """Every answer of the service about this harvest."""
    client = TestClient(create_app(harvest.context.engine, harvest.context.settings), raise_server_exceptions=False)
    page = client.get("/v1/trajectories?limit=500").json()["trajectories"]
    paths = ["/", "/partials/overview", "/health", "/ready", "/metrics", "/openapi.json", "/docs", "/v1/stats"]
    paths += ["/v1/stats?by=race,reason", "/v1/races", "/v1/coverage", "/v1/coverage?race=qualifying"]
    paths += ["/v1/snapshots", "/v1/trajectories?limit=500", "/v1/coverage?race=nothing"]
    paths += [f"/v1/trajectories/{row['trajectory_id']}" for row in page]
    return [(path, client.get(path).text) for path in paths]
