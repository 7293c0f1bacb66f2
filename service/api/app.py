"""Put the service together: routes, faults, headers, page. It has no route of its own."""

from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from sqlalchemy import Engine
from starlette.types import ASGIApp

from service.api import dashboard, errors
from service.api.context import Context
from service.api.guard import Guard
from service.api.parameters import refuse_unknown
from service.api.routes import benchmarks, coverage, files, health, races, rules, snapshots, stats, trajectories
from service.api.schemas import Fault
from service.config import Settings
from service.domain.policy import DEFAULT_POLICIES, Policies

VERSION = "1"
"""Of the REST interface, not of the package."""

PROBLEM: dict[int | str, dict[str, Any]] = {
    "4XX": {
        "description": "The request cannot be answered.",
        "content": errors.CONTENT,
    },
    "5XX": {
        "description": "The service cannot answer.",
        "content": errors.CONTENT,
    },
}


def build_api(engine: Engine, settings: Settings, policies: Policies = DEFAULT_POLICIES) -> FastAPI:
    """The FastAPI application, without the headers of `Guard`."""
    app = FastAPI(
        title="Sluice",
        version=VERSION,
        summary="Trajectories of Bittensor SN15 (ORO), judged, de-leaked and released.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.context = Context(engine=engine, settings=settings, policies=policies)
    errors.install(app)
    for module in (stats, coverage, races, rules, trajectories, snapshots, benchmarks):
        app.include_router(module.router, responses=PROBLEM, dependencies=[Depends(refuse_unknown)])
    for module in (files, health):
        app.include_router(module.router, responses=PROBLEM)
    dashboard.install(app)
    for module in (stats, coverage, races, rules, trajectories, snapshots, benchmarks, files, health, dashboard):
        _answer_head(app, module.router)
    app.openapi = lambda: document(app)  # type: ignore[method-assign]
    return app


def _answer_head(app: FastAPI, router: APIRouter) -> None:
    """HEAD for every GET: the server sends the same headers and keeps the body to itself."""
    for route in router.routes:
        if isinstance(route, APIRoute):
            app.add_api_route(route.path, route.endpoint, methods=["HEAD"], include_in_schema=False)


def document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document: FastAPI's own, with the problem document that every route may answer."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        schema["components"]["schemas"]["Fault"] = Fault.model_json_schema()
        app.openapi_schema = schema
    return app.openapi_schema


def create_app(engine: Engine, settings: Settings, policies: Policies = DEFAULT_POLICIES) -> ASGIApp:
    """The service as a server runs it."""
    return Guard(build_api(engine, settings, policies))
