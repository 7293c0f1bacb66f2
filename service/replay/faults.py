"""An upstream's bad days, on purpose: rate limits, errors, cuts, lies and redirects for chosen paths.

For tests of a client; a replay server that people start has none.
"""

import asyncio
import re
import socket
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send

Rewrite = Callable[[Any], Any]
"""Takes a decoded JSON answer and gives the one to be sent in its place; it may change what it takes."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to the next `times` requests whose path the pattern matches."""

    pattern: str
    times: int = 1
    every: int = 1
    """Only the first of so many matching requests is hit, then the first of as many more."""
    delay_seconds: float = 0.0
    status: int | None = None
    """Answer with this status, `headers` and `body` and never ask the application."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    keep_bytes: int | None = None
    """Let the application answer, and send only the first bytes of its body."""
    cut: bool = False
    """With `keep_bytes`: promise the whole body, then close the connection."""
    reset: bool = False
    """With `keep_bytes`: promise the whole body, then reset the connection."""
    missing_bytes: int = 0
    """Promise so many bytes more than there are; fewer if negative, and send them all."""
    drip_seconds: float = 0.0
    """Pause so long after every byte of the body."""
    rewrite: Rewrite | None = None
    """Send another answer, without the entity tag of the true one. Answers that are no JSON stay as they are."""
    before: Callable[[], None] | None = None
    """Done before the application is asked: the archive may change between two pages."""


@dataclass(slots=True)
class _Pending:
    pattern: re.Pattern[str]
    fault: Fault
    left: int
    matched: int = 0


class Faults:
    """The faults still to happen. Safe to fill while the server runs."""

    def __init__(self) -> None:
        self._pending: list[_Pending] = []
        self._lock = Lock()
        self.requests: list[str] = []
        """Path of every request seen, in order."""
        self.happened = 0
        """How many of them a fault has hit."""

    def add(self, fault: Fault) -> None:
        """Let a fault happen to the next matching requests."""
        with self._lock:
            self._pending.append(_Pending(re.compile(fault.pattern), fault, fault.times))

    def clear(self) -> None:
        """Let nothing happen any more."""
        with self._lock:
            self._pending.clear()

    def take(self, path: str) -> Fault | None:
        """The fault for this request, counted down; None when it may pass."""
        with self._lock:
            self.requests.append(path)
            for pending in self._pending:
                if pending.left and pending.pattern.search(path):
                    pending.matched += 1
                    if (pending.matched - 1) % pending.fault.every == 0:
                        pending.left -= 1
                        self.happened += 1
                        return pending.fault
        return None


class FaultInjector:
    """ASGI middleware that lets `Faults` happen."""

    def __init__(self, app: ASGIApp, faults: Faults) -> None:
        self._app = app
        self._faults = faults

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, well or badly."""
        fault = self._faults.take(scope["path"]) if scope["type"] == "http" else None
        if fault is None:
            await self._app(scope, receive, send)
            return
        await asyncio.sleep(fault.delay_seconds)
        if fault.before is not None:
            fault.before()
        if fault.status is not None:
            await _answer(send, fault.status, fault.headers, fault.body)
            return
        await self._app(_asking(scope, fault), receive, _sending(send, fault))


def _asking(scope: Scope, fault: Fault) -> Scope:
    """A request whose answer is to be spoilt must not be answered with 304."""
    headers = [pair for pair in scope["headers"] if fault.rewrite is None or pair[0] != b"if-none-match"]
    return {**scope, "headers": headers}


def _sending(send: Send, fault: Fault) -> Send:
    """The way on which the application's answer is spoilt."""
    if fault.rewrite is not None:
        return _Rewritten(send, fault.rewrite)
    if fault.keep_bytes is not None:
        return _Shortened(send, fault.keep_bytes, promise=fault.cut or fault.reset, reset=fault.reset)
    if fault.missing_bytes:
        return _Miscounted(send, fault.missing_bytes)
    return _Dripping(send, fault.drip_seconds) if fault.drip_seconds else send


async def _answer(send: Send, status: int, headers: Mapping[str, str], body: bytes) -> None:
    pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    pairs.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


def _with_length(message: Message, length: int) -> Message:
    headers = [pair for pair in message["headers"] if pair[0] != b"content-length"]
    return {**message, "headers": [*headers, (b"content-length", str(length).encode())]}


def _transport(send: Send) -> asyncio.Transport:
    """The connection behind uvicorn's own `send`: what no ASGI message can do to it has to be done there."""
    transport: asyncio.Transport = send.__self__.transport  # type: ignore[attr-defined]
    return transport


class _Shortened:
    """Passes on the first bytes of a one-piece response: an honest short one, or a whole one that breaks off."""

    def __init__(self, send: Send, keep_bytes: int, *, promise: bool, reset: bool) -> None:
        self._send = send
        self._keep_bytes = keep_bytes
        self._promise = promise
        self._reset = reset

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and not self._promise:
            message = _with_length(message, self._keep_bytes)
        elif message["type"] == "http.response.body":
            message = {**message, "body": message["body"][: self._keep_bytes], "more_body": self._promise}
        await self._send(message)
        if self._reset and message["type"] == "http.response.body":
            transport = _transport(self._send)
            connection = transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            transport.abort()


class _Miscounted:
    """Passes on a one-piece response under a Content-Length that is wrong."""

    def __init__(self, send: Send, missing_bytes: int) -> None:
        self._send = send
        self._missing_bytes = missing_bytes
        self._start: Message = {}

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        body = message["body"]
        claimed = max(0, len(body) + self._missing_bytes)
        await self._send(_with_length(self._start, claimed))
        await self._send({**message, "body": body[:claimed], "more_body": claimed > len(body)})
        if body[claimed:]:
            _transport(self._send).write(body[claimed:])


class _Dripping:
    """Passes on a one-piece response byte by byte."""

    def __init__(self, send: Send, pause_seconds: float) -> None:
        self._send = send
        self._pause_seconds = pause_seconds

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.body":
            body = message["body"]
            for at in range(len(body) - 1):
                await self._send({**message, "body": body[at : at + 1], "more_body": True})
                await asyncio.sleep(self._pause_seconds)
            message = {**message, "body": body[-1:]}
        await self._send(message)


class _Rewritten:
    """Passes on a one-piece JSON response as another one."""

    def __init__(self, send: Send, rewrite: Rewrite) -> None:
        self._send = send
        self._rewrite = rewrite
        self._start: Message = {}

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        body = message["body"]
        with suppress(orjson.JSONDecodeError):
            body = orjson.dumps(self._rewrite(orjson.loads(body)))
        headers = [pair for pair in self._start["headers"] if pair[0] != b"etag"]
        await self._send(_with_length({**self._start, "headers": headers}, len(body)))
        await self._send({**message, "body": body})
