"""An upstream's bad days, on purpose: rate limits, errors, cuts and redirects for chosen paths.

For tests of a client; a replay server that people start has none.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

from starlette.types import ASGIApp, Message, Receive, Scope, Send


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to the next `times` requests whose path the pattern matches."""

    pattern: str
    times: int = 1
    delay_seconds: float = 0.0
    status: int | None = None
    """Answer with this status, `headers` and `body` and never ask the application."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    keep_bytes: int | None = None
    """Let the application answer, and send only the first bytes of its body."""
    cut: bool = False
    """With `keep_bytes`: promise the whole body, then close the connection."""


class Faults:
    """The faults still to happen. Safe to fill while the server runs."""

    def __init__(self) -> None:
        self._pending: list[tuple[re.Pattern[str], Fault, list[int]]] = []
        self._lock = Lock()
        self.requests: list[str] = []
        """Path of every request seen, in order."""

    def add(self, fault: Fault) -> None:
        """Let a fault happen to the next matching requests."""
        with self._lock:
            self._pending.append((re.compile(fault.pattern), fault, [fault.times]))

    def take(self, path: str) -> Fault | None:
        """The fault for this request, counted down; None when it may pass."""
        with self._lock:
            self.requests.append(path)
            for pattern, fault, left in self._pending:
                if left[0] and pattern.search(path):
                    left[0] -= 1
                    return fault
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
        if fault.status is not None:
            await _answer(send, fault.status, fault.headers, fault.body)
        elif fault.keep_bytes is not None:
            await self._app(scope, receive, _Shortened(send, fault.keep_bytes, fault.cut))
        else:
            await self._app(scope, receive, send)


async def _answer(send: Send, status: int, headers: Mapping[str, str], body: bytes) -> None:
    pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    pairs.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


class _Shortened:
    """Passes on the first bytes of a one-piece response: an honest short one, or a whole one that breaks off."""

    def __init__(self, send: Send, keep_bytes: int, cut: bool) -> None:
        self._send = send
        self._keep_bytes = keep_bytes
        self._cut = cut

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and not self._cut:
            headers = [pair for pair in message["headers"] if pair[0] != b"content-length"]
            length = (b"content-length", str(self._keep_bytes).encode())
            message = {**message, "headers": [*headers, length]}
        elif message["type"] == "http.response.body":
            message = {**message, "body": message["body"][: self._keep_bytes], "more_body": self._cut}
        await self._send(message)
