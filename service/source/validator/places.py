"""Where followed files lie, and opening them without being led elsewhere. Reads no file.

Agents can write into some of these folders. No link below a validator's folder is followed, nothing but a regular file
is opened, and no open can block.
"""

import os
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

LOG_PATTERNS = (
    ("eval_*", "output.jsonl"),
    ("environment-runs", "*", "episode_results.jsonl"),
    ("environment-runs", "*", "sandbox", "sandbox_output.jsonl"),
)
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Place:
    """A folder and the names below it that are followed."""

    def __init__(self, folder: Path, patterns: tuple[tuple[str, ...], ...], *, rotates: bool = False) -> None:
        """Args:
        folder: may be absent for now, and may itself be a link.
        patterns: parts of relative paths, each a name or with `*` in it.
        rotates: older parts of a file lie beside it under longer names, and its name may be a link: the operator's
            own log, not a folder that agents write into.
        """
        self.folder = folder
        self.patterns = patterns
        self.rotates = rotates
        self.refused: set[str] = set()
        """Relative paths that are no regular file, are reached over a link, or may not be read."""

    def names(self) -> list[str]:
        """Relative paths that exist now, sorted."""
        found = {name for pattern in self.patterns for name in self._matching("", pattern)}
        return sorted(found)

    def stat(self, name: str) -> os.stat_result | None:
        """What lies under a relative path now; None where no regular file does."""
        try:
            found = os.stat(self.folder / name, follow_symlinks=self.rotates)
        except OSError:
            return None
        if stat.S_ISREG(found.st_mode):
            return found
        self.refused.add(name)
        return None

    def open(self, name: str) -> int | None:
        """A descriptor of the file under a relative path; None where there is none, or none that may be opened."""
        try:
            descriptor = os.open(self.folder / name, _FILE) if self.rotates else self._open_inside(name)
        except FileNotFoundError:
            return None
        except OSError:
            self.refused.add(name)
            return None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            self.refused.add(name)
            return None
        self.refused.discard(name)
        return descriptor

    def siblings(self, name: str) -> list[str]:
        """Relative paths beside `name` that begin with it, as rotation names older parts; newest names first."""
        if not self.rotates:
            return []
        return sorted(other for other in self._entries("", folders=False) if other.startswith(name) and other != name)

    def _open_inside(self, name: str) -> int:
        """Open part by part, so that no part can become a link between a check and its use."""
        *folders, last = name.split("/")
        here = os.open(self.folder, _FOLDER)
        try:
            for part in folders:
                inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=here)
                os.close(here)
                here = inner
            return os.open(last, _FILE | os.O_NOFOLLOW, dir_fd=here)
        finally:
            os.close(here)

    def _matching(self, below: str, pattern: tuple[str, ...]) -> Iterator[str]:
        first, *rest = pattern
        if not rest:
            name = f"{below}{first}"
            if os.path.lexists(self.folder / name):
                yield name
            return
        parts = [first] if "*" not in first else self._entries(below, folders=True)
        for part in parts:
            if fnmatchcase(part, first):
                yield from self._matching(f"{below}{part}/", tuple(rest))

    def _entries(self, below: str, *, folders: bool) -> list[str]:
        try:
            with os.scandir(self.folder / below) as entries:
                return [
                    e.name for e in entries if _is_text(e.name) and (not folders or e.is_dir(follow_symlinks=False))
                ]
        except OSError:
            return []


def _is_text(name: str) -> bool:
    """Whether a name can be stored; names are bytes, and need not be UTF-8."""
    return not any("\ud800" <= mark <= "\udfff" for mark in name)
