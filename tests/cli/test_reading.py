"""`stats` and `snapshot list|audit` over the filled database, as a shell would run them."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import text

from service.domain.leaks.pools import Pool
from service.domain.rows.selection import SelectionReason
from service.store.engine import open_engine
from service.store.migrate import alembic_config
from service.store.release.files import FileStore
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
    (line,) = [line for line in ran.stdout.splitlines() if service.snapshot_id in line]
    assert line.split()[1:-1:2] == [service.snapshot_id, "3", "3", "passed"]
    assert "Kept, but not in the snapshot" in ran.stdout.splitlines()
    assert "family_cap" in ran.stdout


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
    assert "there is no data in" in ran.stderr
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("arguments", [["stats"], ["snapshot", "list"], ["snapshot", "audit", "0" * 64]])
def test_nothing_is_started_in_a_folder_without_data(service: Service, tmp_path: Path, arguments: list[str]):
    bare = service._replace(settings=service.settings.model_copy(update={"database_url": None, "redis_url": None}))
    ran = sluice(*arguments, "--data-dir", str(tmp_path), service=bare)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == f"sluice: there is no data in {tmp_path}; `sluice up` puts some there\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("revision", "told"), [(None, "no data in the database"), ("f00d", "newer schema"), ("first", "older schema")]
)
def test_a_schema_that_is_not_current_says_which_way(
    service: Service, database_url: str, revision: str | None, told: str
):
    scripts = ScriptDirectory.from_config(alembic_config())
    engine = open_engine(database_url)
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM alembic_version"))
        if revision is not None:
            named = scripts.get_base() if revision == "first" else revision
            connection.execute(text("INSERT INTO alembic_version VALUES (:named)"), {"named": named})
    engine.dispose()
    ran = sluice(
        "stats", service=service._replace(settings=service.settings.model_copy(update={"database_url": database_url}))
    )
    if revision == "first" and scripts.get_base() == scripts.get_current_head():
        assert ran.returncode == 0  # there is no older one yet
        return
    assert ran.returncode == 2
    assert told in ran.stderr


def test_snapshot_list(service: Service):
    (row,) = json.loads(sluice("snapshot", "list", "--json", service=service).stdout)["snapshots"]
    assert (row["id"], row["rows"]) == (service.snapshot_id, {"train": 3, "eval": 3})


def test_an_id_is_whole_where_there_is_no_terminal(service: Service):
    for arguments in (["list"], ["audit", service.snapshot_id[:8]]):
        lines = sluice("snapshot", *arguments, service=service).stdout.splitlines()
        assert sum(service.snapshot_id in line for line in lines) == 1


def test_too_few_digits_say_so(service: Service):
    ran = sluice("snapshot", "audit", service.snapshot_id[:7], service=service)
    assert ran.returncode == 2
    assert "give at least 8 digits" in ran.stderr


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


def test_the_readme_explains_why_rows_are_left_out():
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    table = readme.split("| left out as |")[1].split("\n\n")[0]
    explained = re.findall(r"^\| `([a-z_]+)` \|", table, re.MULTILINE)
    assert explained == [Pool.RESERVE, Pool.QUARANTINED, *SelectionReason]


def test_explain_shows_one_trajectory_call_by_call(service: Service, client):
    key = "run-v1/p-train"
    ran = sluice("explain", key, service=service)
    assert ran.returncode == 0, ran.stderr
    assert f": {key}" in ran.stdout.splitlines()[0]
    (line,) = [line for line in ran.stdout.splitlines() if "find_product(" in line]
    assert "UNKNOWN" in line
    told = json.loads(sluice("explain", key, "--json", service=service).stdout)
    shown = sluice("explain", str(told["trajectory_id"]), "--rules", "paper-2606.10064", "--json", service=service)
    assert json.loads(shown.stdout)["rules"].startswith("paper-2606.10064/")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("0",), "sluice: there is no trajectory '0'"),
        (("no/such",), "sluice: there is no trajectory 'no/such'"),
        (("9" * 30,), f"sluice: there is no trajectory '{'9' * 30}'"),
        (("1", "--rules", "mine"), "sluice: rule sets are sluice-1, paper-2606.10064; not 'mine'"),
    ],
)
def test_what_cannot_be_explained_is_one_sentence(service: Service, arguments: tuple[str, ...], sentence: str):
    ran = sluice("explain", *arguments, service=service)
    assert (ran.returncode, ran.stdout, ran.stderr.splitlines()) == (2, "", [sentence])
