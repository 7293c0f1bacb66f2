"""Send one request, or one listing request until it answers; turn every way of failing into a Refusal.

It knows no endpoint. URLs of objects are credentials: they reach no log and no exception text.
"""

import logging
import random
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import httpx

from service.errors import ErrorCode, SluiceError
from service.source.budget import MAX_PARK_SECONDS, Budget
from service.source.decoding import Malformed, decode
from service.source.listing import Fetched, Refused, Unchanged
from service.source.objects import LISTING_CAPS, Caps, TakingFailed, redirect_target, take
from service.source.pausing import pause
from service.source.refusals import PASSING, Refusal, refusal_of

LISTING_ATTEMPTS = 4
MAX_REDIRECTS = 3
_ERROR_BODY = Caps(wire_bytes=64 * 1024, unpacked_bytes=64 * 1024)
_CHUNK_BYTES = 64 * 1024
_ETAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e]{0,200}"')


class SourceRefused(SluiceError):
    """A listing could not be had. `reason` says why and whether to come back."""

    def __init__(self, reason: Refusal, path: str) -> None:
        code = ErrorCode.NOT_FOUND if reason.terminal else ErrorCode.SERVICE_UNAVAILABLE
        super().__init__(code, f"the source refused {path}: {reason}", reason=reason.value, path=path)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class No:
    """A request that gave nothing."""

    reason: Refusal
    retry_after_seconds: float | None = None
    location: str | None = None
    status: int | None = None

    def refused(self, reason: Refusal | None = None) -> Refused:
        """The answer to who asked, with the time to come back; `reason` where the caller knows better."""
        reason = reason or self.reason
        if reason.terminal:
            return Refused(reason, None)
        wait = reason.delay if self.retry_after_seconds is None else timedelta(seconds=self.retry_after_seconds)
        return Refused(reason, datetime.now(UTC) + wait)


def open_client(timeout_seconds: float = 30.0) -> httpx.Client:
    """An HTTP client that names itself, follows no redirect and logs no URL."""
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        own_version = version("sluice-sn15")
    except PackageNotFoundError:
        own_version = "0"
    headers = {"User-Agent": f"sluice-sn15/{own_version}", "Accept-Encoding": "gzip"}
    return httpx.Client(headers=headers, timeout=timeout_seconds, follow_redirects=False)


