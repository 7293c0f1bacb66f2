"""How a worker process behaves on its machine: it stands back, and a chain it cannot follow keeps it from nothing."""

import os
import subprocess
import sys
import time
from collections.abc import Callable

import psutil
import pytest

from service.store.engine import reading
from service.store.harvest import walks
from service.store.work.leases import LeaseName
from tests.workers.harness import Pipeline
from workers.loops import Loop, rest_seconds

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


def test_a_worker_whose_node_is_away_walks_all_the_same_and_stands_back(
    work: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICE_SUBTENSOR", "ws://127.0.0.1:9")
    with work.worker() as process:
        wait_for(lambda: walked(work), process)
        threads = psutil.Process(process.pid).threads()
        assert len(threads) > 8
        assert {os.getpriority(os.PRIO_PROCESS, thread.id) for thread in threads} == {10}


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


def test_nothing_imports_the_chain_until_one_is_named_and_priority_only_sinks() -> None:
    told = (
        "import os, sys, service.cli.up, service.api\n"
        "from workers.__main__ import stand_back\n"
        "for niceness in (0, 12, 5):\n"
        "    stand_back(niceness)\n"
        "    print(os.nice(0))\n"
        "print('bittensor' in sys.modules)\n"
    )
    ended = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, timeout=60, check=True)
    own = os.nice(0)
    assert ended.stdout.split() == [str(own), str(max(own, 12)), str(max(own, 12)), "False"]


def test_a_loop_that_finds_nothing_rests_a_tenth_of_the_time_since_it_did() -> None:
    loop = Loop(LeaseName.SWEEP, lambda context: None, rest_share=4.0)
    # At least a second; four times a round of 0.5 s; a tenth of 60 s; and of 600 s no more than ten seconds.
    for took, idle, rest in ((0.1, 0.0, 1.0), (0.5, 0.0, 2.0), (0.1, 60.0, 6.0), (0.1, 600.0, 10.0)):
        assert rest_seconds(loop, took_seconds=took, idle_seconds=idle) == rest
