"""Follow a set of files that others write, line by line, and say how far each was read. Stores and parses nothing.

A descriptor is held, so that a file that is removed is still read to its end. Memory holds one line at a time, whatever
the files are. The positions that `poll` hands out, stored together with the lines, make a restart go on where it was.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from service.source.validator.followed import Followed, Line, Position
from service.source.validator.places import Place

__all__ = ["Batch", "Limits", "Line", "Position", "Tail"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What following may cost."""

    line_bytes: int = 4 << 20
    """Of longer lines only the beginning is kept; no parser of ours reads more than this."""
    batch_lines: int = 500
    batch_bytes: int = 4 << 20
    open_files: int = 256
    """Descriptors held; of more files than that, the longest unchanged are opened again when they change."""
    linger_seconds: float = 2.0
    """A file that has left its path is at its end when nothing has come for so long."""
    rotated_linger_seconds: float = 10.0
    """The same of a log that is rotated: a server writes to the old file until it is told of the new one."""


class Batch(NamedTuple):
    """Lines of one file, and what to store with them."""

    path: str
    before: Position | None
    """The stored position that `after` takes the place of; None: there is none yet."""
    after: Position | None
    """None: the file is gone and this is the last of it."""
    lines: tuple[Line, ...]


class Tail:
    """The files of one place. Not safe to use from two threads."""

    def __init__(
        self,
        place: Place,
        positions: Iterable[Position],
        limits: Limits = Limits(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._place = place
        self._limits = limits
        self._clock = clock
        self._stored = {(one.path, one.device, one.inode): one for one in positions}
        self._adopted = False
        self._lines: dict[str, int] = {}
        for one in self._stored.values():
            self._lines[one.path] = max(one.lines, self._lines.get(one.path, 0))
        self._files: dict[str, Followed] = {}
        self._leaving: list[Followed] = []
        """Files that were removed, renamed or copied away: read to their end, then let go."""

    @property
    def descriptors(self) -> int:
        """Descriptors held now."""
        return sum(file.is_open for file in (*self._files.values(), *self._leaving))

    def close(self) -> None:
        """Let go of every file; what was handed out stands."""
        for file in (*self._files.values(), *self._leaving):
            file.close()

    def poll(self) -> Iterator[Batch]:
        """Everything that is new since the last time. Whoever cannot store a batch must not ask for the next one."""
        names = self._place.names()
        if not self._adopted:
            self._adopted = True
            yield from self._adopt()
        for name in names:
            yield from self._visit(name)
        for name in sorted(set(self._files).difference(names)):
            yield from self._leave(name)
        for file in self._leaving.copy():
            yield from self._read(file)
            if self._at_end(file):
                self._leaving.remove(file)
                yield from self._end(file)

    def _adopt(self) -> Iterator[Batch]:
        """What became of files that were being read when the last process ended."""
        for key, position in sorted(self._stored.items()):
            found = self._place.stat(position.path)
            if found is not None and Followed.identity(found) == key[1:]:
                continue
            older = self._older_part(position)
            del self._stored[key]
            if older is not None:
                self._leaving.append(older)
            else:
                yield Batch(position.path, position, None, ())

    def _visit(self, name: str) -> Iterator[Batch]:
        found = self._place.stat(name)
        file = self._files.get(name)
        if file is not None and (found is None or Followed.identity(found) != file.key):
            yield from self._leave(name)
            file = None
        if found is None or (file is not None and not file.is_open and file.seen == Followed.look(found)):
            return
        if file is None or not file.is_open:
            file = self._opened(name, file)
        if file is None:
            return
        if file.changed() and file.rewritten():
            older = self._older_part(file.position())
            if older is not None:
                self._leaving.append(older)
                file.stored = None
                yield from self._read(older)
            file.restart()
        yield from self._read(file)

    def _opened(self, name: str, known: Followed | None) -> Followed | None:
        self._park()
        descriptor = self._place.open(name)
        if descriptor is None:
            return None
        file = Followed(name, descriptor, self._limits.line_bytes, self._lines.get(name, 0), self._clock())
        stored = known.stored if known is not None else self._stored.pop((name, *file.key), None)
        if stored is not None and (stored.device, stored.inode) == file.key:
            file.resume(stored)
        self._files[name] = file
        return file

    def _park(self) -> None:
        """Close the files that have not changed for longest, those whose last line has come whole before the others."""
        held = [file for file in self._files.values() if file.is_open]
        held.sort(key=lambda file: (file.has_rest, file.changed_at))
        for file in held[: max(0, len(held) - self._limits.open_files + 1)]:
            file.close()

    def _leave(self, name: str) -> Iterator[Batch]:
        """A file that is no longer under its path: to be read to its end, if we hold it."""
        file = self._files.pop(name)
        if file.is_open:
            self._leaving.append(file)
        elif file.stored is not None:
            yield Batch(name, file.stored, None, ())

    def _older_part(self, position: Position) -> Followed | None:
        """The file that now holds what was read up to `position`, under the name that rotation gave it."""
        for name in self._place.siblings(position.path):
            descriptor = self._place.open(name)
            if descriptor is None:
                continue
            file = Followed(position.path, descriptor, self._limits.line_bytes, position.lines, self._clock())
            if position.offset_bytes and file.holds(position):
                file.resume(position)
                return file
            file.close()
        return None

    def _read(self, file: Followed) -> Iterator[Batch]:
        """The whole lines that have come, and where that leads."""
        if not file.changed():
            return
        file.note(self._clock())
        lines: list[Line] = []
        size = 0
        for line in file.read():
            lines.append(line)
            size += len(line.content)
            if len(lines) >= self._limits.batch_lines or size >= self._limits.batch_bytes:
                yield from self._advance(file, lines)
                lines, size = [], 0
        yield from self._advance(file, lines)

    def _advance(self, file: Followed, lines: list[Line]) -> Iterator[Batch]:
        before, after = file.stored, file.position()
        if after == before or (before is None and after.offset_bytes == 0):
            return
        file.stored = after
        self._lines[file.path] = max(file.lines, self._lines.get(file.path, 0))
        yield Batch(file.path, before, after, tuple(lines))

    def _at_end(self, file: Followed) -> bool:
        quiet = self._clock() - file.changed_at
        if not self._place.rotates:
            return quiet >= self._limits.linger_seconds
        return quiet >= self._limits.rotated_linger_seconds and file.path in self._files

    def _end(self, file: Followed) -> Iterator[Batch]:
        rest = file.rest()
        file.close()
        self._lines[file.path] = max(file.lines, self._lines.get(file.path, 0))
        if rest is not None or file.stored is not None:
            yield Batch(file.path, file.stored, None, (rest,) if rest is not None else ())
