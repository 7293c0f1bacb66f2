"""Archives line by line: whatever the compression, lines come back whole, and what is wrong with a file has a name."""

import gzip
import hashlib
import tracemalloc
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from service.source.archives import Archive, ArchiveBroken, ArchiveCaps, ArchiveFault, Line

CAPS = ArchiveCaps(line_bytes=100)
PACKERS = {"plain": bytes, "gzip": gzip.compress, "zstd": zstandard.compress}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("archives")


def archive(folder: Path, body: bytes, caps: ArchiveCaps = CAPS) -> Archive:
    path = folder / "rows"
    path.write_bytes(body)
    return Archive(path, caps)


@pytest.mark.parametrize("packing", PACKERS)
@given(rows=st.lists(st.binary(max_size=120)), ends_open=st.booleans())
def test_lines_are_those_of_the_text(folder: Path, packing: str, rows: list[bytes], ends_open: bool) -> None:
    body = b"\n".join(rows) + (b"" if ends_open else b"\n")
    if packing == "plain" and body.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        body = b"." + body
    body = body.removeprefix(b"\xef\xbb\xbf")
    read = archive(folder, PACKERS[packing](body))
    expected = [
        Line(number, None if len(line) > CAPS.line_bytes else line.strip())
        for number, line in enumerate(body.split(b"\n"), start=1)
        if line.strip() or len(line) > CAPS.line_bytes
    ]
    assert list(read.lines()) == expected
    assert read.sha256 == hashlib.sha256((folder / "rows").read_bytes()).hexdigest()


def test_a_byte_order_mark_is_no_part_of_the_first_line(folder: Path) -> None:
    assert list(archive(folder, b"\xef\xbb\xbf{}\n").lines()) == [Line(1, b"{}")]


def test_members_and_frames_follow_one_another(folder: Path) -> None:
    for pack in (gzip.compress, zstandard.compress):
        body = pack(b"one\ntw") + pack(b"o\n")
        assert [line.body for line in archive(folder, body).lines()] == [b"one", b"two"]
    padded = gzip.compress(b"one\n") + bytes(512)
    assert [line.body for line in archive(folder, padded).lines()] == [b"one"]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_stream_without_its_end_gives_what_came_and_then_says_so(folder: Path, pack) -> None:
    rows = b"".join(hashlib.sha256(bytes([n])).hexdigest().encode() + b"\n" for n in range(200))
    body = pack(rows)
    read = archive(folder, body[: len(body) - 10])
    lines: list[bytes | None] = []
    with pytest.raises(ArchiveBroken) as broken:
        lines.extend(line.body for line in read.lines())
    assert broken.value.fault is ArchiveFault.TRUNCATED
    assert lines == rows.split(b"\n")[: len(lines)]


@pytest.mark.parametrize(
    ("body", "caps", "fault"),
    [
        (b"x" * 20, ArchiveCaps(file_bytes=10), ArchiveFault.TOO_LARGE),
        (gzip.compress(b"x" * 20), ArchiveCaps(unpacked_bytes=10), ArchiveFault.TOO_LARGE),
        (gzip.compress(bytes(1_000_000)), ArchiveCaps(ratio_free_bytes=0), ArchiveFault.BOMB),
        (zstandard.compress(bytes(1_000_000)), ArchiveCaps(ratio_free_bytes=0), ArchiveFault.BOMB),
        (gzip.compress(b"x") + b"garbage", CAPS, ArchiveFault.BAD_COMPRESSION),
        (zstandard.compress(b"x") + b"garbage", CAPS, ArchiveFault.BAD_COMPRESSION),
        (b"\x28\xb5\x2f\xfd" + b"\xff" * 50, CAPS, ArchiveFault.BAD_COMPRESSION),
        (b"\x1f\x8b", CAPS, ArchiveFault.TRUNCATED),
    ],
    ids=[
        *("a large file", "gzip that unpacks to much", "a gzip bomb", "a zstd bomb"),
        *("gzip and garbage", "zstd and garbage", "no zstd frame", "half a gzip header"),
    ],
)
def test_broken_files_have_names(folder: Path, body: bytes, caps: ArchiveCaps, fault: ArchiveFault) -> None:
    with pytest.raises(ArchiveBroken) as broken:
        list(archive(folder, body, caps).lines())
    assert broken.value.fault is fault


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_bomb_is_left_early_and_in_little_memory(folder: Path, pack) -> None:
    read = archive(folder, pack(bytes(60_000_000)), ArchiveCaps())
    tracemalloc.start()
    with pytest.raises(ArchiveBroken) as broken:
        list(read.lines())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert broken.value.fault is ArchiveFault.BOMB
    # One line of at most 8 MiB is held, and one piece of what a feed unpacks to.
    assert peak < 40 * 1024 * 1024


@given(st.binary(max_size=300), st.sampled_from([b"", b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd"]))
def test_any_bytes_are_lines_or_a_named_fault(folder: Path, body: bytes, head: bytes) -> None:
    try:
        lines = list(archive(folder, head + body).lines())
    except ArchiveBroken:
        return
    assert all(line.body is None or len(line.body) <= CAPS.line_bytes for line in lines)


def test_a_document_is_the_whole_file_or_too_long(folder: Path) -> None:
    assert archive(folder, gzip.compress(b"{\n}\n")).document() == b"{\n}\n"
    assert archive(folder, b"{" + b" " * 200 + b"}").document() is None
