"""What the wheel carries, and that it works where there is no checkout."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.packaging.conftest import REPOSITORY

PACKAGES = ("service", "workers", "migrations")


def tracked_files(package: str) -> set[str]:
    """Files of a package in this checkout, but for what Python leaves beside them."""
    found = (path for path in (REPOSITORY / package).rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {str(path.relative_to(REPOSITORY)) for path in found}


def test_the_wheel_carries_every_file_of_its_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = {name.split(".dist-info/")[1] for name in archive.namelist() if ".dist-info/" in name}
    assert names == set().union(*map(tracked_files, PACKAGES))
    assert any(name.startswith("migrations/versions/") for name in names)
    assert any(name.endswith(".html") for name in names)
    assert "licenses/LICENSE" in metadata


@pytest.mark.nightly
def test_the_installed_wheel_runs_the_demo_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLUICE_", "PYTHON"))}
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    programs = tmp_path / "venv" / "bin"
    lock = REPOSITORY / "requirements.lock"
    install = [programs / "python", "-m", "pip", "install", "--quiet", "--constraint", lock, wheel]
    subprocess.run(install, check=True, cwd=tmp_path)
    demo = [programs / "sluice", "demo", "--once", "--json", "--data-dir", tmp_path / "data"]
    answer = subprocess.run(demo, check=True, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, timeout=600)
    summary = json.loads(answer.stdout)
    assert summary["trajectories"] > 0
    assert summary["snapshot"]["audit"]["ok"] is True
    assert min(summary["snapshot"]["rows"].values()) > 0
