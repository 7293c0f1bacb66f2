"""Following files that others write, cut, rewrite, rotate and remove: every line once, in memory that is bounded."""

import os
import shutil
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from service.source.validator.places import LOG_PATTERNS, Place
from service.source.validator.tail import Limits, Line, Position, Tail

PROXY = (("access.log",),)


@dataclass
class Reader:
    """A tail and the store behind it, which can be killed and started again."""

    folder: Path
    patterns: tuple[tuple[str, ...], ...] = LOG_PATTERNS
    rotates: bool = False
    limits: Limits = field(default_factory=Limits)
    now: float = 0.0
    stored: dict[tuple[str, int, int], Position] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.place = Place(self.folder, self.patterns, rotates=self.rotates)
        self.tail = Tail(self.place, self.stored.values(), self.limits, clock=lambda: self.now)

    def restart(self) -> None:
        """A new process: whatever was held is lost, what was stored stands."""
        self.tail.close()
        self.start()

    def poll(self, batches: int | None = None) -> list[bytes]:
        """What has come since; with `batches`, killed after so many of them."""
        before = len(self.lines)
        for count, batch in enumerate(self.tail.poll()):
            if count == batches:
                self.restart()
                break
            if batch.before is not None:
                assert self.stored.pop(key(batch.before)) == batch.before
            if batch.after is not None:
                assert key(batch.after) not in self.stored
                self.stored[key(batch.after)] = batch.after
            self.lines += batch.lines
            self.paths += [batch.path] * len(batch.lines)
        return [line.content for line in self.lines[before:]]

    def wait(self, seconds: float) -> list[bytes]:
        self.now += seconds
        return self.poll()


def key(position: Position) -> tuple[str, int, int]:
    return position.path, position.device, position.inode


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    opened = Reader(tmp_path)
    yield opened
    opened.tail.close()


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Reader]:
    opened = Reader(tmp_path, PROXY, rotates=True)
    yield opened
    opened.tail.close()


def run_folder(reader: Reader, name: str = "eval_1") -> Path:
    folder = reader.folder / name
    folder.mkdir(parents=True)
    return folder


def test_lines_are_given_once_as_they_are_ended(reader: Reader) -> None:
    with (run_folder(reader) / "output.jsonl").open("ab", buffering=0) as file:
        file.write(b"one\ntwo\nthr")
        assert reader.poll() == [b"one", b"two"]
        assert reader.poll() == []
        file.write(b"ee\n")
        assert reader.poll() == [b"three"]
    assert [line.ordinal for line in reader.lines] == [0, 1, 2]


