"""Artifacts: the request for a presigned URL, the objects behind it, and episode feedback. Embargoes are kept here."""

import gzip
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response
from pydantic import BaseModel

from service.replay.answers import Denial, Denied, access_denied, json_answer
from service.replay.lookups import Recorded, agent_named, released_at, run_named
from service.replay.presign import Presigner
from service.replay.recorded import Archive
from service.replay.shapes import moment

router = APIRouter()


def _presigner(request: Request) -> Presigner:
    presigner: Presigner = request.app.state.presigner
    return presigner


Signing = Annotated[Presigner, Depends(_presigner)]


@router.get("/v1/public/episode-results/{episode_result_id}/feedback")
async def episode_feedback(archive: Recorded, episode_result_id: UUID) -> Response:
    """A gated episode and an absent one look alike."""
    run, item = archive.episodes.get(str(episode_result_id), (None, None))
    if run is None or item is None or archive.withheld(run):
        raise Denied(Denial.ARTIFACT_NOT_FOUND)
    return Response(gzip.decompress(item.packed), media_type="application/json")


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


@router.post("/v1/public/artifacts/download-url")
async def download_url(archive: Recorded, presigner: Signing, request: Request, body: ArtifactRequest) -> Response:
    """A short-lived URL of one object, or why there is none."""
    path = _object_path(archive, body)
    signed, expires_at = presigner.sign(path, datetime.now(UTC))
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


@router.get("/objects/logs/{eval_run_id}/{name}")
async def problem_logs(
    archive: Recorded, presigner: Signing, request: Request, eval_run_id: str, name: str
) -> Response:
    """The gzip'd dialogue as an object store hands it out: typed application/gzip, no content-encoding."""
    if not presigner.allows(request.url.path, request.query_params, datetime.now(UTC)):
        return access_denied()
    packed = archive.legacy[eval_run_id, name.removesuffix(".json.gz")].packed
    return Response(packed, media_type="application/gzip")


@router.get("/objects/code/{agent_version_id}/agent.py")
async def agent_code(archive: Recorded, presigner: Signing, request: Request, agent_version_id: str) -> Response:
    """The source of a released agent."""
    if not presigner.allows(request.url.path, request.query_params, datetime.now(UTC)):
        return access_denied()
    return Response(archive.agents[agent_version_id].code, media_type="text/x-python")
