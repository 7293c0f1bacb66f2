"""SIGINT and SIGTERM as a flag that loops look at, so that everything started is also stopped."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """An event that is set by SIGINT or SIGTERM while the block runs."""
    stopping = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    numbers = (signal.SIGINT, signal.SIGTERM)
    kept = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield stopping
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