def test_every_pattern_is_followed_and_nothing_else(reader: Reader) -> None:
    names = (
        "eval_1/output.jsonl",
        "environment-runs/r/episode_results.jsonl",
        "environment-runs/r/sandbox/sandbox_output.jsonl",
    )
    for name in (*names, "eval_1/problems.jsonl", "other/output.jsonl", "environment-runs/r/sandbox/other.jsonl"):
        (reader.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (reader.folder / name).write_bytes(b"line\n")
    reader.poll()
    assert sorted(reader.paths) == sorted(names)


def test_a_removed_folder_is_read_to_its_end(reader: Reader) -> None:
    folder = run_folder(reader)
    with (folder / "output.jsonl").open("ab", buffering=0) as file:
        file.write(b"one\n")
        reader.poll()
        file.write(b"two\n")
        shutil.rmtree(folder)
        assert reader.poll() == [b"two"]
        file.write(b"three\ncut of")  # its writer holds it still
        assert reader.poll() == [b"three"]
        assert reader.wait(1.0) == []
        assert reader.wait(1.5) == [b"cut of"]
    assert reader.lines[-1].is_cut
    assert reader.tail.descriptors == 0
    assert reader.stored == {}


def test_a_folder_removed_while_no_one_read_is_forgotten(reader: Reader) -> None:
    folder = run_folder(reader)
    (folder / "output.jsonl").write_bytes(b"one\n")
    reader.poll()
    shutil.rmtree(folder)
    reader.restart()
    assert reader.poll() == []
    assert reader.stored == {}


def test_a_run_that_comes_back_under_its_name_goes_on_being_counted(reader: Reader) -> None:
    folder = run_folder(reader)
    (folder / "output.jsonl").write_bytes(b"one\ntwo\n")
    reader.poll()
    shutil.rmtree(folder)
    (run_folder(reader) / "output.jsonl").write_bytes(b"one\n")
    reader.poll()
    reader.wait(3.0)
    assert [(line.content, line.ordinal) for line in reader.lines] == [(b"one", 0), (b"two", 1), (b"one", 2)]


@pytest.mark.parametrize(
    "content",
    [b"", b"new\n", b"ONE\ntwo\n", b"ONE\ntwo\nthree\n", b"one\nTWO\nthree\n"],
    ids=["empty", "shorter", "as long", "longer", "longer, the same beginning"],
)
def test_a_file_that_is_written_anew_is_read_anew(reader: Reader, content: bytes) -> None:
    path = run_folder(reader) / "output.jsonl"
    path.write_bytes(b"one\ntwo\n")
    reader.poll()
    path.write_bytes(content)
    assert reader.poll() == content.splitlines()
    assert reader.poll() == []


def test_a_file_that_was_cut_under_its_writer_goes_on_behind_the_gap(reader: Reader) -> None:
    path = run_folder(reader) / "output.jsonl"
    with path.open("wb", buffering=0) as file:  # without O_APPEND, as a shell redirects
        file.write(b"x" * 1_000_000 + b"\n")
        reader.poll()
        os.truncate(path, 0)
        file.write(b"after\n")
        assert path.stat().st_size == 1_000_007
        assert reader.poll() == [b"\0after"]


def test_a_huge_line_is_noticed_and_costs_no_memory(reader: Reader) -> None:
    path = run_folder(reader) / "output.jsonl"
    with path.open("wb") as file:
        for _ in range(64):
            file.write(b'{"problem_id": "p"' + b"x" * (1 << 20))
    tracemalloc.start()
    assert reader.poll() == []
    with path.open("ab") as file:
        file.write(b"\nsmall\n")
    huge, small = reader.poll()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(huge), small) == (4096, b"small")
    assert reader.lines[0].is_oversized
    assert reader.lines[0].size_bytes == 64 * ((1 << 20) + 18)
    assert peak < 16 << 20  # one line of 4 MiB at most, in a buffer that grows by doubling


@pytest.mark.parametrize("stop_after", range(6))
def test_a_restart_goes_on_where_it_was(reader: Reader, stop_after: int) -> None:
    reader.limits = Limits(batch_lines=2)
    reader.restart()
    path = run_folder(reader) / "output.jsonl"
    path.write_bytes(b"".join(b"%d\n" % number for number in range(9)) + b"no end")
    reader.poll(batches=stop_after)
    with path.open("ab") as file:
        file.write(b"ing\nlast\n")
    reader.poll()
    assert [line.content for line in reader.lines] == [b"%d" % number for number in range(9)] + [b"no ending", b"last"]
    assert [line.ordinal for line in reader.lines] == list(range(11))


def test_two_thousand_files_are_read_with_few_descriptors(reader: Reader) -> None:
    for number in range(2_000):
        (run_folder(reader, f"eval_{number}") / "output.jsonl").write_bytes(b"%d\n" % number)
    assert sorted(reader.poll(), key=int) == [b"%d" % number for number in range(2_000)]
    assert reader.tail.descriptors <= 256
    assert reader.poll() == []
    with (reader.folder / "eval_7" / "output.jsonl").open("ab") as file:
        file.write(b"again\n")
    assert reader.poll() == [b"again"]
    assert reader.tail.descriptors <= 256
    shutil.rmtree(reader.folder / "eval_8")
    assert reader.wait(0.0) == reader.wait(3.0) == []
    assert len(reader.stored) == 1_999


def test_nothing_outside_the_folder_is_read(reader: Reader, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "output.jsonl").write_bytes(b"secret\n")
    (reader.folder / "eval_a").symlink_to(outside)
    (run_folder(reader, "eval_b") / "output.jsonl").symlink_to(outside / "output.jsonl")
    os.mkfifo(run_folder(reader, "eval_c") / "output.jsonl")
    (run_folder(reader, "eval_d") / "output.jsonl").mkdir()
    (reader.folder / "environment-runs").symlink_to(outside)
    assert reader.poll() == []
    assert reader.place.refused == {f"eval_{name}/output.jsonl" for name in "bcd"}


