"""How a worker process behaves on its machine: it stands back, and a chain it cannot follow keeps it from nothing."""

import os
import subprocess
import sys
import time
from collections.abc import Callable

import psutil
import pytest

from service.store import walks
from service.store.engine import reading
from tests.workers.harness import Pipeline

WITHOUT_PACKAGE = (
    "import sys; sys.modules['bittensor'] = None; import workers.__main__; sys.exit(workers.__main__.main())"
)
PATIENCE_SECONDS = 60.0


def wait_for(is_so: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert process.poll() is None, "the worker died"
        assert time.monotonic() < deadline
        time.sleep(0.05)


def walked(work: Pipeline) -> bool:
    with reading(work.engine) as session:
        return walks.completed_after(session, 0)


def test_workers_stand_back(work: Pipeline) -> None:
    with work.worker() as process:
        seen = psutil.Process(process.pid)
        wait_for(lambda: seen.nice() == 10, process)
        wait_for(lambda: len(seen.threads()) > 8, process)
        assert {os.getpriority(os.PRIO_PROCESS, thread.id) for thread in seen.threads()} == {10}


def test_a_node_that_is_away_keeps_a_worker_from_nothing(work: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_SUBTENSOR", "ws://127.0.0.1:9")
    monkeypatch.setenv("SLUICE_NICENESS", "0")
    with work.worker() as process:
        wait_for(lambda: walked(work), process)
        assert psutil.Process(process.pid).nice() == psutil.Process().nice()


def test_a_worker_says_in_one_sentence_that_the_package_is_missing(work: Pipeline) -> None:
    environment = {
        **os.environ,
        "SLUICE_DATABASE_URL": work.database_url,
        "SLUICE_REDIS_URL": work.redis_url,
        "SLUICE_SUBTENSOR": "finney",
    }
    command = [sys.executable, "-c", WITHOUT_PACKAGE]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert ended.stderr == "SLUICE_SUBTENSOR is set, which needs the extra `chain`: pip install 'sluice-sn15[chain]'\n"


def test_nothing_imports_the_chain_until_one_is_named() -> None:
    told = "import sys, workers.__main__, service.cli.up, service.api; print('bittensor' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "False\n"
