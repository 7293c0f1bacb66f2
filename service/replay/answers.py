"""How the replay server says no: ORO's typed error bodies and S3's XML. It holds no route."""

from enum import Enum
from typing import Any, NamedTuple

import orjson
from fastapi import Request
from fastapi.responses import Response


class _Answer(NamedTuple):
    status: int
    detail: str


class Denial(Enum):
    """One documented error code, with the status and the sentence it comes with."""

    RACE_NOT_FOUND = _Answer(404, "Race not found")
    AGENT_VERSION_NOT_FOUND = _Answer(404, "Agent version not found")
    EVAL_RUN_NOT_FOUND = _Answer(404, "Evaluation run not found")
    SUITE_NOT_FOUND = _Answer(404, "Suite not found")
    ARTIFACT_NOT_FOUND = _Answer(404, "Artifact not found")
    ARTIFACT_NOT_RELEASED = _Answer(404, "Artifact not released yet")
    RACE_IN_FLIGHT = _Answer(403, "Race artifacts are withheld until the race completes")
    MISSING_PARAMETER = _Answer(400, "A parameter this artifact type needs is missing")
    INVALID_ARTIFACT_TYPE = _Answer(400, "This artifact type is not served here")


class Denied(Exception):
    """Raised by a route to answer with a typed error."""

    def __init__(self, denial: Denial) -> None:
        super().__init__(denial.name)
        self.denial = denial


def json_answer(content: Any, status: int = 200) -> Response:
    """A JSON response."""
    return Response(orjson.dumps(content), status_code=status, media_type="application/json")


async def denied_answer(_: Request, denied: Exception) -> Response:
    """The body of a typed error: `{detail, error_code}`."""
    if not isinstance(denied, Denied):
        raise denied
    answer = denied.denial.value
    return json_answer({"detail": answer.detail, "error_code": denied.denial.name}, answer.status)


def access_denied() -> Response:
    """What S3 says to a presigned URL that is expired or forged."""
    body = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"
    )
    return Response(body, status_code=403, media_type="application/xml")
