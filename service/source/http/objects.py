"""Take one response body in pieces, unpack it under caps, and say which hosts objects may lie on. Sends no request.

Memory is bounded by the caps whatever the other side sends.
"""

import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import SplitResult, urljoin, urlsplit

from service.source.refusals import Refusal

GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 31
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
_S3_HOST = re.compile(
    r"(?:[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]\.)?"  # the bucket, unless it is in the path
    r"s3(?:-accelerate(?:\.dualstack)?|(?:-fips)?(?:\.dualstack)?[.-][a-z]{2}(?:-[a-z]+)+-[0-9])?"
    r"\.amazonaws\.com"
)
"""Amazon lends names under its domain to any machine of any customer; these are its object store's alone."""


class TakingFailed(Exception):
    """The body cannot be used. Carries a cause and nothing of the request."""

    def __init__(self, reason: Refusal) -> None:
        super().__init__(reason.value)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Caps:
    """How much one body may hold. By default one object: a trajectory of half this size is called oversized anyway."""

    wire_bytes: int = 8 * 1024 * 1024
    unpacked_bytes: int = 8 * 1024 * 1024
    ratio: float = 200.0
    ratio_free_bytes: int = 1024 * 1024
    """Below this size any ratio is harmless: short, repetitive dialogues pack well."""


LISTING_CAPS = Caps(wire_bytes=32 * 1024 * 1024, unpacked_bytes=32 * 1024 * 1024)
"""Listings are not paged where they grow most, and come from the API itself."""


def take(chunks: Iterable[bytes], caps: Caps) -> bytes:
    """Unpack a whole body, gzip or plain, whichever it turns out to be.

    Raises:
        TakingFailed: TOO_LARGE, GZIP_BOMB, BAD_GZIP, or TRUNCATED where nothing came or a gzip stream has no end.
    """
    counted = _Counted(chunks, caps)
    pieces = iter(counted)
    head = next(pieces, b"")
    while len(head) < len(GZIP_MAGIC) and (more := next(pieces, b"")):
        head += more
    if not head:
        raise TakingFailed(Refusal.TRUNCATED)
    body = _chain(head, pieces)
    unpacked = _gunzip(body, counted, caps) if head.startswith(GZIP_MAGIC) else body
    payload = bytearray()
    for piece in unpacked:
        payload += piece
        if len(payload) > caps.unpacked_bytes:
            raise TakingFailed(Refusal.TOO_LARGE)
    return bytes(payload)


class _Counted:
    """Passes pieces on and stops at the cap on the wire."""

    def __init__(self, chunks: Iterable[bytes], caps: Caps) -> None:
        self._chunks = chunks
        self._cap = caps.wire_bytes
        self.total = 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self.total += len(chunk)
            if self.total > self._cap:
                raise TakingFailed(Refusal.TOO_LARGE)
            if chunk:
                yield chunk


def _chain(head: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from rest


def _gunzip(chunks: Iterator[bytes], counted: _Counted, caps: Caps) -> Iterator[bytes]:
    """Pieces of at most 64 KiB, over any number of gzip members; zero bytes after the last one are padding."""
    member = zlib.decompressobj(_GZIP_WINDOW)
    unpacked_bytes = 0
    for chunk in chunks:
        left = chunk
        while left:
            if member.eof:
                left = left.lstrip(b"\0")
                if not left:
                    break
                member = zlib.decompressobj(_GZIP_WINDOW)
            try:
                piece = member.decompress(left, 64 * 1024)
            except zlib.error:
                raise TakingFailed(Refusal.BAD_GZIP) from None
            left = member.unused_data if member.eof else member.unconsumed_tail
            unpacked_bytes += len(piece)
            if unpacked_bytes > max(caps.ratio_free_bytes, caps.ratio * counted.total):
                raise TakingFailed(Refusal.GZIP_BOMB)
            yield piece
    yield member.flush()
    if not member.eof:
        raise TakingFailed(Refusal.TRUNCATED)


@dataclass(frozen=True, slots=True)
class ObjectHosts:
    """Where objects may be fetched from: the API's own host, Amazon S3, and what is configured.

    This machine is allowed only to an API that is on this machine, so that a hostile answer cannot reach its services.
    """

    api_scheme: str
    api_host: str
    configured: frozenset[str] = frozenset()

    def allows(self, url: str) -> bool:
        """Whether an object may be fetched from this URL."""
        parts = _split(url)
        if parts is None or parts.hostname is None or parts.username is not None:
            return False
        host = parts.hostname
        if host in self.configured:
            return parts.scheme in ("http", "https")
        if self._is_api(host):
            return parts.scheme in ("https", self.api_scheme)
        return parts.scheme == "https" and parts.port in (None, 443) and _S3_HOST.fullmatch(host) is not None

    def expects(self, url: str) -> bool:
        """Whether its host was named by whoever set this up, so that it may well be in a private network."""
        parts = _split(url)
        host = parts.hostname if parts else None
        return host is not None and (host in self.configured or self._is_api(host))

    def _is_api(self, host: str) -> bool:
        return host == self.api_host or {host, self.api_host} <= LOOPBACK_HOSTS


def redirect_target(url: str, location: str) -> str | None:
    """Where a redirect leads, if it stays on scheme, host and port; else None."""
    try:
        target = urljoin(url, location)
    except ValueError:
        return None
    here, there = _split(url), _split(target)
    if here is None or there is None or here[:2] != there[:2]:
        return None
    return target


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts
