"""The server as a process: it says where it is, answers, and ends cleanly on either signal."""

import signal
import socket
import subprocess
import sys
import time
from http import HTTPStatus
from pathlib import Path

import httpx
import pytest

from service.errors import SluiceError
from service.replay.server import Replay, replaying

SLUICE = (sys.executable, "-c", "from service.cli import main; main()")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_without_a_traceback(recording: Path, number: signal.Signals) -> None:
    port = free_port()
    command = [*SLUICE, "replay", str(recording), "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, cwd=Path(__file__).parents[2]) as process:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                assert httpx.get(f"http://127.0.0.1:{port}/health").json() == {"status": "ok"}
                break
            except httpx.ConnectError:
                time.sleep(0.05)
        process.send_signal(number)
        _, errors = process.communicate(timeout=15)
    assert process.returncode == 0
    assert b"Traceback" not in errors


def test_a_taken_port_is_a_named_error(replay: Replay, recording: Path) -> None:
    port = int(replay.url.rsplit(":", 1)[1])
    with pytest.raises(SluiceError, match="PREREQUISITE_MISSING"), replaying(recording, port=port):
        pass


def test_two_servers_run_side_by_side(replay: Replay, recording: Path) -> None:
    with replaying(recording) as other:
        assert other.url != replay.url
        for url in (replay.url, other.url):
            assert httpx.get(f"{url}/v1/public/suites").status_code == HTTPStatus.OK


def test_a_server_that_behaves_keeps_no_faults_and_signs_under_its_own_key(recording: Path) -> None:
    with replaying(recording) as one, replaying(recording) as other:
        assert (one.faults, other.faults) == (None, None)
        url = object_url(one)
        assert httpx.get(url).status_code == HTTPStatus.OK
        assert httpx.get(url.replace(one.url, other.url)).status_code == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize("body", [b"", b"\xff{", b"[]", b'{"artifact_type": "AGENT_CODE", "agent_version_id": "x"}'])
def test_a_request_for_a_url_that_makes_no_sense_is_unprocessable(replay: Replay, body: bytes) -> None:
    answer = httpx.post(f"{replay.url}/v1/public/artifacts/download-url", content=body)
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert answer.json()["detail"][0]["msg"]
    assert httpx.get(f"{replay.url}/v1/public/artifacts/download-url").status_code == HTTPStatus.METHOD_NOT_ALLOWED


def object_url(replay: Replay) -> str:
    (run_id, name) = next(key for key, item in replay.archive.legacy.items() if item.packed)
    wanted = {
        "artifact_type": "EVAL_PROBLEM_LOGS",
        "agent_version_id": replay.archive.runs[run_id].agent_version_id,
        "eval_run_id": run_id,
        "problem_id": name,
    }
    url: str = httpx.post(f"{replay.url}/v1/public/artifacts/download-url", json=wanted).json()["download_url"]
    return url
