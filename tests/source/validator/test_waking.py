"""When files are looked at: soon after a change, after a while in any case, and never after being asked to stop."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from service.source.validator import waking
from service.source.validator.waking import wakings


@contextmanager
def looking(folder: Path | None, floor_seconds: float) -> Iterator[list[float]]:
    """The moments of each look, while the block runs; ended promptly."""
    looks, stopping = list[float](), threading.Event()

    def look() -> None:
        for _ in wakings(folder, floor_seconds, stopping):
            looks.append(time.monotonic())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield looks
    finally:
        stopping.set()
        thread.join(timeout=2.0)
        assert not thread.is_alive()


def until(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_change_is_noticed_before_the_floor(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with looking(tmp_path, 600.0) as looks:
        until(lambda: len(looks) == 1)
        for number in range(50):  # until the kernel has been asked to tell
            (tmp_path / f"eval_{number}").mkdir()
            (tmp_path / f"eval_{number}" / "output.jsonl").write_bytes(b"line\n")
            time.sleep(0.1)
            if len(looks) > 1:
                break
        until(lambda: len(looks) > 1)
    assert "eval_" not in caplog.text


@pytest.mark.parametrize("name", [None, "later"])
def test_without_a_folder_only_the_floor_is_left(tmp_path: Path, name: str | None) -> None:
    folder = tmp_path / name if name else None
    with looking(folder, 0.1) as looks:
        until(lambda: len(looks) > 3)
        if folder is not None:
            folder.mkdir()
            before = len(looks)
            until(lambda: len(looks) > before + 3)
            folder.rmdir()
            before = len(looks)
            until(lambda: len(looks) > before + 3)


def test_a_kernel_that_gives_no_notice_is_told_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def none_left(*_arguments: object, **_options: object) -> Iterator[None]:
        raise OSError(28, f"OS file watch limit reached. about [{tmp_path}]")

    monkeypatch.setattr(waking, "watch", none_left)
    with looking(tmp_path, 0.05) as looks:
        until(lambda: len(looks) > 4)
    assert len(caplog.records) == 1
    assert str(tmp_path) not in caplog.text
