"""How fast two worker processes judge a whole corpus anew: read from Postgres, judge, write, nothing left out.

Run from the checkout: `python -m benchmarks.rejudge [DIR] [--items N] [--batch N] [--workers N]`, DIR holding recorded
runs; without it, the demo's races. Payloads are repeated until there are enough, each row with bytes, ids and evidence
of its own. Postgres runs beside the workers, on the same cores. It changes nothing outside its scratch folder.
"""

import argparse
import hashlib
import multiprocessing
import resource
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec
import psycopg
from psycopg.types.json import Jsonb

from benchmarks.filter import Item, items_of
from benchmarks.harvest import servers
from service import embedded
from service.config import Settings
from service.domain.trajectory import ExecutionKind
from service.store.engine import open_engine
from service.store.migrate import upgrade
from workers.__main__ import keep_what_stays
from workers.context import open_context
from workers.pipeline import ORDER
from workers.stages import filter as filter_stage

ITEMS = 146_000
"""About five races of three validators."""
BATCH = next(step.batch for step in ORDER if step.handler is filter_stage.run)
MEBIBYTE_IN_KIBIBYTES = 1024


class Cost(NamedTuple):
    """What one worker used."""

    cpu_seconds: float
    memory_mib: float


def fill(database_url: str, items: Sequence[Item], count: int) -> None:
    """Store so many trajectories; what they would hang on in the ledger is left out."""
    with psycopg.connect(database_url) as connection, connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")  # no ledger is there to refer to
        repeated = [(number, *items[number % len(items)]) for number in range(count)]
        digests = [hashlib.sha256(b"%d " % number + payload).hexdigest() for number, payload, _ in repeated]
        with cursor.copy("COPY payloads (payload_sha256, zstd, size_bytes) FROM STDIN") as copy:
            for digest, (_, payload, _) in zip(digests, repeated, strict=True):
                copy.write_row((digest, payload, len(payload)))
        columns = "trajectory_id, ledger_id, eval_run_id, item_key, problem_id, payload_sha256, kind"
        with cursor.copy(f"COPY trajectories ({columns}) FROM STDIN") as copy:
            for digest, (number, _, _) in zip(digests, repeated, strict=True):
                copy.write_row((number, number, "run", f"{number}", "problem", digest, ExecutionKind.LEGACY.value))
        with cursor.copy("COPY evidence (trajectory_id, evidence_digest, payload_sha256, body) FROM STDIN") as copy:
            for digest, (number, _, evidence) in zip(digests, repeated, strict=True):
                copy.write_row((number, evidence.digest, digest, Jsonb(msgspec.to_builtins(evidence))))
        connection.commit()
        connection.autocommit = True
        cursor.execute("ANALYZE")


def judge(settings: Settings, services: embedded.Services, numbers: range, batch: int) -> Cost:
    """Judge some of the trajectories, a message's worth at a time."""
    context = open_context(settings, services.database_url, services.redis_url)
    keep_what_stays()
    start = time.process_time()
    for first in range(numbers.start, numbers.stop, batch):
        filter_stage.run(range(first, min(first + batch, numbers.stop)), context, "")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEBIBYTE_IN_KIBIBYTES
    return Cost(time.process_time() - start, memory)


def shares(count: int, workers: int) -> Iterator[range]:
    """The numbers below `count`, in as many ranges as there are workers."""
    for worker in range(workers):
        yield range(count * worker // workers, count * (worker + 1) // workers)


def main() -> None:
    """Fill a scratch database, judge everything once, print what it took."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("folder", nargs="?", type=Path)
    asked.add_argument("--items", type=int, default=ITEMS)
    asked.add_argument("--batch", type=int, default=BATCH, help="trajectories in one transaction")
    asked.add_argument("--workers", type=int, default=2)
    options = asked.parse_args()
    items = items_of(options.folder)
    with TemporaryDirectory() as scratch, embedded.start(Path(scratch)) as services:
        engine = open_engine(services.database_url)
        upgrade(engine)
        fill(services.database_url.replace("+psycopg", ""), items, options.items)
        settings = Settings(data_dir=Path(scratch), source_url="http://127.0.0.1:9")
        before, start = servers(Path(scratch), "postgres"), time.monotonic()
        with multiprocessing.get_context("spawn").Pool(options.workers) as pool:
            parts = shares(options.items, options.workers)
            costs = pool.starmap(judge, [(settings, services, part, options.batch) for part in parts])
        seconds = time.monotonic() - start
        postgres = servers(Path(scratch), "postgres") - before
        with psycopg.connect(services.database_url.replace("+psycopg", "")) as connection:
            rows = connection.execute("SELECT count(*), count(*) FILTER (WHERE outcome = 'kept') FROM verdicts")
            judged, kept = rows.fetchone() or (0, 0)
        engine.dispose()
    assert judged == options.items, f"{judged} of {options.items} have a verdict"
    work = sum(cost.cpu_seconds for cost in costs)
    halved = (work + postgres) / 2
    print(f"{judged} trajectories judged in {seconds:.1f} s by {options.workers} workers, {kept} kept")
    print(f"processor seconds: workers {work:.1f}, postgres {postgres:.1f}; on two idle cores {halved:.1f} s")
    print(f"memory at the peak, each worker: {max(cost.memory_mib for cost in costs):.0f} MiB")


if __name__ == "__main__":
    main()
