"""Artifacts: the request for a presigned URL, the objects behind it, and episode feedback. Embargoes are kept here.

They are plain Starlette routes, so that FastAPI's way to a handler can be left out (dispatch.py).
"""

import gzip
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from uuid import UUID

from fastapi import Request
from fastapi.responses import Response
from pydantic import BaseModel, ValidationError
from starlette.routing import Route

from service.replay.answers import Denial, Denied, access_denied, json_answer
from service.replay.dispatch import entity_tag
from service.replay.lookups import agent_named, archive_of, released_at, run_named
from service.replay.presign import Presigner
from service.replay.recorded import Archive
from service.replay.shapes import moment


async def episode_feedback(request: Request) -> Response:
    """A gated episode and an absent one look alike."""
    archive = archive_of(request)
    try:
        episode_result_id = str(UUID(request.path_params["episode_result_id"]))
    except ValueError:
        return json_answer({"detail": "no UUID"}, 422)
    run, item = archive.episodes.get(episode_result_id, (None, None))
    if run is None or item is None or archive.withheld(run):
        raise Denied(Denial.ARTIFACT_NOT_FOUND)
    return _tagged(request, item.packed, "application/json", gzip.decompress)


class ArtifactType(StrEnum):
    """What the API lets one ask for; the last two are not recorded."""

    AGENT_CODE = "AGENT_CODE"
    EVAL_PROBLEM_LOGS = "EVAL_PROBLEM_LOGS"
    EVAL_LOGS_BUNDLE = "EVAL_LOGS_BUNDLE"
    REASONING_DETAILS = "REASONING_DETAILS"


class ArtifactRequest(BaseModel):
    """The body of a download-url request."""

    artifact_type: ArtifactType
    agent_version_id: UUID
    eval_run_id: UUID | None = None
    problem_id: UUID | None = None


async def download_url(request: Request) -> Response:
    """A short-lived URL of one object, or why there is none."""
    try:
        wanted = ArtifactRequest.model_validate_json(await request.body())
    except ValidationError as invalid:
        faults = invalid.errors(include_url=False, include_context=False, include_input=False)
        return json_answer({"detail": faults}, 422)
    signed, expires_at = _presigner(request).sign(_object_path(archive_of(request), wanted), datetime.now(UTC))
    return json_answer({"download_url": f"{request.base_url}{signed.lstrip('/')}", "expires_at": moment(expires_at)})


def _object_path(archive: Archive, body: ArtifactRequest) -> str:
    agent = agent_named(archive, body.agent_version_id)
    if body.artifact_type is ArtifactType.AGENT_CODE:
        if released_at(archive, agent) is None:
            raise Denied(Denial.ARTIFACT_NOT_RELEASED)
        if agent.code is None:
            raise Denied(Denial.ARTIFACT_NOT_FOUND)
        return f"/objects/code/{agent.agent_version_id}/agent.py"
    if body.artifact_type is not ArtifactType.EVAL_PROBLEM_LOGS:
        raise Denied(Denial.INVALID_ARTIFACT_TYPE)
    if body.eval_run_id is None or body.problem_id is None:
        raise Denied(Denial.MISSING_PARAMETER)
    run = run_named(archive, body.eval_run_id)
    if run.agent_version_id != agent.agent_version_id:
        raise Denied(Denial.EVAL_RUN_NOT_FOUND)
    if archive.withheld(run):
        raise Denied(Denial.RACE_IN_FLIGHT)
    item = archive.legacy.get((run.eval_run_id, str(body.problem_id)))
    if item is None or item.packed is None:
        raise Denied(Denial.ARTIFACT_NOT_FOUND)
    return f"/objects/logs/{run.eval_run_id}/{item.problem_id}.json.gz"


async def problem_logs(request: Request) -> Response:
    """The gzip'd dialogue as an object store hands it out: typed application/gzip, no content-encoding."""
    if not _is_signed(request):
        return access_denied()
    run_and_problem = request.path_params["eval_run_id"], request.path_params["problem_id"]
    return _tagged(request, archive_of(request).legacy[run_and_problem].packed or b"", "application/gzip")


async def agent_code(request: Request) -> Response:
    """The source of a released agent."""
    if not _is_signed(request):
        return access_denied()
    agent = archive_of(request).agents[request.path_params["agent_version_id"]]
    return _tagged(request, agent.code or b"", "text/x-python")


def _tagged(request: Request, kept: bytes, media_type: str, read: Callable[[bytes], bytes] = bytes) -> Response:
    """Bytes under a strong entity tag of what is kept of them, or 304 to who holds them."""
    headers = {"ETag": entity_tag(kept)}
    if request.headers.get("If-None-Match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(read(kept), media_type=media_type, headers=headers)


def _presigner(request: Request) -> Presigner:
    presigner: Presigner = request.app.state.presigner
    return presigner


def _is_signed(request: Request) -> bool:
    return _presigner(request).allows(request.url.path, request.query_params, datetime.now(UTC))


PLAIN_ROUTES = (
    Route("/v1/public/artifacts/download-url", download_url, methods=["POST"]),
    Route("/objects/logs/{eval_run_id}/{problem_id}.json.gz", problem_logs),
    Route("/v1/public/episode-results/{episode_result_id}/feedback", episode_feedback),
    Route("/objects/code/{agent_version_id}/agent.py", agent_code),
)
