"""How fast a worker harvests and judges an unthrottled replay of recorded races, and how its memory moves meanwhile.

Run from the checkout: `python -m benchmarks.harvest [DIR]`, DIR holding recorded runs; without it, generated races.
The replay server, Postgres, Valkey and the worker share this machine; the figures say so by their processor time.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import psutil
from sqlalchemy import Engine

from service import embedded
from service.config import Settings
from service.domain.policy import DEFAULT_POLICIES
from service.store import ledger, walks
from service.store.engine import open_engine, reading
from service.store.migrate import upgrade
from service.store.progress import progress
from service.world.demo import DemoSize, write_demo

REPLAY_PORT = 18716
SIZE = DemoSize(families=900, race_problems=200, repeated=60)
LOOK_SECONDS = 0.25
MEBIBYTE = 1024 * 1024


@contextmanager
def replayed(folder: Path) -> Iterator[str]:
    """A replay server in a process of its own."""
    sluice = Path(sys.executable).with_name("sluice")
    command = [str(sluice), "replay", str(folder), "--port", str(REPLAY_PORT)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{REPLAY_PORT}"
    try:
        while process.poll() is None:
            try:
                httpx.get(f"{url}/health")
                break
            except httpx.TransportError:
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()


def settled(engine: Engine) -> tuple[int, bool]:
    """Items fetched or gone, and whether nothing is left to harvest and judge."""
    with reading(engine) as session:
        state = progress(session, DEFAULT_POLICIES, datetime.now(UTC))
        items = sum(count.items for count in ledger.counts(session) if count.state in ("fetched", "gone"))
        return items, state.harvested and walks.latest(session) is not None


def main() -> None:
    """Harvest everything once and print a line for each tenth of the way."""
    with TemporaryDirectory() as scratch:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(scratch) / "archive"
        if len(sys.argv) == 1:
            write_demo(folder, size=SIZE)
        data_dir = Path(scratch) / "data"
        with embedded.start(data_dir) as services, replayed(folder) as url:
            engine = open_engine(services.database_url)
            upgrade(engine)
            settings = Settings(
                data_dir=data_dir,
                database_url=services.database_url,
                redis_url=services.redis_url,
                source_url=url,
                poll_seconds=3600,
            )
            log = open(os.devnull, "wb")  # noqa: SIM115 - closed with the process
            worker = subprocess.Popen([sys.executable, "-m", "workers"], env=settings.environment(), stderr=log)
            measure(engine, psutil.Process(worker.pid))
            worker.terminate()
            worker.wait()
            engine.dispose()


def measure(engine: Engine, worker: psutil.Process) -> None:
    """Watch one worker until the harvest rests."""
    began: float | None = None
    shown = 0
    print("  items     items/s   worker RSS MiB   worker CPU s")
    while True:
        items, done = settled(engine)
        if items and began is None:
            began = time.monotonic()
        if began is not None and (items >= shown * 1.25 + 100 or done):
            shown = items
            cpu = sum(worker.cpu_times()[:2])
            seconds = max(time.monotonic() - began, LOOK_SECONDS)
            print(f"{items:7}  {items / seconds:10.0f}  {worker.memory_info().rss / MEBIBYTE:15.0f}  {cpu:13.1f}")
        if done:
            return
        time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    main()
