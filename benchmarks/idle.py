"""What a service costs while it keeps to its request budget: processor seconds a minute, by kind of process.

Run from the checkout: `python -m benchmarks.idle [SECONDS]`. `sluice up` runs against a replay server at 50 requests a
minute, first with 27,000 items to ask for, then with nothing to do. The replay server is not counted.
"""

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

from service import embedded
from service.config import Settings
from service.store.engine import open_engine, reading, transaction
from service.store.harvest import ledger
from service.store.harvest.ledger import ExpectedItem
from service.store.migrate import upgrade
from service.store.origin import require
from service.world.demo import DemoSize, write_demo
from workers.context import open_context
from workers.subscribe import walk

SIZE = DemoSize(families=120, race_problems=15, repeated=6, qualifying_problems=9, episodes=6)
BACKLOG_ITEMS = 27_000
RATE_PER_MINUTE = 50
SETTLING_SECONDS = 30.0
REPLAY_PORT = 18717
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


def fill(settings: Settings, backlog: int) -> None:
    """List the source, and put made-up items of a listed run into the ledger until so many are to be asked for."""
    with embedded.start(settings.data_dir) as services:
        engine = open_engine(services.database_url)
        upgrade(engine)
        with transaction(engine) as session:
            require(session, settings.origin)
        context = open_context(settings, services.database_url, services.redis_url)
        walk(context)
        now = datetime.now(UTC)
        with reading(engine) as session:
            (known,) = ledger.due(session, now, 1)
        with transaction(engine) as session:
            (target,) = ledger.claim(session, [known], "fill", now, 0.0)
            run, problem = target.eval_run_id, target.problem_id
            items = (ExpectedItem(run, f"made-up-{n}", problem, None, {}) for n in range(backlog))
            ledger.expect(session, items, now)
        context.engine.dispose()
        engine.dispose()


@contextmanager
def up(settings: Settings, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """`sluice up` on the data folder."""
    sluice = Path(sys.executable).with_name("sluice")
    process = subprocess.Popen([str(sluice), "up", *options], env=settings.environment(), stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def family(process: subprocess.Popen[bytes], data_dir: Path) -> dict[int, tuple[str, float, int]]:
    """Kind, processor seconds and memory of every process that belongs to the service, by its id.

    The private servers are no children of `up`: their supervisor names the data folder, and they are its children.
    """
    found = {}
    roots = [one for one in psutil.process_iter() if one.pid == process.pid or names(one, data_dir)]
    for root in roots:
        for one in (root, *root.children(recursive=True)):
            try:
                times = one.cpu_times()
                # Children that have ended are in their parent's account.
                seconds = times.user + times.system + times.children_user + times.children_system
                found[one.pid] = (kind(one, process.pid), seconds, one.memory_info().rss)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
    return found


def names(process: psutil.Process, data_dir: Path) -> bool:
    """Whether a process was started on the data folder."""
    try:
        return any(str(data_dir) in argument for argument in process.cmdline())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def kind(process: psutil.Process, up_pid: int) -> str:
    """What a process is for."""
    if process.pid == up_pid:
        return "up"
    if "workers" in process.cmdline():
        return "worker"
    return "supervisor" if process.name().startswith("python") else process.name()


def measure(title: str, process: subprocess.Popen[bytes], data_dir: Path, seconds: float) -> None:
    """Print what a minute costs, once the start is over."""
    time.sleep(SETTLING_SECONDS)
    before = family(process, data_dir)
    time.sleep(seconds)
    after = family(process, data_dir)
    spent: dict[str, float] = {}
    memory: dict[str, int] = {}
    for pid, (name, used, rss) in after.items():
        began = before[pid][1] if pid in before else 0.0
        spent[name] = spent.get(name, 0.0) + used - began
        memory[name] = memory.get(name, 0) + rss
    print(f"\n{title}\n{'process':12} {'CPU s a minute':>15} {'RSS MiB':>8}")
    for name in sorted(spent):
        print(f"{name[:12]:12} {spent[name] * 60 / seconds:15.2f} {memory[name] / MEBIBYTE:8.0f}")
    print(f"{'all':12} {sum(spent.values()) * 60 / seconds:15.2f} {sum(memory.values()) / MEBIBYTE:8.0f}", flush=True)


def main() -> None:
    """Measure both."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 120.0
    with TemporaryDirectory() as scratch:
        archive = Path(scratch) / "archive"
        write_demo(archive, size=SIZE)
        with replayed(archive) as url:
            for title, backlog in (("27,000 items to ask for", BACKLOG_ITEMS), ("nothing to do", 0)):
                data_dir = Path(scratch) / ("backlog" if backlog else "idle")
                settings = Settings(data_dir=data_dir, source_url=url, port=0)
                if backlog:
                    fill(settings, backlog)
                else:
                    with up(settings, "--once") as once:
                        once.wait()
                throttled = settings.model_copy(update={"rate_per_minute": RATE_PER_MINUTE})
                with up(throttled) as process:
                    measure(title, process, data_dir, seconds)


if __name__ == "__main__":
    main()
