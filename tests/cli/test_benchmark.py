"""`sluice benchmark` as a shell runs it, and what the API says of the same benchmarks."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import Service


def sluice(*arguments: str | Path, service: Service) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from service.cli import main; main()", "benchmark", *map(str, arguments)]
    return subprocess.run(
        command, env=service.settings.environment(), capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two files, one of them packed, of three questions."""
    plain, packed = tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"
    plain.write_text('{"query": "a kettle", "reward": {"product_id": "7"}}\n\n{"query": "a tent"}\n')
    packed.write_bytes(gzip.compress(b'{"query": "a lamp", "reward": ["8", "9"]}\n'))
    return [plain, packed]


def named(listed: dict[str, Any]) -> dict[str, Any]:
    """The benchmark of these tests among all."""
    return next(each for each in listed["benchmarks"] if each["name"] == "bench")


def test_a_benchmark_is_registered_once_listed_and_replaced(
    service: Service, client: TestClient, files: list[Path]
) -> None:
    first = sluice("add", "bench", *files, "--json", service=service)
    assert first.returncode == 0, first.stderr
    told = json.loads(first.stdout)
    assert (told["items"], told["with_gold"], told["policy"], told["unchanged"]) == (3, 2, "exclude", False)
    assert json.loads(sluice("add", "bench", *files, "--json", service=service).stdout)["unchanged"]
    declared = sluice("add", "bench", *files, "--policy", "declared-public", service=service)
    assert declared.stdout == "bench: 3 items, 2 with gold ids, declared-public\n"
    listed = named(json.loads(sluice("list", "--json", service=service).stdout))
    assert (listed["policy"], listed["items"], listed["is_clustered"]) == ("declared-public", 3, False)
    assert listed["items_digest"] == told["items_digest"]
    served = named(client.get("/v1/benchmarks").json())
    assert served["items_digest"] == told["items_digest"]
    report = sluice("report", "bench", "--json", service=service)
    assert json.loads(report.stdout)["items_touched"] == 0
    over_http = client.get("/v1/benchmarks/bench").json()
    assert (over_http["items_touched"], over_http["kinds"], over_http["snapshots"]) == (0, {}, [])
    assert "kettle" not in client.get("/v1/benchmarks/bench").text


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b'{"query": "a"}\n{"query": 1}\n', "bad.jsonl: line 2: `query` is no text"),
        (b"", "bad.jsonl: there are no items"),
        (gzip.compress(b'{"query": "a"}\n', mtime=0)[:-9], "bad.jsonl: not read to its end: truncated"),
    ],
)
def test_a_file_that_cannot_be_read_registers_nothing(
    service: Service, tmp_path: Path, content: bytes, fault: str
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    ran = sluice("add", "broken", path, service=service)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert fault in ran.stderr
    assert "broken" not in sluice("list", "--json", service=service).stdout


def test_a_name_or_file_that_cannot_be_is_said_so(service: Service, client: TestClient, tmp_path: Path) -> None:
    assert "cannot name a benchmark" in sluice("add", "No Name", tmp_path / "x", service=service).stderr
    assert "No such file" in sluice("add", "bench", tmp_path / "absent", service=service).stderr
    assert "there is no benchmark 'other'" in sluice("report", "other", service=service).stderr
    assert client.get("/v1/benchmarks/other").status_code == 404
    assert client.get("/v1/benchmarks/UPPER").status_code == 422
