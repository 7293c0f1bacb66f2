"""Waits that end when the process is asked to stop. It knows nothing of what is waited for."""

import threading

from service.errors import ErrorCode, SluiceError


def pause(seconds: float, stopping: threading.Event) -> None:
    """Wait this long; not at all, for nothing, once the process is asked to stop.

    Raises:
        SluiceError: STOPPING.
    """
    if stopping.wait(max(0.0, seconds)):
        raise SluiceError(ErrorCode.STOPPING, "the process was asked to stop")
