"""A process that harvests in children of its own, each of which may die by SIGKILL at a given line.

One interpreter starts once and forks for every job, which is named by a line of JSON on stdin; what became of it is
told by one on stdout. It has one thread and no connection when it forks.
"""

import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from service.config import Settings
from service.queue.broker import open_broker
from service.source import open_source
from service.store.engine import open_engine
from service.store.release.files import FileStore
from workers.context import Context
from workers.stages import ingest
from workers.subscribe import walk

ROOT = str(Path(__file__).parents[2])
OURS = (f"{ROOT}/service/store/", f"{ROOT}/workers/")
"""Where a harvest decides and writes. Most lines are run to read answers, and dying at one is like dying at another."""
ITEMS, BATCH = 400, 8
"""Ledger ids beyond any of these tests, and how many one message names."""


class Line:
    """Counts the lines that matter as they are run, and dies before the one whose turn has come."""

    def __init__(self, moment: int | None, told: int) -> None:
        self._moment = moment
        self._told = told
        self.count = 0

    def enter(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        return self.reach if frame.f_code.co_filename.startswith(OURS) else None

    def reach(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            self.count += 1
            if self.count == self._moment:
                self.tell(f"{frame.f_code.co_filename.removeprefix(ROOT)}:{frame.f_lineno}")
                os.kill(os.getpid(), signal.SIGKILL)
        return self.reach

    def tell(self, place: str) -> None:
        os.write(self._told, json.dumps({"lines": self.count, "place": place}).encode())


def harvest(job: str, context: Context) -> None:
    """One part of a harvest, as messages that come back from a killed worker name it."""
    if job == "walk":
        walk(context)
        return
    for start in range(1, ITEMS, BATCH):
        ids: Sequence[int] = range(start, start + BATCH)
        ingest.run(ids, context, f"message-{start}")


def child(request: dict[str, Any], told: int) -> None:
    settings = Settings(source_url=request["source_url"], data_dir=request["data_dir"])
    context = Context(
        settings=settings,
        engine=open_engine(request["database_url"]),
        broker=open_broker(request["redis_url"]),
        source=open_source(settings, request["redis_url"]),
        files=FileStore(settings.snapshot_dir),
        count_tokens=len,
    )
    line = Line(request["moment"], told)
    sys.settrace(line.enter)
    harvest(request["job"], context)
    sys.settrace(None)
    line.tell("")


def main() -> None:
    for request in sys.stdin:
        reads, writes = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reads)
            child(json.loads(request), writes)
            os._exit(0)
        os.close(writes)
        with os.fdopen(reads, "rb") as told:
            said = json.loads(told.read() or b"{}")
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(json.dumps({"status": status, **said}), flush=True)


if __name__ == "__main__":
    main()
