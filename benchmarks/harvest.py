"""How fast workers harvest an unthrottled replay of recorded races and judge it beside, and what each process costs.

Run from the checkout: `python -m benchmarks.harvest [DIR] [--workers N] [--items N] [--rate N]`, DIR holding recorded
runs; without it, generated races. The replay server, Postgres, Valkey and the workers share this machine: the figures
that mean something elsewhere are the processor times and their ratios. It changes nothing outside its scratch folder.
"""

import argparse
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import httpx
import psutil
from sqlalchemy import Engine

from service import embedded
from service.config import Settings
from service.domain.policy import DEFAULT_POLICIES
from service.store.engine import open_engine, reading
from service.store.harvest import ledger, walks
from service.store.migrate import upgrade
from service.store.work.progress import progress
from service.world.demo import DemoSize, write_demo

LOOK_SECONDS = 0.5
MEBIBYTE = 1024 * 1024
SETTLED = ("fetched", "gone")


class Costs(NamedTuple):
    """Processor seconds so far, by what burns them."""

    workers: float
    replay: float
    postgres: float
    valkey: float


@contextmanager
def child(command: list[str], **options: object) -> Iterator[psutil.Popen]:
    """A process of its own while the block lasts."""
    process = psutil.Popen(command, stdout=subprocess.DEVNULL, **options)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    """A port that nobody listens on: another benchmark may be running."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def await_answer(url: str) -> None:
    """Wait until a server answers."""
    while True:
        try:
            httpx.get(f"{url}/health")
            return
        except httpx.TransportError:
            time.sleep(0.1)


def processor_seconds(process: psutil.Process) -> float:
    """Of a process and of those children of it that have ended."""
    return sum(process.cpu_times()[:4])


def servers(data_dir: Path, name: str) -> float:
    """Processor seconds of all programs of a name that work below a folder."""
    total = 0.0
    for process in psutil.process_iter():
        try:
            if process.name().startswith(name) and Path(process.cwd()).is_relative_to(data_dir.resolve()):
                total += processor_seconds(process)
        except psutil.Error:
            continue
    return total


class Watch:
    """Looks at one harvest until it rests."""

    def __init__(self, engine: Engine, data_dir: Path, workers: list[psutil.Process], replay: psutil.Process) -> None:
        self._engine = engine
        self._data_dir = data_dir
        self._workers = workers
        self._replay = replay
        self.began: float | None = None
        self.at_start = self.costs()

    def costs(self) -> Costs:
        """What everything has cost so far."""
        workers = sum(processor_seconds(worker) for worker in self._workers)
        postgres, valkey = (servers(self._data_dir, name) for name in ("postgres", "valkey"))
        return Costs(workers, processor_seconds(self._replay), postgres, valkey)

    def settled(self) -> tuple[int, bool, bool]:
        """Items fetched or gone, whether none is left to fetch, and whether none is left to judge."""
        with reading(self._engine) as session:
            state = progress(session, DEFAULT_POLICIES, datetime.now(UTC))
            items = sum(count.items for count in ledger.counts(session) if count.state in SETTLED)
            walked = walks.latest(session) is not None and not state.walking
            return items, walked and not state.items_pending, walked and state.harvested

    def until_rest(self) -> None:
        """Print a line for each quarter more, one when all is fetched, and one when all is judged."""
        print("   items  items/s  workers' memory MiB   processor ms an item: all  workers  replay  postgres  valkey")
        shown, fetched = 0, False
        while True:
            items, all_fetched, all_judged = self.settled()
            if items and self.began is None:
                self.began, self.at_start = time.monotonic(), self.costs()
                first = items
            if self.began is not None and (items >= shown * 1.25 + 200 or all_fetched != fetched or all_judged):
                shown, fetched = items, all_fetched
                self.show(items, items - first, "all judged" if all_judged else "all fetched" if all_fetched else "")
            if all_judged:
                return
            time.sleep(LOOK_SECONDS)

    def show(self, items: int, since_start: int, remark: str) -> None:
        """One line: what it has come to since the first items were there."""
        assert self.began is not None
        seconds = max(time.monotonic() - self.began, LOOK_SECONDS)
        memory = sum(worker.memory_info().rss for worker in self._workers) / MEBIBYTE
        costs = [
            1000 * (now - then) / max(1, since_start) for now, then in zip(self.costs(), self.at_start, strict=True)
        ]
        figures = "".join(f"{cost:9.2f}" for cost in [sum(costs), *costs])
        print(f"{items:8}  {since_start / seconds:7.0f}  {memory:19.0f}  {'':16}{figures}  {remark}", flush=True)


def main() -> None:
    """Harvest everything once."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("folder", nargs="?", type=Path)
    asked.add_argument("--workers", type=int, default=1)
    asked.add_argument("--items", type=int, default=2_000, help="about so many, where they are generated")
    asked.add_argument("--rate", type=int, default=0, help="requests a minute; 0: unthrottled")
    options = asked.parse_args()
    with TemporaryDirectory() as scratch, ExitStack() as stack:
        folder = options.folder or generated(Path(scratch) / "archive", options.items)
        data_dir = Path(scratch) / "data"
        services = stack.enter_context(embedded.start(data_dir))
        sluice = Path(sys.executable).with_name("sluice")
        port = free_port()
        replay = stack.enter_context(child([str(sluice), "replay", str(folder), "--port", str(port)]))
        url = f"http://127.0.0.1:{port}"
        await_answer(url)
        engine = open_engine(services.database_url)
        upgrade(engine)
        settings = Settings(
            data_dir=data_dir,
            database_url=services.database_url,
            redis_url=services.redis_url,
            source_url=url,
            rate_per_minute=options.rate,
            poll_seconds=3600,
            niceness=0,
        )
        log = stack.enter_context((Path(scratch) / "workers.log").open("wb"))
        command = [sys.executable, "-m", "workers"]
        workers = [
            stack.enter_context(child(command, env=settings.environment(), stderr=log)) for _ in range(options.workers)
        ]
        Watch(engine, data_dir, workers, replay).until_rest()
        engine.dispose()


def generated(folder: Path, items: int) -> Path:
    """Races of about so many items."""
    # A problem of the two legacy races is played by every agent of a race: some ten of them.
    problems = max(60, items // 10)
    write_demo(folder, size=DemoSize(families=max(420, problems * 4), race_problems=problems, repeated=problems // 3))
    return folder


if __name__ == "__main__":
    main()
