"""`sluice up` as people run it: once, again, until Ctrl-C; with workers and servers killed under it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from service.replay.server import replaying
from service.world.demo import DemoSize, write_demo

SMALL = DemoSize(families=80, race_problems=14, repeated=4, qualifying_problems=6, episodes=6)
PATIENCE_SECONDS = 180.0
SLUICE = (sys.executable, "-c", "from service.cli import main; main()")
KEYS = {"races", "trajectories", "by_class", "verdicts", "clusters", "pools", "snapshot"}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Generated races behind ORO's API."""
    folder = tmp_path_factory.mktemp("archive") / "races"
    write_demo(folder, size=SMALL)
    with replaying(folder) as replay:
        yield replay.url


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


def environment() -> dict[str, str]:
    """Ours without the settings that would keep it from starting its own servers."""
    return {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}


def once(data_dir: Path, source: str, *more: str) -> subprocess.CompletedProcess[str]:
    command = [*SLUICE, "up", "--data-dir", str(data_dir), "--source-url", source, "--once", "--json", *more]
    return subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )


def left_over(data_dir: Path) -> list[str]:
    """Processes that name the folder in their command line or environment."""
    found = []
    for process in psutil.process_iter():
        try:
            told = [*process.cmdline(), process.environ().get("SLUICE_DATA_DIR", "")]
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        if process.pid != os.getpid() and any(str(data_dir) in part for part in told):
            found.append(" ".join(told))
    return found


@pytest.fixture(scope="module")
def summary(data_dir: Path, source: str) -> dict:
    """What the first run says; it must have gone well."""
    ran = once(data_dir, source)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_once_prints_the_summary_of_the_contract(summary: dict, data_dir: Path):
    assert set(summary) >= KEYS
    assert set(summary["verdicts"]) >= {"kept", "kept_negative", "rejected", "reasons"}
    assert set(summary["pools"]) == {"train", "eval", "reserve", "quarantined"}
    assert set(summary["snapshot"]) == {"id", "rows", "audit", "left_out"}
    assert summary["races"] == 3
    harvest, verdicts = summary["harvest"], summary["verdicts"]
    assert summary["trajectories"] == harvest["fetched"] == harvest["items"] - harvest["gone"]
    assert summary["trajectories"] == sum(summary["by_class"].values())
    assert summary["trajectories"] == verdicts["kept"] + verdicts["kept_negative"] + verdicts["rejected"]
    assert summary["trajectories"] == sum(verdicts["reasons"].values())
    assert summary["snapshot"]["audit"] == {"ok": True}
    assert min(summary["snapshot"]["rows"].values()) > 0


def test_once_leaves_nothing_running(summary: dict, data_dir: Path):
    assert left_over(data_dir) == []


@contextmanager
def serving(data_dir: Path, source: str, log: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """`sluice up` in the background; yields the process and the URL it serves on."""
    command = [*SLUICE, "up", "--data-dir", str(data_dir), "--source-url", source, "--port", "0"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment(), stderr=output, start_new_session=True)
    try:
        yield process, wait_for(lambda: address(log))
    finally:
        process.kill()
        process.wait()


def address(log: Path) -> str | None:
    words = log.read_text().split()
    return next((word for word in words if word.startswith("http://127.0.0.1:")), None)


def wait_for(found: Callable[[], str | None]) -> str:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if value := found():
            return value
        time.sleep(0.1)
    raise TimeoutError


def workers_of(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Its living worker processes; one may end at any moment while they are listed."""
    found = []
    for each in psutil.Process(process.pid).children():
        try:
            if "workers" in each.cmdline():
                found.append(each)
        except psutil.NoSuchProcess:  # also what a zombie raises
            continue
    return found


def test_a_killed_worker_is_replaced_and_ctrl_c_stops_everything(
    summary: dict, data_dir: Path, source: str, tmp_path: Path
):
    with serving(data_dir, source, tmp_path / "log") as (process, url):
        assert httpx.get(f"{url}/ready").json()["status"] == "ready"
        assert httpx.get(f"{url}/v1/stats").json()["snapshot"] == summary["snapshot"]
        (worker,) = workers_of(process)
        worker.kill()
        wait_for(lambda: "yes" if [each for each in workers_of(process) if each.pid != worker.pid] else None)
        assert "status -9" in (tmp_path / "log").read_text()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert left_over(data_dir) == []


def test_a_second_command_joins_and_sigterm_stops_everything(
    summary: dict, data_dir: Path, source: str, tmp_path: Path
):
    """`stats` beside `up` reads the same database; `snapshot create` has its workers decide again."""
    with serving(data_dir, source, tmp_path / "log") as (process, _):
        for arguments, expected in (
            (("stats",), summary),
            (("snapshot", "create"), summary["snapshot"] | {"unchanged": True}),
        ):
            command = [*SLUICE, *arguments, "--data-dir", str(data_dir), "--json"]
            ran = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120, check=False)
            assert ran.returncode == 0, ran.stderr
            assert json.loads(ran.stdout) == expected
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert left_over(data_dir) == []


def test_when_up_is_killed_its_processes_end_and_the_same_again_adds_nothing(
    summary: dict, data_dir: Path, source: str, tmp_path: Path
):
    with serving(data_dir, source, tmp_path / "log") as (process, _):
        process.kill()
        process.wait()
        wait_for(lambda: None if left_over(data_dir) else "yes")
    ran = once(data_dir, source)
    assert (ran.returncode, json.loads(ran.stdout)) == (0, summary)


def test_a_taken_port_is_one_sentence(data_dir: Path, source: str):
    port = source.rsplit(":", 1)[1]
    ran = once(data_dir, source, "--port", port)
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[-1].startswith(f"sluice: cannot listen on 127.0.0.1:{port}")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://127.0.0.1:9", "does not answer"),
        ("ftp://example.org", "must be an http(s) URL"),
        ("nonsense", "must be an http(s) URL"),
    ],
)
def test_a_source_that_cannot_be_used(tmp_path: Path, url: str, message: str):
    ran = once(tmp_path / "none", url)
    assert ran.returncode == 2
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_corpus_too_small_to_split_is_exit_1(tmp_path: Path):
    """One problem (the envpack race of one episode) cannot be on both sides: refused, and the summary says why."""
    archive = tmp_path / "races"
    write_demo(archive, size=DemoSize(families=60, race_problems=2, repeated=0, qualifying_problems=1, episodes=1))
    description = json.loads((archive / "archive.json").read_bytes())
    description["races"] = [race for race in description["races"] if race["execution_kind"] == "envpack"]
    (archive / "archive.json").write_text(json.dumps(description))
    with replaying(archive) as replay:
        ran = once(tmp_path / "data", replay.url)
    assert ran.returncode == 1
    told = json.loads(ran.stdout)
    assert told["snapshot"] is None
    assert told["refusal"]["code"] == "EMPTY_SPLIT"
