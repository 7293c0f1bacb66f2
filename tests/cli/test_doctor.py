"""What `doctor` finds, on folders and ports made for it."""

import socket
from pathlib import Path

import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service import embedded
from service.cli.doctor import Finding, _source, examine, own_package
from service.cli.serving import serving
from service.config import Settings
from service.replay.recorded import Archive
from service.replay.server import replaying


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
    assert findings(Settings(data_dir=tmp_path, port=0))["databases"].ok
    assert list(tmp_path.iterdir()) == []


async def page(scope: Scope, receive: Receive, send: Send) -> None:
    """Something that answers everything, and is not SN15's API."""
    await Response("<h1>welcome</h1>", media_type="text/html")(scope, receive, send)


def test_the_source_is_sn15s_api():
    with replaying(Archive()) as replay:
        assert _source(replay.url) == Finding("source", True, f"{replay.url} answers with 0 suites")


def test_what_is_not_sn15s_api_is_named():
    with serving(page, "127.0.0.1", 0) as url:
        found = _source(url)
    assert not found.ok
    assert f"{url}/v1/public/suites answered 200, text/html" in found.detail
    assert _source(url) == Finding("source", False, f"{url} does not answer (ConnectError)")
