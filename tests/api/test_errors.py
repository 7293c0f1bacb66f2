"""Every fault is a problem document, and says nothing of how the service is built."""

from sqlalchemy import text
from starlette.testclient import TestClient

from service.api.app import build_api
from service.api.errors import STATUS_BY_CODE
from service.errors import ErrorCode
from tests.api.conftest import Service


def test_every_code_has_a_status():
    assert set(STATUS_BY_CODE) == set(ErrorCode)


def test_unknown_paths_and_methods(client: TestClient):
    for answer, status in ((client.get("/v1/nothing"), 404), (client.delete("/v1/stats"), 405)):
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == status
    assert client.delete("/v1/stats").headers["allow"] == "GET"


def test_head_is_answered_as_get_is(client: TestClient):
    for path in ("/", "/docs", "/v1/stats", "/v1/trajectories", "/v1/snapshots", "/health"):
        assert client.head(path).status_code == 200, path
        assert client.head(path).headers["content-type"] == client.get(path).headers["content-type"]
    assert client.head("/v1/trajectories/999999").status_code == 404


def test_a_failing_route_tells_no_secrets(service: Service):
    app = build_api(service.engine, service.settings)

    def fail() -> None:
        with service.engine.connect() as connection:
            connection.execute(text("SELECT secret FROM nowhere"))

    app.add_api_route("/fails", fail)
    answer = TestClient(app, raise_server_exceptions=False).get("/fails")
    assert answer.status_code == 500
    assert answer.json()["code"] == "INTERNAL_SERVER_ERROR"
    for word in ("SELECT", "nowhere", "psycopg", "Traceback", "service/"):
        assert word not in answer.text


def test_every_answer_is_guarded(client: TestClient):
    for path in ("/", "/v1/stats", "/v1/nothing", "/static/sluice.css", "/docs"):
        policy = client.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert client.get(path).headers["x-content-type-options"] == "nosniff"
