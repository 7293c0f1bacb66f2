"""Send one request, or one listing request until it answers; turn every way of failing into a Refusal.

It knows no endpoint. URLs of objects are credentials: they reach no log and no exception text.
"""

import random
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version
from json import dumps
from typing import Any
from urllib.parse import urlencode

from service.errors import ErrorCode, SluiceError
from service.source.answers import Fetched, Refused, Unchanged
from service.source.http.budget import MAX_PARK_SECONDS, Budget
from service.source.http.connections import Connections, NotAnswered, Response
from service.source.http.decoding import Malformed, decode
from service.source.http.keeping import KeptAnswers, Validators, entity_tag
from service.source.http.objects import LISTING_CAPS, Caps, TakingFailed, redirect_target, take
from service.source.http.pausing import pause
from service.source.refusals import PASSING, Refusal, refusal_of

LISTING_ATTEMPTS = 4
MAX_REDIRECTS = 3
_ERROR_BODY = Caps(wire_bytes=64 * 1024, unpacked_bytes=64 * 1024)
_JSON = {"Content-Type": "application/json"}
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class SourceRefused(SluiceError):
    """A listing could not be had. `reason` says why and whether to come back."""

    def __init__(self, reason: Refusal, path: str) -> None:
        code = ErrorCode.NOT_FOUND if reason.terminal else ErrorCode.SERVICE_UNAVAILABLE
        super().__init__(code, f"the source refused {path}: {reason}", reason=reason.value, path=path)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Given:
    """The bytes of an answer, unpacked, and what they can be asked for by next time."""

    payload: bytes
    validators: Validators


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


def open_client(timeout_seconds: float = 30.0) -> Connections:
    """An HTTP client that names itself, follows no redirect and logs no URL."""
    try:
        own_version = version("sluice-sn15")
    except PackageNotFoundError:
        own_version = "0"
    return Connections({"User-Agent": f"sluice-sn15/{own_version}", "Accept-Encoding": "gzip"}, timeout_seconds)


