"""`stats` and `snapshot list|audit` over the filled database, as a shell would run them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from service.store.files import FileStore
from tests.api.conftest import Service
from tests.api.corpus import HOSTILE, write


def sluice(*arguments: str, service: Service) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, on the service's database."""
    command = [sys.executable, "-c", "from service.cli import main; main()", *arguments]
    return subprocess.run(
        command, env=service.settings.environment(), capture_output=True, text=True, timeout=120, check=False
    )


def test_stats_are_those_of_the_rest_service(service: Service, client):
    told = json.loads(sluice("stats", "--json", service=service).stdout)
    assert told == {name: value for name, value in client.get("/v1/stats").json().items() if name != "rows"}


def test_stats_by(service: Service):
    ran = sluice("stats", "--json", "--by", "agent,verdict", service=service)
    rows = json.loads(ran.stdout)["rows"]
    assert {"agent": "honest", "verdict": "kept", "count": 5} in rows
    assert {"agent": HOSTILE, "verdict": "rejected", "count": 3} in rows
    assert sum(row["count"] for row in rows) == 9


def test_stats_for_people(service: Service):
    ran = sluice("stats", service=service)
    assert ran.returncode == 0
    assert service.snapshot_id[:8] in ran.stdout


def test_an_unknown_dimension_is_one_sentence_and_exit_2(service: Service):
    ran = sluice("stats", "--by", "hotkey", service=service)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr.startswith("sluice: --by takes agent, class")
    assert len(ran.stderr.splitlines()) == 1


def test_a_folder_without_data_is_exit_2(service: Service, tmp_path: Path):
    bare = service._replace(settings=service.settings.model_copy(update={"database_url": None, "redis_url": None}))
    ran = sluice("stats", "--data-dir", str(tmp_path / "nothing"), service=bare)
    assert ran.returncode == 2
    assert "no data folder" in ran.stderr
    assert not (tmp_path / "nothing").exists()


def test_snapshot_list(service: Service):
    (row,) = json.loads(sluice("snapshot", "list", "--json", service=service).stdout)["snapshots"]
    assert (row["id"], row["rows"]) == (service.snapshot_id, {"train": 3, "eval": 3})


def test_an_unknown_snapshot_is_exit_2(service: Service):
    assert sluice("snapshot", "audit", "0" * 64, service=service).returncode == 2


@pytest.fixture
def copied(service: Service, tmp_path: Path) -> Service:
    """The same database over a copy of the files, to be damaged."""
    settings = service.settings.model_copy(update={"data_dir": tmp_path})
    shutil.copytree(service.settings.snapshot_dir, settings.snapshot_dir)
    return service._replace(settings=settings)


def audited(service: Service, snapshot_id: str | None = None) -> set[str]:
    """Names of the checks that fail; the exit status says the same as the report."""
    ran = sluice("snapshot", "audit", snapshot_id or service.snapshot_id, "--json", service=service)
    report = json.loads(ran.stdout)
    assert report["ok"] == (ran.returncode == 0)
    assert ran.returncode in (0, 1)
    return {check["name"] for check in report["checks"] if not check["ok"]}


def test_an_untouched_snapshot_passes(copied: Service):
    assert audited(copied) == set()


def test_a_leak_in_the_published_rows_is_found(copied: Service):
    """Both splits ask for "a red kettle for N people": equal once digits are masked."""
    leaky = write(FileStore(copied.settings.snapshot_dir), eval_query=None)
    assert audited(copied, leaky.snapshot_id) == {"equal_queries"}


def test_a_damaged_file_fails(copied: Service):
    files = FileStore(copied.settings.snapshot_dir)
    path = files.path(copied.snapshot_id, "data/agentic/train-00000.jsonl.zst")
    path.write_bytes(path.read_bytes()[:-20])
    # Its rows are not read, so train is empty too.
    assert audited(copied) == {"file_digests", "row_digests", "empty_split"}


def test_a_changed_manifest_fails(copied: Service):
    path = copied.settings.snapshot_dir / copied.snapshot_id / "manifest.json"
    path.write_text(path.read_text().replace('"spec_digest": "', '"spec_digest": "f', 1))
    assert audited(copied) == {"snapshot_id"}
