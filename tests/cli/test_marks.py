"""A marked snapshot says so over REST, in the list, in its audit and to who pulls it."""

import json
from pathlib import Path

from click.testing import Result
from starlette.testclient import TestClient
from typer.testing import CliRunner

from service.api import create_app
from service.cli.app import app
from service.cli.marks import marks_in
from service.cli.serving import serving
from service.domain.rows.manifest import STATUS_NAME, initial_status
from service.domain.rows.marks import Mark, marked
from service.domain.sn15.tombstones import TombstoneReason
from service.store.release.files import FileStore
from tests.api.conftest import Service
from tests.api.corpus import NOW


def sluice(*arguments: str, service: Service) -> Result:
    """Run the command in this process, on the service's database."""
    ran = CliRunner().invoke(app, arguments, env=service.settings.environment(), catch_exceptions=False)
    assert ran.exit_code == 0
    return ran


def mark(service: Service) -> None:
    """Write the mark of one invalidated row into the status of the service's snapshot."""
    row = Mark(TombstoneReason.RUN_INVALIDATED, "run-v1/p-train", "run-v1", NOW)
    FileStore(service.settings.snapshot_dir).set_status(service.snapshot_id, marked(initial_status(), [row]))


def test_marks_are_told_everywhere(service: Service, client: TestClient, tmp_path: Path) -> None:
    path = f"/v1/snapshots/{service.snapshot_id}/status"
    assert client.get(path).json()["marks"] == {}
    assert "none" in sluice("snapshot", "list", service=service).stdout
    mark(service)
    told = client.get(path).json()
    assert (told["state"], told["invalidated_runs"]) == ("marked", ["run-v1"])
    found = {"rows": 1, "since": "2026-05-04T19:00:00Z", "trajectory_keys": ["run-v1/p-train"]}
    assert told["marks"] == {"run_invalidated": found}
    (listed,) = json.loads(sluice("snapshot", "list", "--json", service=service).stdout)["snapshots"]
    assert listed["marks"] == {"run_invalidated": 1}
    assert "run_invalidated 1" in sluice("snapshot", "list", service=service).stdout
    audited = sluice("snapshot", "audit", service.snapshot_id, "--json", service=service)
    assert json.loads(audited.stdout)["marks"] == {"run_invalidated": 1}
    assert "marked since it was published: run_invalidated 1" in audited.stderr
    with serving(create_app(service.engine, service.settings), "127.0.0.1", 0) as url:
        here = ("--dest", str(tmp_path / "here"))
        pulled = sluice("pull", service.snapshot_id, "--url", url, *here, "--json", service=service)
    assert json.loads(pulled.stdout)["marks"] == {"run_invalidated": 1}
    assert "warning: SN15 has changed its word on rows of this snapshot: run_invalidated 1" in pulled.stderr
    assert marks_in((tmp_path / "here" / STATUS_NAME).read_bytes()) == {"run_invalidated": 1}


def test_a_status_that_is_none_has_no_marks() -> None:
    assert marks_in(b"<html>") == {}
    assert marks_in(b'{"marks": [1]}') == {}
    assert marks_in(b"{}") == {}
