"""Any process killed at any time, again and again: in the end, the rows and the snapshot of an undisturbed run."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from service.replay.server import replaying
from service.world.demo import DemoSize, write_demo

pytestmark = pytest.mark.nightly

SIZE = DemoSize(families=200, race_problems=40, repeated=10, qualifying_problems=15, episodes=15)
SLUICE = (sys.executable, "-c", "from service.cli import main; main()")
ROUNDS = 8
PATIENCE_SECONDS = 300.0


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Generated races behind ORO's API."""
    folder = tmp_path_factory.mktemp("archive") / "races"
    write_demo(folder, size=SIZE)
    with replaying(folder) as replay:
        yield replay.url


def up(data_dir: Path, source: str) -> subprocess.Popen[str]:
    told = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
    command = [*SLUICE, "up", "--data-dir", str(data_dir), "--source-url", source, "--once", "--json"]
    return subprocess.Popen(command, env=told, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str]) -> dict[str, Any]:
    output, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, errors
    summary: dict[str, Any] = json.loads(output)
    return summary


def family(process: subprocess.Popen[str], data_dir: Path) -> list[psutil.Process]:
    """The process, and every process below it or that serves its data folder."""
    found = {process.pid: psutil.Process(process.pid)}
    for each in psutil.process_iter():
        try:
            told = " ".join([*each.cmdline(), each.environ().get("SLUICE_DATA_DIR", "")])
            if str(data_dir) in told and each.pid != os.getpid():
                found[each.pid] = each
                found |= {child.pid: child for child in each.children(recursive=True)}
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return sorted(found.values(), key=lambda one: one.pid)


@pytest.mark.parametrize("seed", range(3))
def test_random_kills_end_where_an_undisturbed_run_ends(
    seed: int, source: str, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    chance = random.Random(seed)
    data_dir = tmp_path / "data"
    for _ in range(ROUNDS):
        running = up(data_dir, source)
        deadline = time.monotonic() + chance.uniform(2.0, 15.0)
        while time.monotonic() < deadline and running.poll() is None:
            time.sleep(0.05)
        if running.poll() is None:
            chance.choice(family(running, data_dir)).send_signal(signal.SIGKILL)
            time.sleep(chance.uniform(0.0, 2.0))
        running.kill()
        running.communicate(timeout=PATIENCE_SECONDS)
    assert finished(up(data_dir, source)) == undisturbed


@pytest.fixture(scope="module")
def undisturbed(source: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The summary of a run that nothing disturbed."""
    return finished(up(tmp_path_factory.mktemp("undisturbed"), source))
