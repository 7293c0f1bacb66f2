"""A worker process in a hurry: leases and heartbeats of a second or two, and a fault to die of, named by argv[1].

A fault is `target.name[@n][:before]`: the process is killed with SIGKILL at the n-th call of the function, after the
call (so with its work done and nothing committed) or before it.
"""

import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import service.queue.broker
import workers.__main__
import workers.leadership
import workers.watch

service.queue.broker.HEARTBEAT_TIMEOUT_MS = 1_500
workers.leadership.LEASE_SECONDS = 1.5
workers.watch.FLOOR_SECONDS = workers.watch.GRADE_SECONDS = 0.5


def plant(fault: str) -> None:
    """Replace the function a fault names by one that dies at its n-th call."""
    target, _, when = fault.partition(":")
    path, _, number = target.partition("@")
    module_name, _, name = path.rpartition(".")
    holder: Any
    try:
        holder = importlib.import_module(module_name)
    except ModuleNotFoundError:
        parent, _, class_name = module_name.rpartition(".")
        holder = getattr(importlib.import_module(parent), class_name)
    original: Callable[..., Any] = getattr(holder, name)
    calls, lock = [0], threading.Lock()

    def dying(*args: Any, **kwargs: Any) -> Any:
        with lock:
            calls[0] += 1
            last = calls[0] == int(number or 1)
        if last and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*args, **kwargs)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(holder, name, dying)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1]:
        plant(sys.argv[1])
    raise SystemExit(workers.__main__.main())