class Calls:
    """Requests to one API, within its budget. Safe to share between threads."""

    def __init__(
        self,
        base_url: str,
        budget: Budget,
        client: httpx.Client,
        caps: Caps,
        backoff_seconds: float,
        stopping: threading.Event,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._budget = budget
        self._client = client
        self._caps = caps
        self._backoff_seconds = backoff_seconds
        self._stopping = stopping

    def listing(self, path: str, params: Mapping[str, str | int] | None = None) -> Any:
        """The decoded answer of a GET, asked a few times where the cause is a passing one.

        Raises:
            SourceRefused: it could not be had.
            SluiceError: STOPPING.
        """
        for attempt in range(LISTING_ATTEMPTS):
            answer = self.once("GET", path, params=params, caps=LISTING_CAPS)
            if isinstance(answer, Unchanged):
                raise SourceRefused(Refusal.UNEXPECTED, path)
            if isinstance(answer, Fetched):
                try:
                    return decode(answer.payload)
                except Malformed:
                    raise SourceRefused(Refusal.UNREADABLE_ANSWER, path) from None
            if answer.reason not in PASSING or attempt == LISTING_ATTEMPTS - 1:
                raise SourceRefused(answer.reason, path)
            if answer.reason is not Refusal.RATE_LIMITED:
                pause(self._backoff_seconds * 2**attempt * random.uniform(0.5, 1.0), self._stopping)
        raise SourceRefused(Refusal.UPSTREAM_ERROR, path)

    def once(
        self,
        method: str,
        path: str,
        params: Mapping[str, str | int] | None = None,
        json: Any = None,
        caps: Caps | None = None,
        etag: str | None = None,
    ) -> Fetched | Unchanged | No:
        """One request to the API. A 429 parks and slows everyone who shares the budget.

        Args:
            method: GET or POST.
            path: path on the API.
            params: its query.
            json: what to send.
            caps: how much may come back; by default one object.
            etag: entity tag of bytes that are there already; only with one can the answer be Unchanged.

        Raises:
            SluiceError: STOPPING, the one thing raised; nothing was sent.
        """
        self._budget.acquire()
        answer = self._send(method, f"{self._base_url}{path}", caps or self._caps, params=params, json=json, etag=etag)
        if isinstance(answer, No) and answer.reason is Refusal.FORBIDDEN_HOST:
            # The host is the API's own: what no URL can spell is the path.
            return No(Refusal.BAD_REQUEST)
        if isinstance(answer, No) and answer.reason is Refusal.RATE_LIMITED:
            self._budget.slow_down()
            default = answer.reason.delay.total_seconds()
            self._budget.park(default if answer.retry_after_seconds is None else answer.retry_after_seconds)
        return answer

    def follow(self, url: str, etag: str | None = None) -> Fetched | Unchanged | No:
        """One object, over redirects that stay on its host. Costs nothing of the API's budget."""
        for _ in range(MAX_REDIRECTS):
            answer = self._send("GET", url, self._caps, etag=etag)
            if not isinstance(answer, No) or answer.location is None:
                return answer
            target = redirect_target(url, answer.location)
            if target is None:
                return No(Refusal.FORBIDDEN_HOST)
            url = target
        return No(Refusal.UNEXPECTED)

    def _send(
        self,
        method: str,
        url: str,
        caps: Caps,
        params: Mapping[str, str | int] | None = None,
        json: Any = None,
        etag: str | None = None,
    ) -> Fetched | Unchanged | No:
        """Exceptions of the HTTP client name the URL, so none of them leaves here."""
        etag = entity_tag(etag)
        headers = {"If-None-Match": etag} if etag else None
        try:
            with self._client.stream(method, url, params=params, json=json, headers=headers) as response:
                if response.status_code == httpx.codes.OK:
                    payload = take(response.iter_raw(_CHUNK_BYTES), caps)
                    return Fetched(payload, entity_tag(response.headers.get("ETag")))
                if response.status_code == httpx.codes.NOT_MODIFIED and etag:
                    return Unchanged()
                return _denial(response)
        except TakingFailed as failed:
            return No(failed.reason)
        except httpx.TimeoutException:
            return No(Refusal.TIMEOUT)
        except (httpx.RemoteProtocolError, httpx.ReadError):
            return No(Refusal.TRUNCATED)
        except httpx.TransportError:
            return No(Refusal.UNREACHABLE)
        except (httpx.InvalidURL, ValueError):
            # ValueError: a host or path that cannot be spelled on the wire, such as a label over 63 characters.
            return No(Refusal.FORBIDDEN_HOST)


def _denial(response: httpx.Response) -> No:
    try:
        body = decode(take(response.iter_raw(_CHUNK_BYTES), _ERROR_BODY))
    except (TakingFailed, Malformed):
        body = None
    return No(
        reason=refusal_of(response.status_code, body),
        retry_after_seconds=retry_after_seconds(response.headers.get("Retry-After"), datetime.now(UTC)),
        location=response.headers.get("Location") if response.is_redirect else None,
        status=response.status_code,
    )


def entity_tag(value: str | None) -> str | None:
    """An entity tag that may be kept and sent back; None for what is none, or is longer than any."""
    return value if value is not None and _ETAG.fullmatch(value) else None


def retry_after_seconds(value: str | None, now: datetime) -> float | None:
    """Seconds to wait by a Retry-After header (number or HTTP date), an hour at most; None where it says nothing."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            at = parsedate_to_datetime(value)
        except (ValueError, OverflowError):
            return None
        seconds = ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds()
    return min(max(seconds, 0.0), MAX_PARK_SECONDS) if seconds == seconds else None
