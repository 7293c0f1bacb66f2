"""Answers of a hostile source: JSON of any spelling is read or malformed, a body of any packing is taken or refused."""

import gzip
import json
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.source.http.decoding import MAX_DEPTH, Malformed, decode
from service.source.http.objects import Caps, TakingFailed, take
from service.source.oro import rows
from tests.hostile import hostile

LISTING = {
    "races": [{"race_id": "r", "status": "RACE_COMPLETE", "race_number": 7, "agents": [{"agent_version_id": "v"}]}],
    "next_cursor": None,
    "total": 1,
}
CAPS = Caps(wire_bytes=20_000, unpacked_bytes=20_000, ratio=50.0, ratio_free_bytes=5_000)


def depth(value: Any) -> int:
    layer, levels = [value], 0
    while layer := [
        child
        for parent in layer
        if isinstance(parent, dict | list)
        for child in (parent.values() if isinstance(parent, dict) else parent)
    ]:
        levels += 1
    return levels


@settings(max_examples=150, deadline=None)
@given(hostile(LISTING))
def test_what_is_decoded_fits_a_database(body: bytes) -> None:
    try:
        value = decode(body)
    except Malformed:
        return
    assert depth(value) < MAX_DEPTH
    spelled = json.dumps(value, ensure_ascii=False)
    assert "\0" not in spelled
    spelled.encode()  # raises where half a character is left


def packed(body: bytes, level: int, cut: int, members: int, tail: bytes, wrapped: int) -> bytes:
    """Gzip in some variant: raw deflate, zlib, several members, cut off, with bytes after it."""
    match wrapped:
        case 0:
            whole = gzip.compress(body, level) * members
        case 1:
            whole = zlib.compress(body, level)
        case 2:
            whole = b"\x1f\x8b" + body
        case _:
            whole = gzip.compress(gzip.compress(body, level), level)
    return whole[: len(whole) - cut] + tail


@settings(max_examples=150, deadline=None)
@given(
    st.builds(
        packed,
        st.one_of(st.binary(max_size=500), st.integers(0, 200_000).map(bytes)),
        st.integers(0, 9),
        st.sampled_from([0, 0, 1, 4, 9, 30]),
        st.integers(1, 3),
        st.sampled_from([b"", bytes(100), b"x", b"\x1f\x8b\x08"]),
        st.integers(0, 3),
    ),
    st.integers(1, 5_000),
)
def test_what_is_taken_is_within_the_caps(body: bytes, size: int) -> None:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    try:
        taken = take(pieces, CAPS)
    except TakingFailed:
        return
    assert len(taken) <= CAPS.unpacked_bytes


@pytest.mark.parametrize("kind", ["atif", "messages", "envelope", "ENVPACK"])
def test_no_listing_names_a_format_of_files(kind: str) -> None:
    with pytest.raises(rows.UnknownKind):
        rows.kind(kind)
