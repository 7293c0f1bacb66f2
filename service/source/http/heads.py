"""The head of a response, read into a mapping. Reads no body: the library does that by what is found here.

The library's own reading makes an e-mail of every head, which costs more than all else that a small answer costs.
"""

import re
from http.client import BadStatusLine, HTTPException, HTTPResponse
from typing import Any

MOST_LINES = 100
"""As the library has it. Whoever opened the response bounds the bytes."""
_STATUS = re.compile(rb"HTTP/1\.([0-9]+) +([1-9][0-9]{2})(?: [^\r\n]*)?\r?\n")
_EMPTY_LINES = (b"\r\n", b"\n", b"")
_BODILESS = frozenset({204, 304})


class Head:
    """Fields by name in any case; of those that come twice the first, and None for those that do not come."""

    def __init__(self, lines: list[bytes]) -> None:
        self._fields: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.decode("latin-1").partition(":")
            if colon and not name[:1].isspace():
                self._fields.setdefault(name.rstrip().lower(), value.strip())

    def __getitem__(self, name: str) -> str | None:
        return self._fields.get(name.lower())

    def get(self, name: str, default: Any = None) -> Any:
        """A field, or the default: what the library asks by."""
        return self._fields.get(name.lower(), default)


class HeadedResponse(HTTPResponse):
    """The library's response behind a head read here."""

    head: Head

    def begin(self) -> None:
        """Read the head, past those that only say that there is more to come.

        Raises:
            HTTPException: it is none, or too long.
        """
        status = 100
        while 100 <= status < 200:
            status = self._read_status_line()
            self.head = Head(self._read_lines())
        self.headers = self.msg = self.head  # type: ignore[assignment]
        self.code = self.status = status
        self._note_framing()

    def _read_status_line(self) -> int:
        line = self.fp.readline()
        found = _STATUS.fullmatch(line)
        if found is None:
            raise BadStatusLine("not HTTP/1")
        self.version = 10 if found[1] == b"0" else 11
        self.reason = ""
        return int(found[2])

    def _read_lines(self) -> list[bytes]:
        lines: list[bytes] = []
        while (line := self.fp.readline()) not in _EMPTY_LINES:
            lines.append(line)
            if len(lines) > MOST_LINES:
                raise HTTPException("too many lines")
        return lines

    def _note_framing(self) -> None:
        """How the body ends: by chunks, by its length, or with the connection."""
        self.chunked = (self.head["transfer-encoding"] or "").lower() == "chunked"
        self.chunk_left = None
        length = self.head["content-length"] or ""
        self.length = int(length) if length.isdecimal() and not self.chunked else None
        if self.status in _BODILESS:
            self.length = 0
        said = (self.head["connection"] or "").lower()
        stays = "close" not in said if self.version == 11 else "keep-alive" in said
        self.will_close = not stays or (not self.chunked and self.length is None)
