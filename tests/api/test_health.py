"""`/health` asks nothing of anyone; `/ready` names what is missing."""

from starlette.testclient import TestClient

from service.api import create_app
from service.store.engine import open_engine
from tests.api.conftest import Service

NOBODY = "unix:///nowhere/valkey.sock"


def asked(service: Service, path: str, **changes: str):
    settings = service.settings.model_copy(update=changes)
    assert settings.database_url is not None
    engine = open_engine(settings.database_url)
    with TestClient(create_app(engine, settings), raise_server_exceptions=False) as client:
        answer = client.get(path)
    engine.dispose()
    return answer


def test_ready(client: TestClient):
    assert client.get("/ready").json() == {"status": "ready", "database": True, "schema_current": True, "redis": True}


def test_not_ready_without_redis(service: Service):
    answer = asked(service, "/ready", redis_url=NOBODY)
    assert answer.status_code == 503
    assert answer.json()["context"] == {"database": True, "schema_current": True, "redis": False}


def test_not_ready_without_database(service: Service):
    answer = asked(service, "/ready", database_url="postgresql://localhost:1/nothing")
    assert answer.status_code == 503
    assert answer.json()["context"]["database"] is False


def test_not_ready_with_an_old_schema(service: Service, services):
    answer = asked(service, "/ready", database_url=services.database_url.replace("/sluice?", "/template1?"))
    assert answer.status_code == 503
    assert answer.json()["context"] == {"database": True, "schema_current": False, "redis": True}


def test_healthy_without_anything(service: Service):
    answer = asked(service, "/health", database_url="postgresql://localhost:1/nothing", redis_url=NOBODY)
    assert answer.json() == {"status": "ok"}


def test_a_database_that_is_away_is_named_and_not_described(service: Service):
    answer = asked(service, "/v1/stats", database_url="postgresql://someone:secret@localhost:1/nothing")
    assert answer.status_code == 503
    assert answer.json()["code"] == "SERVICE_UNAVAILABLE"
    assert "secret" not in answer.text
    assert "localhost" not in answer.text
