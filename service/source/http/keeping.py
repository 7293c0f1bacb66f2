"""Listings kept with their validators, so that the source need not send again what has not changed. Sends nothing.

Kept in the memory of the process and not stored: after a restart each listing comes whole once, and no second copy of
what the source said can be older than the rows made of it.
"""

import re
import threading
from collections import OrderedDict
from typing import NamedTuple, Self

import zstandard

_ETAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e]{0,200}"')
_DATE = re.compile(r"[A-Za-z0-9:, +-]{1,40}")
ZSTD_LEVEL = 3


class Validators(NamedTuple):
    """What an answer can be asked for by, next time; both None where the source gave none."""

    etag: str | None = None
    last_modified: str | None = None

    @classmethod
    def read(cls, etag: str | None, last_modified: str | None) -> Self:
        """Those of an answer, where they can be sent back."""
        is_date = last_modified is not None and _DATE.fullmatch(last_modified)
        return cls(entity_tag(etag), last_modified if is_date else None)

    @property
    def headers(self) -> dict[str, str]:
        """The same, as a request names them."""
        named = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in named.items() if value is not None}


class Kept(NamedTuple):
    """One answer, packed."""

    validators: Validators
    zstd: bytes

    @property
    def payload(self) -> bytes:
        """The answer as it came."""
        return zstandard.decompress(self.zstd)


class KeptAnswers:
    """The answers used last, up to a size. Safe to share between threads."""

    def __init__(self, most_bytes: int = 16 * 1024 * 1024) -> None:
        self._most_bytes = most_bytes
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def find(self, name: str) -> Kept | None:
        """The answer kept under a name."""
        with self._lock:
            if name in self._kept:
                self._kept.move_to_end(name)
            return self._kept.get(name)

    def keep(self, name: str, validators: Validators, payload: bytes) -> None:
        """Keep an answer in the place of an earlier one, if it can be asked for by anything."""
        kept = Kept(validators, zstandard.compress(payload, ZSTD_LEVEL)) if any(validators) else None
        with self._lock:
            self._drop(self._kept.pop(name, None))
            if kept is None or len(kept.zstd) > self._most_bytes:
                return
            self._kept[name] = kept
            self._bytes += len(kept.zstd)
            while self._bytes > self._most_bytes:
                self._drop(self._kept.popitem(last=False)[1])

    def _drop(self, kept: Kept | None) -> None:
        self._bytes -= len(kept.zstd) if kept else 0


def entity_tag(value: str | None) -> str | None:
    """An entity tag that may be kept and sent back; None for what is none, or is longer than any."""
    return value if value is not None and _ETAG.fullmatch(value) else None
