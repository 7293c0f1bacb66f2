"""Put the replay server together: ORO's public API over one Archive. It has no route of its own but /health."""

from fastapi import FastAPI
from fastapi.responses import Response
from starlette.types import ASGIApp

from service.replay import artifacts, routes
from service.replay.answers import Denied, denied_answer, json_answer
from service.replay.dispatch import Dispatch
from service.replay.presign import Presigner
from service.replay.recorded import Archive


def create_app(archive: Archive, presigner: Presigner | None = None) -> ASGIApp:
    """The server of one archive."""
    app = FastAPI(openapi_url=None)
    app.state.archive = archive
    app.state.presigner = presigner or Presigner()
    app.add_exception_handler(Denied, denied_answer)
    app.router.routes.extend(artifacts.PLAIN_ROUTES)
    app.include_router(routes.router)
    app.add_api_route("/health", _health)
    return Dispatch(app, artifacts.PLAIN_ROUTES)


async def _health() -> Response:
    return json_answer({"status": "ok"})
