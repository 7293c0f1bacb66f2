"""Unpacking under caps: whatever the pieces, the bytes come back whole or the cause has its name."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.source.http.objects import Caps, ObjectHosts, TakingFailed, redirect_target, take
from service.source.refusals import Refusal

CAPS = Caps()


def pieces(body: bytes, size: int) -> list[bytes]:
    return [body[start : start + size] for start in range(0, len(body), size)]


@given(st.binary(min_size=1, max_size=3000), st.integers(1, 500), st.booleans())
def test_a_body_comes_back_however_it_is_cut(payload: bytes, size: int, packed: bool) -> None:
    if not packed and payload.startswith(b"\x1f\x8b"):
        payload = b"." + payload
    body = gzip.compress(payload, mtime=0) if packed else payload
    assert take(pieces(body, size), CAPS) == payload


@given(st.binary(max_size=2000), st.data())
def test_a_gzip_stream_without_its_end_is_truncated(payload: bytes, data: st.DataObject) -> None:
    body = gzip.compress(payload, mtime=0)
    kept = data.draw(st.integers(2, len(body) - 1))
    with pytest.raises(TakingFailed) as failed:
        take([body[:kept]], CAPS)
    assert failed.value.reason is Refusal.TRUNCATED


def test_members_follow_one_another_and_zero_bytes_may_trail() -> None:
    body = gzip.compress(b"one ", mtime=0) + gzip.compress(b"two", mtime=0) + bytes(512)
    assert take(pieces(body, 7), CAPS) == b"one two"


@pytest.mark.parametrize(
    ("body", "caps", "reason"),
    [
        (b"", CAPS, Refusal.TRUNCATED),
        (b"x" * 11, Caps(wire_bytes=10), Refusal.TOO_LARGE),
        (b"x" * 11, Caps(unpacked_bytes=10), Refusal.TOO_LARGE),
        (gzip.compress(bytes(range(256)) * 5, mtime=0), Caps(unpacked_bytes=1000), Refusal.TOO_LARGE),
        (gzip.compress(bytes(100_000), mtime=0), Caps(ratio=50.0, ratio_free_bytes=0), Refusal.GZIP_BOMB),
        (gzip.compress(b"x", mtime=0) + b"garbage", CAPS, Refusal.BAD_GZIP),
        (gzip.compress(b"x", mtime=0)[:-5] + b"\xff" * 5, CAPS, Refusal.BAD_GZIP),
    ],
)
def test_caps_and_broken_streams_have_names(body: bytes, caps: Caps, reason: Refusal) -> None:
    with pytest.raises(TakingFailed) as failed:
        take([body], caps)
    assert failed.value.reason is reason


def test_a_bomb_is_left_after_a_small_part_of_it() -> None:
    bomb = gzip.compress(bytes(50_000_000))
    read = 0

    def chunks() -> object:
        nonlocal read
        for piece in pieces(bomb, 1000):
            read += len(piece)
            yield piece

    with pytest.raises(TakingFailed):
        take(chunks(), CAPS)
    # 1 MiB is free of any ratio and packs about 1000 to 1: a few thousand of some 49,000 packed bytes are read.
    assert read < 5000


def test_which_hosts_may_hold_objects() -> None:
    live = ObjectHosts("https", "api.oroagents.com", frozenset({"minio.lan"}))
    assert live.allows("https://api.oroagents.com/o?X=1")
    assert live.allows("https://bucket.s3.eu-west-1.amazonaws.com/o")
    assert live.allows("http://minio.lan:9000/o")
    for url in (
        "http://api.oroagents.com/o",
        "http://bucket.s3.amazonaws.com/o",
        "https://amazonaws.com.evil.example/o",
        "https://evilamazonaws.com/o",
        "https://ec2-3-8-1-2.eu-west-2.compute.amazonaws.com/o",
        "https://lb-1.us-east-1.elb.amazonaws.com/o",
        "https://s3.us-east-1.elb.amazonaws.com/o",
        "https://s3.amazonaws.com.evil.example/o",
        "https://bucket.s3.eu-west-1.amazonaws.com:22/o",
        f"https://{'b' * 64}.s3.amazonaws.com/o",
        "https://b\udcc3cket.s3.amazonaws.com/o",
        "http://127.0.0.1:5432/",
        "https://user@api.oroagents.com/o",
        "ftp://api.oroagents.com/o",
        "//no-scheme/o",
        "https://[",
    ):
        assert not live.allows(url), url
    local = ObjectHosts("http", "127.0.0.1")
    assert local.allows("http://127.0.0.1:9999/o")
    assert local.allows("http://localhost:9999/o")


@pytest.mark.parametrize(
    "host",
    [
        "s3.amazonaws.com",
        "s3.eu-west-1.amazonaws.com",
        "s3-us-west-2.amazonaws.com",
        "my.bucket.s3.amazonaws.com",
        "bucket.s3-us-west-2.amazonaws.com",
        "bucket.s3.us-gov-west-1.amazonaws.com",
        "bucket.s3.dualstack.ap-southeast-2.amazonaws.com",
        "bucket.s3-fips.us-east-1.amazonaws.com",
        "bucket.s3-accelerate.amazonaws.com",
        "bucket.s3-accelerate.dualstack.amazonaws.com",
    ],
)
def test_every_way_of_naming_amazons_object_store_is_allowed(host: str) -> None:
    assert ObjectHosts("https", "api.oroagents.com").allows(f"https://{host}/o?X-Amz-Signature=1")


def test_a_redirect_stays_on_scheme_host_and_port() -> None:
    here = "https://a.example:8443/o?secret"
    assert redirect_target(here, "/other") == "https://a.example:8443/other"
    for elsewhere in (
        "https://a.example/o",
        "http://a.example:8443/o",
        "https://b.example:8443/",
        "//b.example/",
        "//[bad",
    ):
        assert redirect_target(here, elsewhere) is None
