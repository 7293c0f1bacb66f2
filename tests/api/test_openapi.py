"""The OpenAPI document: kept in the repository, so that no change to the interface goes unseen, and true."""

import json
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.schemas import BaseSchema as OpenApiSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from sqlalchemy import create_engine
from starlette.testclient import TestClient

from service.api import create_app
from service.api.app import build_api
from service.config import Settings
from tests.api import corpus
from tests.api.conftest import Service

KEPT = Path(__file__).parents[2] / "docs" / "openapi.json"
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
EXAMPLES = 25


def test_the_kept_document_is_current():
    """If the change is meant: `python -m tests.api.test_openapi`."""
    assert json.loads(KEPT.read_text()) == document()


def document() -> dict:
    return build_api(create_engine("postgresql+psycopg://"), Settings()).openapi()


def test_every_operation_says_how_it_fails():
    for path, methods in document()["paths"].items():
        for operation in methods.values():
            assert {"4XX", "5XX"} <= set(operation["responses"]), path
            assert operation["summary"], path


OPERATIONS = [path for path, methods in document()["paths"].items() if methods]


@pytest.fixture(scope="module")
def api_schema(service: Service) -> OpenApiSchema:
    return schemathesis.openapi.from_asgi("/openapi.json", create_app(service.engine, service.settings))


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize("path", OPERATIONS)
def test_whatever_is_asked_the_answer_fits_the_document(api_schema: OpenApiSchema, path: str, mode: GenerationMode):
    """Generated requests, valid and invalid, against the real database."""
    operation = api_schema[path]["GET"]
    if mode is GenerationMode.NEGATIVE and not (operation.query or operation.path_parameters):
        return  # nothing can be wrong with a request that has no parameters

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def ask(case: schemathesis.Case) -> None:
        case.call_and_validate(checks=CHECKS)

    ask()


@pytest.mark.parametrize("path", OPERATIONS)
def test_answers_about_real_rows_fit_the_document(api_schema: OpenApiSchema, service: Service, path: str):
    names = {
        "snapshot_id": service.snapshot_id,
        "trajectory_id": 1,
        "name": "audit.json",
        "benchmark": corpus.BENCHMARK,
    }
    wanted = {name: value for name, value in names.items() if f"{{{name}}}" in path}
    query = {"before": "sluice-1", "after": "paper-2606.10064"} if path == "/v1/rules/compare" else {}
    case = api_schema[path]["GET"].Case(path_parameters=wanted, query=query)
    assert case.call_and_validate(checks=CHECKS).status_code == 200


def test_the_document_is_served(client: TestClient):
    assert client.get("/openapi.json").json() == document()


if __name__ == "__main__":
    KEPT.write_text(json.dumps(document(), indent=2, sort_keys=True) + "\n")
