"""What stands before FastAPI: the routes a harvest lives on, without its middleware, and entity tags for listings.

A harvest is two requests for each item; FastAPI's way to a handler costs more than all that is done there. It knows
no route by name and no archive.
"""

from collections.abc import Sequence
from hashlib import sha256

from fastapi import FastAPI, Request
from starlette.routing import Match, Route
from starlette.types import Message, Receive, Scope, Send

from service.replay.answers import Denied, denied_answer


def entity_tag(content: bytes) -> str:
    """A strong entity tag."""
    return f'"{sha256(content).hexdigest()[:32]}"'


class Dispatch:
    """Answers the direct routes itself; hands everything else to the application."""

    def __init__(self, app: FastAPI, direct: Sequence[Route]) -> None:
        self._app = app
        self._direct = direct

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        for route in self._direct:
            match, found = route.matches(scope)
            if match is Match.FULL:
                request = Request({**scope, **found, "app": self._app}, receive)
                try:
                    response = await route.endpoint(request)
                except Denied as denied:
                    response = await denied_answer(request, denied)
                await response(scope, receive, send)
                return
        await self._app(scope, receive, _Tagged(scope, send) if scope["method"] == "GET" else send)


class _Tagged:
    """Gives one-piece answers an entity tag, or says 304 to who holds them."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._held = dict(scope["headers"]).get(b"if-none-match")
        self._send = send
        self._start: Message | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            names = {name for name, _ in message["headers"]}
            if message["status"] == 200 and b"etag" not in names:
                self._start = message
                return
        elif self._start is not None:
            start, self._start = self._start, None
            etag = entity_tag(message["body"]).encode()
            if not message.get("more_body") and etag == self._held:
                start, message = {**start, "status": 304, "headers": []}, {**message, "body": b""}
            await self._send({**start, "headers": [*start["headers"], (b"etag", etag)]})
        await self._send(message)
