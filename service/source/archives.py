"""Files of rows, plain, gzip or zstd by content, line by line under caps. Knows no format; decodes nothing.

Memory is bounded by the longest line allowed and the window of the compression, whatever the size of the file.
"""

import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import zstandard

from service.source.http.objects import GZIP_MAGIC

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_GZIP_WINDOW = 31
_READ_BYTES = 64 * 1024
_PIECE_BYTES = 64 * 1024
_ZSTD_FEED_BYTES = 256
"""A block of 4 bytes may unpack to 128 KiB, so pieces of this size unpack to 8 MiB at most."""
_BOM = b"\xef\xbb\xbf"


class ArchiveFault(StrEnum):
    """Why a file was not read to its end."""

    TOO_LARGE = "too_large"
    BOMB = "bomb"
    """It unpacks to more than any honest file of its size."""
    BAD_COMPRESSION = "bad_compression"
    TRUNCATED = "truncated"
    """The compressed stream has no end."""


class ArchiveBroken(Exception):
    """The file cannot be read any further. Lines that came before stand."""

    def __init__(self, fault: ArchiveFault) -> None:
        super().__init__(fault.value)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class ArchiveCaps:
    """How much one file may hold."""

    file_bytes: int = 64 * 1024**3
    unpacked_bytes: int = 256 * 1024**3
    ratio: float = 500.0
    ratio_free_bytes: int = 16 * 1024 * 1024
    """Below this size any ratio is harmless."""
    line_bytes: int = 8 * 1024 * 1024
    zstd_window_bytes: int = 64 * 1024 * 1024


class Line(NamedTuple):
    """One line that is not blank, without its line ending; `body` is None where it is longer than allowed."""

    number: int
    """From 1, blank lines counted."""
    body: bytes | None


class Archive:
    """One file, read from its beginning by each call of `lines` or `document`."""

    def __init__(self, path: Path, caps: ArchiveCaps) -> None:
        self._path = path
        self._caps = caps
        self.size_bytes = 0
        """Bytes read of the file as it lies there."""
        self.sha256: str | None = None
        """Hex digest of the file as it lies there; None until it was read to its end."""

    def lines(self) -> Iterator[Line]:
        """The lines, in order.

        Raises:
            ArchiveBroken: see `ArchiveFault`; what could be read before has been given.
            OSError: the file cannot be opened or read.
        """
        waiting = bytearray()
        number, dropping = 1, False
        for piece in self._without_bom():
            start = 0
            while (end := piece.find(b"\n", start)) >= 0:
                waiting += piece[start:end]
                if dropping or waiting.strip():
                    yield Line(number, self._body(waiting, dropping))
                waiting.clear()
                number, dropping, start = number + 1, False, end + 1
            waiting += piece[start:]
            if len(waiting) > self._caps.line_bytes:
                waiting.clear()
                dropping = True
        if dropping or waiting.strip():
            yield Line(number, self._body(waiting, dropping))

    def _body(self, waiting: bytearray, dropping: bool) -> bytes | None:
        return None if dropping or len(waiting) > self._caps.line_bytes else bytes(waiting.strip())

    def document(self) -> bytes | None:
        """The whole file as one document; None where it is longer than a line may be.

        Raises:
            ArchiveBroken: see `ArchiveFault`.
            OSError: the file cannot be opened or read.
        """
        body = bytearray()
        for piece in self._without_bom():
            body += piece
            if len(body) > self._caps.line_bytes:
                return None
        return bytes(body)

    def _without_bom(self) -> Iterator[bytes]:
        pieces = self._unpacked()
        yield next(pieces, b"").removeprefix(_BOM)
        yield from pieces

    def _unpacked(self) -> Iterator[bytes]:
        chunks = self._chunks()
        head = next(chunks, b"")
        body = _chain(head, chunks)
        if head.startswith(GZIP_MAGIC):
            body = _gunzip(body)
        elif head.startswith(ZSTD_MAGIC):
            body = _unzstd(body, self._caps.zstd_window_bytes)
        unpacked_bytes = 0
        for piece in body:
            unpacked_bytes += len(piece)
            if unpacked_bytes > self._caps.unpacked_bytes:
                raise ArchiveBroken(ArchiveFault.TOO_LARGE)
            if unpacked_bytes > max(self._caps.ratio_free_bytes, self._caps.ratio * self.size_bytes):
                raise ArchiveBroken(ArchiveFault.BOMB)
            yield piece

    def _chunks(self) -> Iterator[bytes]:
        digest = hashlib.sha256()
        self.size_bytes, self.sha256 = 0, None
        with self._path.open("rb") as file:
            while chunk := file.read(_READ_BYTES):
                digest.update(chunk)
                self.size_bytes += len(chunk)
                if self.size_bytes > self._caps.file_bytes:
                    raise ArchiveBroken(ArchiveFault.TOO_LARGE)
                yield chunk
        self.sha256 = digest.hexdigest()


def _chain(head: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from rest


def _gunzip(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Any number of members; zero bytes after the last one are padding."""
    member = zlib.decompressobj(_GZIP_WINDOW)
    for chunk in chunks:
        left = chunk
        while left:
            if member.eof:
                left = left.lstrip(b"\0")
                if not left:
                    break
                member = zlib.decompressobj(_GZIP_WINDOW)
            try:
                piece = member.decompress(left, _PIECE_BYTES)
            except zlib.error:
                raise ArchiveBroken(ArchiveFault.BAD_COMPRESSION) from None
            left = member.unused_data if member.eof else member.unconsumed_tail
            yield piece
    if not member.eof:
        yield member.flush()
        raise ArchiveBroken(ArchiveFault.TRUNCATED)


def _unzstd(chunks: Iterator[bytes], window_bytes: int) -> Iterator[bytes]:
    """Any number of frames."""
    unpacker = zstandard.ZstdDecompressor(max_window_size=window_bytes)
    frame = unpacker.decompressobj()
    for chunk in chunks:
        for start in range(0, len(chunk), _ZSTD_FEED_BYTES):
            left = chunk[start : start + _ZSTD_FEED_BYTES]
            while left:
                if frame.eof:
                    frame = unpacker.decompressobj()
                try:
                    piece = frame.decompress(left)
                except zstandard.ZstdError:
                    raise ArchiveBroken(ArchiveFault.BAD_COMPRESSION) from None
                left = frame.unused_data if frame.eof else b""
                yield piece
    if not frame.eof:
        raise ArchiveBroken(ArchiveFault.TRUNCATED)