class Calls:
    """Requests to one API, within its budget. Safe to share between threads."""

    def __init__(
        self,
        base_url: str,
        budget: Budget,
        client: Connections,
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
        self._kept = KeptAnswers()

    def listing(self, path: str, params: Mapping[str, str | int] | None = None) -> Any:
        """The decoded answer of a GET, asked a few times where the cause is a passing one.

        Raises:
            SourceRefused: it could not be had.
            SluiceError: STOPPING.
        """
        asked = f"{path}?{urlencode(params, errors='replace')}" if params else path
        for attempt in range(LISTING_ATTEMPTS):
            kept = self._kept.find(asked)
            answer = self._ask("GET", asked, caps=LISTING_CAPS, known=kept.validators if kept else Validators())
            if isinstance(answer, Unchanged) and kept is not None:
                return decode(kept.payload)
            if isinstance(answer, Given):
                try:
                    decoded = decode(answer.payload)
                except Malformed:
                    raise SourceRefused(Refusal.UNREADABLE_ANSWER, path) from None
                self._kept.keep(asked, answer.validators, answer.payload)
                return decoded
            reason = answer.reason if isinstance(answer, No) else Refusal.UNEXPECTED
            if reason not in PASSING or attempt == LISTING_ATTEMPTS - 1:
                raise SourceRefused(reason, path)
            if reason is not Refusal.RATE_LIMITED:
                pause(self._backoff_seconds * 2**attempt * random.uniform(0.5, 1.0), self._stopping)
        raise SourceRefused(Refusal.UPSTREAM_ERROR, path)

    def once(self, method: str, path: str, json: Any = None, etag: str | None = None) -> Fetched | Unchanged | No:
        """One request to the API for one object. A 429 parks and slows everyone who shares the budget.

        Args:
            method: GET or POST.
            path: path on the API.
            json: what to send.
            etag: entity tag of bytes that are there already; only with one can the answer be Unchanged.

        Raises:
            SluiceError: STOPPING, the one thing raised; nothing was sent.
        """
        return _object(self._ask(method, path, caps=self._caps, json=json, known=Validators(entity_tag(etag))))

    def follow(self, url: str, etag: str | None = None, *, public_only: bool = False) -> Fetched | Unchanged | No:
        """One object, over redirects that stay on its host.

        The budget is the API's: an object on any other host costs nothing of it. A 429 parks everyone all the same,
        since nothing can be had while objects cannot.

        Args:
            url: where it lies.
            etag: entity tag of bytes that are there already; only with one can the answer be Unchanged.
            public_only: whether the host must not be in a private network.

        Raises:
            SluiceError: STOPPING.
        """
        known = Validators(entity_tag(etag))
        for _ in range(MAX_REDIRECTS):
            is_own = redirect_target(self._base_url, url) is not None
            if is_own:
                self._budget.acquire()
            answer = self._send("GET", url, self._caps, known, public_only=public_only)
            self._mind_limits(answer, is_own=is_own)
            if not isinstance(answer, No) or answer.location is None:
                return _object(answer)
            target = redirect_target(url, answer.location)
            if target is None:
                return No(Refusal.FORBIDDEN_HOST)
            url = target
        return No(Refusal.UNEXPECTED)

    def _ask(self, method: str, path: str, caps: Caps, known: Validators, json: Any = None) -> Given | Unchanged | No:
        self._budget.acquire()
        answer = self._send(method, f"{self._base_url}{path}", caps, known, json=json)
        self._mind_limits(answer, is_own=True)
        if isinstance(answer, No) and answer.reason is Refusal.FORBIDDEN_HOST:
            # The host is the API's own: what no URL can spell is the path.
            return No(Refusal.BAD_REQUEST)
        return answer

    def _mind_limits(self, answer: Given | Unchanged | No, *, is_own: bool) -> None:
        """A 429 parks everyone, and the API's own slows all down; a 5xx of the API parks where it says how long."""
        if not isinstance(answer, No):
            return
        if answer.reason is Refusal.RATE_LIMITED:
            if is_own:
                self._budget.slow_down()
            default = answer.reason.delay.total_seconds()
            self._budget.park(default if answer.retry_after_seconds is None else answer.retry_after_seconds)
        elif answer.reason is Refusal.UPSTREAM_ERROR and is_own and answer.retry_after_seconds is not None:
            self._budget.park(answer.retry_after_seconds)

    def _send(
        self, method: str, url: str, caps: Caps, known: Validators, json: Any = None, *, public_only: bool = False
    ) -> Given | Unchanged | No:
        headers, body = known.headers, None
        if json is not None:
            headers, body = headers | _JSON, dumps(json).encode()
        try:
            with self._client.send(method, url, body, headers, public_only=public_only) as response:
                if response.status == HTTPStatus.OK:
                    payload = take(response.pieces(caps.wire_bytes), caps)
                    return Given(payload, Validators.read(response.headers["ETag"], response.headers["Last-Modified"]))
                if response.status == HTTPStatus.NOT_MODIFIED and any(known):
                    response.finish()
                    return Unchanged()
                return _denial(response)
        except (TakingFailed, NotAnswered) as failed:
            return No(failed.reason)


def _object(answer: Given | Unchanged | No) -> Fetched | Unchanged | No:
    return Fetched(answer.payload, answer.validators.etag) if isinstance(answer, Given) else answer


def _denial(response: Response) -> No:
    try:
        body = decode(take(response.pieces(_ERROR_BODY.wire_bytes), _ERROR_BODY))
    except (TakingFailed, NotAnswered, Malformed):
        body = None
    return No(
        reason=refusal_of(response.status, body),
        retry_after_seconds=retry_after_seconds(response.headers.get("Retry-After"), datetime.now(UTC)),
        location=response.headers.get("Location") if response.status in _REDIRECTS else None,
        status=response.status,
    )


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
