"""SIGINT and SIGTERM as a flag that loops look at, so that everything started is also stopped. Stops nothing itself."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from service.cli.output import note


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """An event that is set by SIGINT or SIGTERM while the block runs."""
    stopping = threading.Event()
    told = threading.Thread(target=note, args=("stopping",))

    def stop(_number: int, _frame: FrameType | None) -> None:
        if not stopping.is_set():
            told.start()  # a thread, because the signal may have come in the middle of a write
        stopping.set()

    numbers = (signal.SIGINT, signal.SIGTERM)
    kept = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield stopping
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
        if stopping.is_set() and told.ident is not None:
            told.join()
