"""What a command looks at before it starts anything: a wrong setting is one sentence now, not a log line later."""

from pathlib import Path
from urllib.parse import urlsplit

import httpx

from service.cli.output import note
from service.config import Settings
from service.errors import ErrorCode, SluiceError
from service.source.validator import proxy_log

SOURCE_TIMEOUT_SECONDS = 15.0
LISTING = "/v1/public/suites"
"""What every source of ours answers."""


def check_source(url: str, *, must_answer: bool) -> None:
    """See whether the source answers, and as ORO's public API does.

    Raises:
        SluiceError: BAD_INPUT for a URL that is none; SERVICE_UNAVAILABLE when it must answer and does not, or not as
            the API. Otherwise that is noted alone: it may come back.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SluiceError(ErrorCode.BAD_INPUT, f"--source-url must be an http(s) URL, not {url!r}")
    message = _fault(url, f"the source {parts.scheme}://{parts.netloc}")
    if message is not None:
        if must_answer:
            raise SluiceError(ErrorCode.SERVICE_UNAVAILABLE, message)
        note(f"{message}; the workers keep trying")


def _fault(url: str, name: str) -> str | None:
    try:
        status = httpx.get(url.rstrip("/") + LISTING, timeout=SOURCE_TIMEOUT_SECONDS).status_code
    except httpx.HTTPError as error:
        return f"{name} does not answer ({_cause(error)})"
    if status in (httpx.codes.NOT_FOUND, httpx.codes.METHOD_NOT_ALLOWED, httpx.codes.GONE):
        return f"{name} is no public API of ORO's: it answers {LISTING} with HTTP {status}"
    return None


def _cause(error: httpx.HTTPError) -> str:
    """The innermost reason in the system's words, else the kind of the fault."""
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, OSError) and inner.strerror:
            return inner.strerror.lower()
        inner = inner.__cause__ or inner.__context__
    return type(error).__name__


def check_validator_side(settings: Settings) -> None:
    """See whether the validator's own logs can be followed.

    Raises:
        SluiceError: BAD_INPUT for a format of the proxy's log that cannot be read. What is not there is noted alone:
            it may come.
    """
    if settings.proxy_log is not None:
        proxy_log.compile_format(settings.proxy_log_format)
    followed = {"SLUICE_VALIDATOR_LOGS": settings.validator_logs, "SLUICE_PROXY_LOG": settings.proxy_log}
    for name, path in followed.items():
        if path is not None and not path.exists():
            note(f"{name} names {path}, which is not there; nothing of it is read until it is")


def make_folder(path: Path) -> None:
    """Make the data folder if there is none.

    Raises:
        SluiceError: BAD_INPUT when there is something else in its place, or it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"the data folder {path} cannot be made: {error.strerror or type(error).__name__}"
        raise SluiceError(ErrorCode.BAD_INPUT, message) from error
