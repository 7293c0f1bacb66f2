"""When to look at followed files again: soon after something changes, and in any case after a while. Reads none."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

from watchfiles import watch

DEBOUNCE_MS = 500
"""A folder in which something changes all the time is looked at so often at most: the validator needs this machine."""
STEP_MS = 50

log = logging.getLogger(__name__)


def wakings(folder: Path | None, floor_seconds: float, stopping: threading.Event) -> Iterator[None]:
    """Yield when something below the folder has changed, and at least every `floor_seconds`; ends on `stopping`.

    Where the kernel gives no notice (no folder yet, no watches left, a file system without them), only the floor is
    left.
    """
    logging.getLogger("watchfiles").setLevel(logging.WARNING)  # at DEBUG it would log names of files
    is_told = folder is not None
    while not stopping.is_set():
        yield
        if folder is not None and is_told and folder.is_dir():
            try:
                yield from _changes(folder, floor_seconds, stopping)
            except FileNotFoundError:
                pass  # it went while we looked, and may come back
            except (OSError, RuntimeError) as fault:
                is_told = False
                log.warning("changes of files cannot be noticed (%s); looking every few seconds", type(fault).__name__)
        stopping.wait(floor_seconds)


def _changes(folder: Path, floor_seconds: float, stopping: threading.Event) -> Iterator[None]:
    for _ in watch(
        folder,
        watch_filter=None,
        debounce=DEBOUNCE_MS,
        step=STEP_MS,
        rust_timeout=int(floor_seconds * 1000),
        yield_on_timeout=True,
        stop_event=stopping,
        debug=False,
        raise_interrupt=False,
        ignore_permission_denied=True,
    ):
        yield
        if not folder.is_dir():
            return
