"""Keep-alive HTTP/1.1 connections on the standard library's client: few, bounded in time and in bytes.

It follows no redirect, uses no proxy, logs nothing and knows no endpoint. What it raises names a cause, never a URL.
"""

import io
import re
import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from ipaddress import ip_address
from types import TracebackType
from typing import Any, NamedTuple, Self, cast
from urllib.parse import quote, urlsplit

import certifi

from service.source.http.heads import Head, HeadedResponse
from service.source.refusals import Refusal

MAX_IDLE = 16
"""Connections kept open while nobody uses them, over all hosts; those in use are as many as there are threads."""
IDLE_SECONDS = 20.0
"""Servers close what rests for longer, some while the next request is on its way."""
MAX_URL_BYTES = 65_536
HEAD_BYTES = 64 * 1024
"""Most a response may take before its body."""
WHOLE_TIMEOUTS = 4.0
"""A whole response may take so many times as long as one wait for its next bytes."""
_CHUNK_BYTES = 64 * 1024
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_URL_SAFE = "!#$%&'()*+,/:;=?@[]~"


class NotAnswered(Exception):
    """No response, or one that broke off. Carries a cause and nothing of the request."""

    def __init__(self, reason: Refusal) -> None:
        super().__init__(reason.value)
        self.reason = reason


class Origin(NamedTuple):
    """Whom a connection leads to."""

    scheme: str
    host: str
    port: int


class _Timed(io.RawIOBase):
    """The bytes of one response: up to a deadline, and up to a number that whoever reads may raise."""

    def __init__(self, sock: socket.socket, wait_seconds: float, whole_seconds: float) -> None:
        self._sock = sock
        # The library closes its socket before it reads the last body of a connection; what was opened on it stays.
        self._opened = sock.makefile("rb", buffering=0)
        self._wait_seconds = wait_seconds
        self._deadline = time.monotonic() + whole_seconds
        self.left_bytes = HEAD_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        left_seconds = self._deadline - time.monotonic()
        self._sock.settimeout(max(0.001, min(self._wait_seconds, left_seconds)))
        try:
            count = self._opened.readinto(buffer)
        except TimeoutError:
            # Bytes kept coming, each in time, and had no end: that is about this answer, not about the source.
            raise NotAnswered(Refusal.TIMEOUT if left_seconds > self._wait_seconds else Refusal.TRUNCATED) from None
        if left_seconds <= 0:
            raise NotAnswered(Refusal.TRUNCATED)
        self.left_bytes -= count or 0
        if self.left_bytes < 0:
            raise NotAnswered(Refusal.TOO_LARGE)
        return count

    def close(self) -> None:
        super().close()
        self._opened.close()


class _Reader:
    """What the library takes for a socket: all it does with one is to open it for reading."""

    def __init__(self, raw: _Timed) -> None:
        self._raw = raw

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self._raw)


class _Plain(HTTPConnection):
    public_only = False

    def connect(self) -> None:
        """Connect; to nobody in a private network who is not expected there, whatever his name resolves to."""
        super().connect()
        if self.public_only and not ip_address(self.sock.getpeername()[0].partition("%")[0]).is_global:
            self.close()
            raise NotAnswered(Refusal.FORBIDDEN_HOST)


class _Secure(HTTPSConnection, _Plain):
    """The order of the bases puts the look at the address before the handshake."""


@dataclass(frozen=True, slots=True)
class Response:
    """One response; its body can be read while the block of `Connections.send` lasts."""

    status: int
    headers: Head
    _response: HTTPResponse
    _raw: _Timed

    def pieces(self, most_bytes: int) -> Iterator[bytes]:
        """The body as it comes over the wire, in pieces of at most 64 KiB.

        Raises:
            NotAnswered: TRUNCATED, TIMEOUT, or TOO_LARGE well above `most_bytes`.
        """
        self._raw.left_bytes = 2 * most_bytes + HEAD_BYTES
        with _naming_causes():
            while piece := self._response.read(_CHUNK_BYTES):
                yield piece
            if self._response.length:
                raise NotAnswered(Refusal.TRUNCATED)

    def finish(self) -> None:
        """Note that a response without a body was read whole, so that its connection is kept."""
        if not self._response.length:
            self._response.read()


class _Idle(NamedTuple):
    connection: _Plain
    origin: Origin
    since: float

    def serves(self, origin: Origin, public_only: bool) -> bool:
        return (self.origin, self.connection.public_only) == (origin, public_only)


