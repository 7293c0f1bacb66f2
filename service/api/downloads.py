"""A file as a response: strong ETag, ranges, conditional requests, 1 MiB chunks. Knows nothing of snapshots."""

from http import HTTPStatus
from pathlib import Path

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, MalformedRangeHeader, RangeNotSatisfiable, Response
from starlette.types import Receive, Scope, Send

CHUNK_BYTES = 1 << 20
RANGES_MAX = 16
"""A request for more ranges than this gets the whole file."""


class Download(FileResponse):
    """One immutable file. Its bytes are known by their sha256, so the ETag is strong and time plays no part.

    Starlette reads the ranges; this adds the conditions, which it leaves to its static files.
    """

    chunk_size = CHUNK_BYTES
    max_ranges = RANGES_MAX

    def __init__(self, path: Path, *, etag: str, media_type: str, headers: dict[str, str]) -> None:
        super().__init__(path, media_type=media_type, headers={"ETag": f'"{etag}"', **headers}, stat_result=path.stat())
        del self.headers["last-modified"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 304 when the client has these bytes already, else the file or the ranges asked for."""
        wanted = Headers(scope=scope).get("if-none-match")
        if wanted is not None and _matches(wanted, self.headers["etag"]):
            kept = {name: self.headers[name] for name in ("etag", "cache-control") if name in self.headers}
            await Response(status_code=304, headers=kept)(scope, receive, send)
            return
        await super().__call__(scope, receive, send)

    @classmethod
    def _parse_range_header(cls, http_range: str, file_size: int) -> list[tuple[int, int]]:
        """Refuse as every route does, where Starlette answers in plain text."""
        try:
            return super()._parse_range_header(http_range, file_size)
        except MalformedRangeHeader as error:
            raise HTTPException(HTTPStatus.BAD_REQUEST, error.content) from error
        except RangeNotSatisfiable as error:
            status = HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
            raise HTTPException(status, headers={"Content-Range": f"bytes */{error.max_size}"}) from error

    def _should_use_range(self, http_if_range: str) -> bool:
        return http_if_range == self.headers["etag"]


def _matches(if_none_match: str, etag: str) -> bool:
    """Weak comparison, as RFC 9110 wants it for If-None-Match."""
    tags = (tag.strip().removeprefix("W/") for tag in if_none_match.split(","))
    return any(tag in ("*", etag) for tag in tags)
