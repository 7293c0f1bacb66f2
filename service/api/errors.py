"""Every fault as a problem document (RFC 9457). The only place that knows which HTTP status a fault has."""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import OperationalError
from starlette.exceptions import HTTPException

from service.api.schemas import Fault
from service.errors import ErrorCode, SluiceError

MEDIA_TYPE = "application/problem+json"
CONTENT = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Fault"}}}
"""How the OpenAPI document says that an answer is a problem document."""

STATUS_BY_CODE: dict[ErrorCode, HTTPStatus] = {
    ErrorCode.BAD_INPUT: HTTPStatus.UNPROCESSABLE_ENTITY,
    ErrorCode.NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorCode.PREREQUISITE_MISSING: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.SERVICE_UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.SCHEMA_OUTDATED: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.DATA_DIR_IN_USE: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.EMPTY_SPLIT: HTTPStatus.CONFLICT,
    ErrorCode.AUDIT_FAILED: HTTPStatus.CONFLICT,
    ErrorCode.COMPONENT_TOO_LARGE: HTTPStatus.CONFLICT,
    ErrorCode.QUARANTINE_TOO_LARGE: HTTPStatus.CONFLICT,
    ErrorCode.LEASE_LOST: HTTPStatus.CONFLICT,
    ErrorCode.DIGEST_MISMATCH: HTTPStatus.INTERNAL_SERVER_ERROR,
    ErrorCode.STOPPING: HTTPStatus.SERVICE_UNAVAILABLE,
}
"""Total: a test holds it against the enum."""

log = logging.getLogger("sluice.api")


def problem(
    status: int, code: str, detail: str, *, context: Mapping[str, Any] | None = None, headers: Any = None
) -> JSONResponse:
    """One problem document."""
    body = Fault(title=HTTPStatus(status).phrase, status=status, code=code, detail=detail, context=dict(context or {}))
    return JSONResponse(body.model_dump(mode="json"), status_code=status, media_type=MEDIA_TYPE, headers=headers)


def install(app: FastAPI) -> None:
    """Answer every fault of `app` with a problem document."""
    app.add_exception_handler(SluiceError, _named_fault)
    app.add_exception_handler(HTTPException, _http_fault)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(OperationalError, _database_gone)
    app.add_exception_handler(Exception, _unforeseen)


def _named_fault(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, SluiceError)
    return problem(STATUS_BY_CODE[error.code], error.code, error.message, context=error.context)


def _http_fault(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    return problem(status, status.name, status.description or status.phrase, headers=error.headers)


def _invalid_request(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    # What was sent is not repeated: it may be a secret, or no text at all.
    faults = [{"where": [str(part) for part in fault["loc"]], "fault": fault["msg"]} for fault in error.errors()]
    return problem(
        STATUS_BY_CODE[ErrorCode.BAD_INPUT],
        ErrorCode.BAD_INPUT,
        "a parameter cannot be used; `context.faults` says which",
        context={"faults": faults},
    )


def _database_gone(request: Request, error: Exception) -> JSONResponse:
    log.error("the database did not answer: %s", type(error).__name__, exc_info=error)
    return problem(
        STATUS_BY_CODE[ErrorCode.SERVICE_UNAVAILABLE],
        ErrorCode.SERVICE_UNAVAILABLE,
        "the database does not answer at present",
        headers={"Retry-After": "5"},
    )


def _unforeseen(request: Request, error: Exception) -> JSONResponse:
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    return problem(status, status.name, "the service failed; its log says why")