def test_a_folder_that_turns_into_a_link_is_not_followed(
    reader: Reader, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "output.jsonl").write_bytes(b"secret\n")
    folder = run_folder(reader)
    (folder / "output.jsonl").write_bytes(b"one\n")
    reader.poll()
    shutil.rmtree(folder)
    folder.symlink_to(outside)
    assert reader.poll() == []
    assert reader.wait(5.0) == []
    assert reader.place.open("eval_1/output.jsonl") is None


def test_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "later")
    assert reader.poll() == []
    (run_folder(reader) / "output.jsonl").write_bytes(b"one\n")
    assert reader.poll() == [b"one"]
    reader.tail.close()


def by_name(path: Path) -> None:
    """Rotation by renaming: the server writes on into the old file until it is told."""
    path.rename(path.with_name("access.log.1"))


def by_copy(path: Path) -> None:
    """Rotation by copying: the server keeps its file, which is cut short."""
    shutil.copyfile(path, path.with_name("access.log.1"))
    os.truncate(path, 0)


@pytest.mark.parametrize("rotate", [by_name, by_copy])
@pytest.mark.parametrize("down", [False, True], ids=["live", "while no one read"])
def test_a_rotated_log_loses_and_doubles_nothing(proxy: Reader, rotate: Callable[[Path], None], down: bool) -> None:
    path = proxy.folder / "access.log"
    server = path.open("ab", buffering=0)
    server.write(b"first\nsecond\n")
    proxy.poll()
    server.write(b"unread\n")
    rotate(path)
    if rotate is by_name:
        server.write(b"late\n")  # it has not been told yet
        server.close()
        server = path.open("ab", buffering=0)
    server.write(b"new\n")
    if down:
        proxy.restart()
    proxy.poll()
    proxy.wait(11.0)
    proxy.wait(11.0)
    expected = [b"first", b"second", b"unread", *([b"late"] if rotate is by_name else []), b"new"]
    assert sorted(line.content for line in proxy.lines) == sorted(expected)
    assert len(proxy.stored) == 1
    server.write(b"newer\n")
    assert proxy.poll() == [b"newer"]
    server.close()


def test_a_line_keeps_its_identity_whichever_file_it_is_read_from(proxy: Reader) -> None:
    path = proxy.folder / "access.log"
    path.write_bytes(b"first\nsame\nsame\n")
    proxy.poll()
    seen = [(line.file_key, line.offset_bytes, line.sha256) for line in proxy.lines]
    assert len(set(seen)) == 3  # equal lines in two places are two requests
    by_copy(path)
    proxy.stored.clear()
    (proxy.folder / "access.log.1").rename(path)
    proxy.restart()
    proxy.lines.clear()
    proxy.poll()
    assert [(line.file_key, line.offset_bytes, line.sha256) for line in proxy.lines] == seen


@pytest.mark.parametrize("stop_after", range(5))
@pytest.mark.parametrize("rotate", [by_name, by_copy])
def test_a_process_killed_while_a_log_is_rotated(
    proxy: Reader, rotate: Callable[[Path], None], stop_after: int
) -> None:
    proxy.limits = Limits(batch_lines=1)
    proxy.restart()
    path = proxy.folder / "access.log"
    path.write_bytes(b"1\n2\n")
    proxy.poll()
    with path.open("ab") as server:
        server.write(b"3\n4\n5\n")
    rotate(path)
    path.write_bytes(b"6\n7\n")
    proxy.poll(batches=stop_after)
    for _ in range(3):
        proxy.wait(11.0)
    assert sorted(line.content for line in proxy.lines) == [b"%d" % number for number in range(1, 8)]


def test_an_unrotated_log_that_is_removed_is_held(proxy: Reader) -> None:
    path = proxy.folder / "access.log"
    with path.open("ab", buffering=0) as server:
        server.write(b"one\n")
        proxy.poll()
        path.unlink()
        proxy.wait(60.0)
        server.write(b"two\n")
        assert proxy.wait(60.0) == [b"two"]


def test_the_operators_own_link_is_followed_to_the_proxys_log(proxy: Reader) -> None:
    (proxy.folder / "access-1.log").write_bytes(b"one\n")
    (proxy.folder / "access.log").symlink_to("access-1.log")
    assert proxy.poll() == [b"one"]
