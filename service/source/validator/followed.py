"""One file that is being followed: its whole lines, how far it was read, and whether it is still the same file.

Knows no path on disk and no rotation: `tail` does.
"""

import hashlib
import os
from collections.abc import Iterator
from typing import NamedTuple

CHUNK_BYTES = 256 << 10
HEAD_BYTES = 512
TAIL_BYTES = 256
KEPT_BYTES = 4 << 10
"""What is kept of a line that is too long: enough to tell which problem it is about."""
KEY_BYTES = 64 << 10
_SIGNED = 2**63 - 1


class Position(NamedTuple):
    """How far a file was read, and how to know it again."""

    path: str
    device: int
    inode: int
    offset_bytes: int
    """Everything before was handed out."""
    lines: int
    head_sha256: str
    head_bytes: int
    tail_sha256: str


class Line(NamedTuple):
    """One line."""

    file_key: str
    """Sha256 of the file's first line: rotated or copied, the file keeps it."""
    ordinal: int
    """Place among all lines read under this path, from 0."""
    offset_bytes: int
    content: bytes
    """Without its newline; NUL bytes at its beginning are one. Of a line too long, the first bytes alone."""
    size_bytes: int
    sha256: str
    """Of the whole line."""
    is_cut: bool
    """The file ended within it."""
    is_oversized: bool


class Look(NamedTuple):
    """What shows that a file has changed."""

    size_bytes: int
    mtime_ns: int
    ctime_ns: int


class Followed:
    """A file held open."""

    def __init__(self, path: str, descriptor: int, line_bytes: int, lines: int, now: float) -> None:
        self.path = path
        self.lines = lines
        self.seen: Look | None = None
        self.changed_at = now
        self.stored: Position | None = None
        """What the store knows; None: nothing yet."""
        self.key = self.identity(os.fstat(descriptor))
        self._descriptor = descriptor
        self._limit = line_bytes
        self._known: Position | None = None
        self._file_key = ""
        self._offset = 0
        self._clear_line()

    @staticmethod
    def identity(stat: os.stat_result) -> tuple[int, int]:
        """Device and inode, within what a database's integers hold."""
        return stat.st_dev & _SIGNED, stat.st_ino & _SIGNED

    @staticmethod
    def look(stat: os.stat_result) -> Look:
        """What to compare with `seen`."""
        return Look(stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)

    @property
    def is_open(self) -> bool:
        """Whether the descriptor is held."""
        return self._descriptor >= 0

    @property
    def has_rest(self) -> bool:
        """Whether more has come than whole lines."""
        return self.seen is not None and self.seen.size_bytes > self._offset

    def close(self) -> None:
        """Let go of the descriptor."""
        if self.is_open:
            os.close(self._descriptor)
            self._descriptor = -1

    def resume(self, position: Position) -> None:
        """Go on at a position: this file's, as `rewritten` can tell, or that of the file it is a copy of."""
        self.stored = position
        self._known = position._replace(device=self.key[0], inode=self.key[1])
        self._offset = position.offset_bytes
        self.lines = max(self.lines, position.lines)

    def restart(self) -> None:
        """Begin again: the content is another one. Lines go on being counted."""
        self._offset = 0
        self._known = None
        self._file_key = ""
        self.seen = None
        self._clear_line()

    def changed(self) -> bool:
        """Whether anything was written since `note`."""
        return self.seen != self.look(os.fstat(self._descriptor))

    def note(self, now: float) -> None:
        """Remember how the file looks, before it is read."""
        self.seen = self.look(os.fstat(self._descriptor))
        self.changed_at = now

    def rewritten(self) -> bool:
        """Whether what was read is no longer there: cut short, or written over."""
        return self._known is not None and not self.holds(self._known)

    def holds(self, position: Position) -> bool:
        """Whether this file's content is that of the position's file, up to there."""
        if os.fstat(self._descriptor).st_size < position.offset_bytes:
            return False
        head, tail = self._prints(position.offset_bytes, position.head_bytes)
        return (head, tail) == (position.head_sha256, position.tail_sha256)

    def position(self) -> Position:
        """How far it was read."""
        known = self._known
        if known is None or (known.offset_bytes, known.lines) != (self._offset, self.lines):
            head_bytes = min(HEAD_BYTES, self._offset)
            head, tail = self._prints(self._offset, head_bytes)
            known = Position(self.path, *self.key, self._offset, self.lines, head, head_bytes, tail)
            self._known = known
        return known

    def read(self) -> Iterator[Line]:
        """The whole lines from here on. What comes after the last newline waits."""
        buffer = bytearray()
        while chunk := os.pread(self._descriptor, CHUNK_BYTES, self._line_start + self._beyond + len(buffer)):
            searched = len(buffer)
            buffer += chunk
            while (end := buffer.find(b"\n", searched)) >= 0:
                content = bytes(buffer[:end])
                del buffer[: end + 1]
                searched = 0
                yield self._line(content, is_cut=False)
            if not self._beyond and not buffer.strip(b"\0"):
                self._hole += len(buffer)  # a log cut short under its writer's hands goes on behind a gap of NULs
                buffer.clear()
            elif self._beyond or len(buffer) > self._limit:
                self._set_aside(buffer)
                buffer.clear()

    def rest(self) -> Line | None:
        """What is left behind the last newline, given up as cut; None where nothing is."""
        left = os.pread(self._descriptor, self._limit + 1, self._line_start + self._beyond)
        return self._line(left, is_cut=True) if self._beyond or left.strip(b"\0 \r\n") else None

    @property
    def _line_start(self) -> int:
        return self._offset + self._hole

    def _clear_line(self) -> None:
        self._hole = 0
        self._beyond = 0
        """Bytes of the present line that were seen and not kept: it is too long."""
        self._beginning = b""
        self._digest = hashlib.sha256()

    def _set_aside(self, part: bytearray) -> None:
        if not self._beyond:
            self._beginning = bytes(part[:KEPT_BYTES])
        self._digest.update(part)
        self._beyond += len(part)

    def _line(self, content: bytes, *, is_cut: bool) -> Line:
        start, size = self._line_start, self._beyond + len(content)
        is_oversized = size > self._limit
        if is_oversized:
            self._set_aside(bytearray(content))
            kept, digest = self._beginning, self._digest.hexdigest()
        else:
            solid = content.lstrip(b"\0")
            kept = solid if len(solid) == len(content) and not self._hole else b"\0" + solid
            digest = hashlib.sha256(kept).hexdigest()
        if not self._file_key:
            first = os.pread(self._descriptor, KEY_BYTES, 0).partition(b"\n")[0]
            self._file_key = hashlib.sha256(first).hexdigest()
        line = Line(self._file_key, self.lines, start, kept, size, digest, is_cut, is_oversized)
        self._offset = start + size + (not is_cut)
        self.lines += 1
        self._clear_line()
        return line

    def _prints(self, offset: int, head_bytes: int) -> tuple[str, str]:
        tail_bytes = min(TAIL_BYTES, offset)
        head = os.pread(self._descriptor, head_bytes, 0)
        tail = os.pread(self._descriptor, tail_bytes, offset - tail_bytes)
        return hashlib.sha256(head).hexdigest(), hashlib.sha256(tail).hexdigest()
