"""Real worker processes over a real database, queue and source, and what they leave behind as one comparable value."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, func, select

from service.domain.policy import DEFAULT_POLICIES
from service.store.engine import open_engine, reading
from service.store.figures import statistics
from service.store.figures.statistics import Dimension
from service.store.harvest import ledger, walks
from service.store.models import Base
from service.store.release import clusters, pools, snapshots
from service.store.work.progress import progress

RUSHED_WORKER = Path(__file__).with_name("rushed_worker.py")


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Where one test's workers run."""

    database_url: str
    redis_url: str
    source_url: str
    data_dir: Path
    engine: Engine

    @contextmanager
    def worker(self, fault: str = "") -> Iterator[subprocess.Popen[bytes]]:
        """One worker process, with a fault to die of or none; ended when the block is left."""
        environment = {
            **os.environ,
            "SLUICE_DATABASE_URL": self.database_url,
            "SLUICE_REDIS_URL": self.redis_url,
            "SLUICE_SOURCE_URL": self.source_url,
            "SLUICE_DATA_DIR": str(self.data_dir),
            "SLUICE_POLL_SECONDS": "3600",
            "SLUICE_RELEASE_INTERVAL_SECONDS": "0",
        }
        process = subprocess.Popen([sys.executable, str(RUSHED_WORKER), fault], env=environment)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(timeout=30)

    def run(self, workers: int = 1, seconds: float = 120.0) -> None:
        """Run workers until a walk of theirs is complete and no stage has anything left to do."""
        with reading(self.engine) as session:
            before = walks.last_begun(session)
        if workers > 1:
            with self.worker():
                self.run(workers - 1, seconds)
            return
        with self.worker() as process:
            deadline = time.monotonic() + seconds
            while not self.done_since(before):
                assert process.poll() is None, "the worker died"
                assert time.monotonic() < deadline, f"still at work after {seconds} s"
                time.sleep(0.1)

    def done_since(self, walk_id: int) -> bool:
        """Whether a walk after `walk_id` is complete and everything it led to is done."""
        with reading(self.engine) as session:
            if not walks.completed_after(session, walk_id):
                return False
            return progress(session, DEFAULT_POLICIES, datetime.now(UTC)).idle

    def outcome(self) -> dict[str, Any]:
        """Everything that must not depend on what happened on the way."""
        rules = DEFAULT_POLICIES.rules.digest
        with reading(self.engine) as session:
            clustering, assignment = clusters.latest(session), pools.latest(session)
            assert clustering is not None
            assert assignment is not None
            by = [Dimension.AGENT, Dimension.CLASS, Dimension.REASON, Dimension.RACE]
            rows = {
                name: session.scalar(select(func.count()).select_from(table))
                for name, table in Base.metadata.tables.items()
                if name in ("trajectories", "verdicts", "payloads", "evidence", "harvest_ledger", "snapshots")
            }
            return {
                "snapshots": [(one.snapshot_id, one.train_rows, one.eval_rows) for one in snapshots.listing(session)],
                "ledger": [tuple(count) for count in ledger.counts(session)],
                "counts": [tuple(count) for count in statistics.counts(session, rules, by)],
                "clusters": clusters.members(session, clustering.clustering_id),
                "pools": pools.members(session, assignment.assignment_id),
                "rows": rows,
            }


@contextmanager
def pipeline(database_url: str, redis_url: str, source_url: str, data_dir: Path) -> Iterator[Pipeline]:
    """A pipeline on an empty, migrated database."""
    engine = open_engine(database_url)
    try:
        yield Pipeline(database_url, redis_url, source_url, data_dir, engine)
    finally:
        engine.dispose()