class Connections:
    """A client that names itself. Safe to share between threads."""

    def __init__(self, headers: Mapping[str, str], timeout_seconds: float) -> None:
        self._headers = dict(headers)
        self._timeout_seconds = timeout_seconds
        self._idle: list[_Idle] = []
        self._lock = threading.Lock()
        self._tls: ssl.SSLContext | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close what rests."""
        with self._lock:
            idle, self._idle = self._idle, []
        for rests in idle:
            rests.connection.close()

    @contextmanager
    def send(
        self,
        method: str,
        url: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        public_only: bool = False,
    ) -> Iterator[Response]:
        """Send one request; the response is there while the block lasts. Its connection is kept if it was read whole.

        Args:
            method: GET or POST.
            url: whom to ask for what; any text.
            body: what to send.
            headers: beside those of every request.
            public_only: talk to nobody in a private network.

        Raises:
            NotAnswered: FORBIDDEN_HOST for what no request can spell, UNREACHABLE, TIMEOUT, TRUNCATED or TOO_LARGE.
        """
        origin, target = _spelled(url)
        connection = self._take(origin, public_only)
        is_rested, is_whole = connection.sock is not None, False
        asked = (method, target, body, {**self._headers, **(headers or {})})
        try:
            try:
                raw, response = self._exchange(connection, *asked)
            except NotAnswered as gone:
                if not is_rested or gone.reason is not Refusal.TRUNCATED:
                    raise
                # The other side closed it while it rested, and the news came after we had looked.
                connection.close()
                connection = self._open(origin, public_only)
                raw, response = self._exchange(connection, *asked)
            with closing(response):
                yield Response(response.status, response.head, response, raw)
                is_whole = response.isclosed() and not response.will_close
        finally:
            if is_whole:
                self._keep(_Idle(connection, origin, time.monotonic()))
            else:
                connection.close()

    def _exchange(
        self, connection: HTTPConnection, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[_Timed, HeadedResponse]:
        if connection.sock is None:
            with _naming_causes(Refusal.UNREACHABLE):
                connection.connect()
        with _naming_causes():
            connection.sock.settimeout(self._timeout_seconds)
            raw = _Timed(connection.sock, self._timeout_seconds, WHOLE_TIMEOUTS * self._timeout_seconds)
            connection.response_class = partial(_response_of, raw)  # type: ignore[assignment]
            connection.request(method, target, body, dict(headers))
            return raw, cast(HeadedResponse, connection.getresponse())

    def _take(self, origin: Origin, public_only: bool) -> _Plain:
        oldest = time.monotonic() - IDLE_SECONDS
        while True:
            with self._lock:
                found = next((idle for idle in reversed(self._idle) if idle.serves(origin, public_only)), None)
                if found is None:
                    break
                self._idle.remove(found)
            if found.since > oldest and not _has_news(found.connection.sock):
                return found.connection
            found.connection.close()
        return self._open(origin, public_only)

    def _open(self, origin: Origin, public_only: bool) -> _Plain:
        connection = self._new(origin)
        connection.public_only = public_only
        return connection

    def _new(self, origin: Origin) -> _Plain:
        if origin.scheme == "http":
            return _Plain(origin.host, origin.port, timeout=self._timeout_seconds)
        return _Secure(origin.host, origin.port, timeout=self._timeout_seconds, context=self._tls_context())

    def _keep(self, rests: _Idle) -> None:
        with self._lock:
            self._idle.append(rests)
            surplus = self._idle.pop(0) if len(self._idle) > MAX_IDLE else None
        if surplus is not None:
            surplus.connection.close()

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context(cafile=certifi.where())
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls


def _response_of(raw: _Timed, _sock: socket.socket, method: str) -> HeadedResponse:
    return HeadedResponse(_Reader(raw), method=method)  # type: ignore[arg-type]


def _has_news(sock: socket.socket) -> bool:
    """Whether a resting connection was closed by the other side, or says what nobody asked for."""
    news = select.poll()
    news.register(sock, select.POLLIN)
    return bool(news.poll(0))


def _spelled(url: str) -> tuple[Origin, str]:
    """Whom to connect to and what to ask for, in ASCII."""
    try:
        if len(url) > MAX_URL_BYTES or _CONTROL.search(url):
            raise ValueError
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError
        host = parts.hostname.encode("idna").decode("ascii")
        query = f"?{parts.query}" if parts.query else ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return Origin(parts.scheme, host, port), quote((parts.path or "/") + query, safe=_URL_SAFE)
    except ValueError:
        # Also of a host that cannot be spelled on the wire, such as one with a label of over 63 characters.
        raise NotAnswered(Refusal.FORBIDDEN_HOST) from None


@contextmanager
def _naming_causes(broken: Refusal = Refusal.TRUNCATED) -> Iterator[None]:
    """Faults of the library and of the system as causes; they would name the host."""
    try:
        yield
    except TimeoutError:
        raise NotAnswered(Refusal.TIMEOUT) from None
    except (OSError, HTTPException, ValueError):
        raise NotAnswered(broken) from None
