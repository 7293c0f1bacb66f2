"""What `doctor` finds, on folders and ports made for it."""

import socket
from pathlib import Path

import pytest

from service import embedded
from service.cli.doctor import Finding, examine, own_package
from service.config import Settings


def findings(settings: Settings) -> dict[str, Finding]:
    return {finding.check: finding for finding in examine(settings, ask_source=False)}


def test_a_machine_that_has_everything(services: embedded.Services, tmp_path: Path, database_url: str):
    settings = Settings(data_dir=tmp_path, database_url=database_url, redis_url=services.redis_url, port=0)
    found = findings(settings)
    assert [finding for finding in found.values() if not finding.ok] == []
    assert {"python", "package", "disk", "data folder", "port", "tokenizer", "database", "redis"} == set(found)


def test_a_foreign_package_in_the_way(tmp_path: Path):
    (tmp_path / "service").mkdir()
    found = own_package([tmp_path])
    assert not found.ok
    assert str(tmp_path / "service") in found.detail
    assert own_package([]).ok


def test_a_taken_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("service.cli.doctor.TIMEOUT_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = Settings(data_dir=tmp_path / "none", port=taken.getsockname()[1])
        # Nobody answers on it, so it is no Sluice.
        assert not findings(settings)["port"].ok


def test_a_database_that_is_away(tmp_path: Path):
    settings = Settings(
        data_dir=tmp_path, database_url="postgresql://localhost:1/nothing", redis_url="redis://localhost:1", port=0
    )
    assert findings(settings)["database"] == Finding("database", False, "the database does not answer")


def test_a_data_folder_open_to_all(tmp_path: Path):
    tmp_path.chmod(0o777)
    found = findings(Settings(data_dir=tmp_path, database_url="postgresql://localhost:1/nothing", redis_url="", port=0))
    assert not found["data folder"].ok
    assert "chmod o-w" in found["data folder"].detail


def test_nothing_is_made_for_a_folder_that_is_not_there(tmp_path: Path):
    found = findings(Settings(data_dir=tmp_path / "none", port=0))
    assert found["databases"].ok
    assert not (tmp_path / "none").exists()
