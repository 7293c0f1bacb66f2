"""What must hold of everything published: a sound corpus passes, and each way to break it is named."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from service.config import Settings
from service.store.engine import open_engine, reading, transaction
from service.store.release import invariants, pools
from service.store.release.files import FileStore
from service.store.release.pools import PoolRow
from tests.api import corpus


class Published:
    """A corpus with one snapshot."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self.engine = engine
        self.settings = settings
        self.files = FileStore(settings.snapshot_dir)
        self.snapshot_id = corpus.fill(engine, settings.snapshot_dir)

    def failing(self, *, bytes_too: bool = True) -> dict[str, tuple[int, str]]:
        """Checks that fail, with the number of faults and the first example."""
        with reading(self.engine) as session:
            found = invariants.checks(session, self.files, bytes_too=bytes_too)
        assert len(found) == 6
        return {check.name: (check.count, check.examples[0]) for check in found if not check.ok}

    def break_by(self, statement: str) -> None:
        with transaction(self.engine) as session:
            session.execute(text(statement))


@pytest.fixture
def published(database_url: str, redis_url: str, tmp_path: Path) -> Iterator[Published]:
    engine = open_engine(database_url)
    yield Published(engine, Settings(data_dir=tmp_path, database_url=database_url, redis_url=redis_url))
    engine.dispose()


def test_a_sound_corpus_passes(published: Published) -> None:
    assert published.failing() == {}


def test_a_problem_on_both_sides_is_named(published: Published) -> None:
    published.break_by("UPDATE snapshot_rows SET problem_id = 'p-train' WHERE split = 'eval'")
    failing = published.failing()
    assert failing["trained_and_held_out"] == (1, "p-train")
    assert failing["published_outside_its_pool"][0] == 1


def test_a_component_in_two_pools_is_named(published: Published) -> None:
    published.break_by("UPDATE cluster_members SET cluster_id = 'one' WHERE problem_id IN ('p-train', 'p-reserve')")
    assert published.failing() == {"component_spans_pools": (1, "1 one")}


def test_quarantine_goes_with_any_pool(published: Published) -> None:
    published.break_by("UPDATE cluster_members SET cluster_id = 'one' WHERE problem_id IN ('p-train', 'p-quarantined')")
    assert published.failing() == {}


@pytest.mark.parametrize(
    ("before", "after", "loosens"),
    [
        ("eval", "train", True),
        ("reserve", "eval", True),
        ("reserve", "train", True),
        ("reserve", "quarantined", False),
        ("train", "reserve", False),
        ("quarantined", "train", False),
    ],
)
def test_a_pool_that_loosens_is_named(published: Published, before: str, after: str, loosens: bool) -> None:
    problem = f"p-{before}"
    with transaction(published.engine) as session:
        newest = pools.latest(session)
        assert newest is not None
        pools.save(
            session,
            clustering_id=newest.clustering_id,
            plan_digest="pools-digest",
            members=[PoolRow(problem, after, after, "draw")],
            is_accepted=True,
        )
    expected = {"pool_loosened": (1, problem)} if loosens else {}
    assert published.failing() == expected


def test_a_row_that_was_not_kept_is_named(published: Published) -> None:
    trained = "trajectory_id IN (SELECT trajectory_id FROM snapshot_rows WHERE split = 'train')"
    published.break_by(f"UPDATE verdicts SET outcome = 'rejected' WHERE {trained}")
    assert published.failing()["published_though_not_kept"][0] == 1
    published.break_by("UPDATE snapshot_rows SET config = 'rejected' WHERE split = 'train'")
    assert published.failing() == {}


def test_files_that_are_missing_or_changed_are_named(published: Published) -> None:
    entry = published.files.manifest(published.snapshot_id).files[0]
    path = published.files.path(published.snapshot_id, entry.name)
    content = path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    assert published.failing(bytes_too=False) == {}
    assert "was changed" in published.failing()["files_as_the_manifest_says"][1]
    path.write_bytes(content + b"x")
    assert "was changed" in published.failing(bytes_too=False)["files_as_the_manifest_says"][1]
    path.unlink()
    assert "is missing" in published.failing()["files_as_the_manifest_says"][1]
    (published.settings.snapshot_dir / published.snapshot_id).rename(published.settings.data_dir / "aside")
    assert "not on this machine" in published.failing()["files_as_the_manifest_says"][1]


def test_the_command_says_the_same_and_fails_with_it(published: Published) -> None:
    def audit() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from service.cli import main; main()", "audit", "--bytes", "--json"]
        return subprocess.run(
            command, env=published.settings.environment(), capture_output=True, text=True, timeout=120, check=False
        )

    ran = audit()
    assert (ran.returncode, json.loads(ran.stdout)["ok"]) == (0, True)
    published.break_by("UPDATE snapshot_rows SET problem_id = 'p-train' WHERE split = 'eval'")
    ran = audit()
    told = json.loads(ran.stdout)
    assert (ran.returncode, told["ok"]) == (1, False)
    assert {check["name"] for check in told["checks"] if not check["ok"]} == set(published.failing())
