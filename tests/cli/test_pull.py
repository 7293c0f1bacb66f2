"""Pulling a snapshot from a real service: whole, verified, resumed; and from one that cannot be trusted."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import datasets
import pytest
from typer.testing import CliRunner

from service.api import create_app
from service.cli.app import app
from service.cli.serving import serving
from service.errors import ErrorCode, SluiceError
from tests.api.conftest import Service


@pytest.fixture
def url(service: Service) -> Iterator[str]:
    with serving(create_app(service.engine, service.settings), "127.0.0.1", 0) as url:
        yield url


def pull(snapshot_id: str, url: str, dest: Path) -> None:
    """Run the command; a fault is raised."""
    arguments = ["pull", snapshot_id, "--url", url, "--dest", str(dest)]
    CliRunner().invoke(app, arguments, catch_exceptions=False, standalone_mode=False)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_pulled_folder_is_the_published_one(service: Service, url: str, tmp_path: Path):
    pull(service.snapshot_id, url, tmp_path / "here")
    assert tree(tmp_path / "here") == tree(service.settings.snapshot_dir / service.snapshot_id)


def test_datasets_reads_the_pulled_folder_and_the_served_files(service: Service, url: str, tmp_path: Path):
    pull(service.snapshot_id, url, tmp_path / "here")
    loaded = datasets.load_dataset(str(tmp_path / "here"), cache_dir=str(tmp_path / "cache"))
    assert {split: rows.num_rows for split, rows in loaded.items()} == {"train": 3, "eval": 3}
    served = f"{url}/v1/snapshots/{service.snapshot_id}/files/data/agentic/train-00000.parquet"
    loaded = datasets.load_dataset("parquet", data_files=served, cache_dir=str(tmp_path / "cache"))
    assert loaded["train"].num_rows == 3


@pytest.mark.parametrize("damage", ["cut", "empty", "long", "wrong"])
def test_what_an_earlier_try_left_is_used_or_thrown_away(service: Service, url: str, tmp_path: Path, damage: str):
    published = tree(service.settings.snapshot_dir / service.snapshot_id)
    name = "data/agentic/train-00000.parquet"
    whole = published[name]
    left = {"cut": whole[:100], "empty": b"", "long": whole + b"x", "wrong": b"x" * len(whole)}[damage]
    partial = tmp_path / f"{name}.partial"
    partial.parent.mkdir(parents=True)
    partial.write_bytes(left)
    pull(service.snapshot_id, url, tmp_path)
    assert tree(tmp_path) == published


def test_a_damaged_file_is_fetched_again(service: Service, url: str, tmp_path: Path):
    pull(service.snapshot_id, url, tmp_path)
    published = tree(tmp_path)
    (tmp_path / "data/agentic/eval-00000.parquet").write_bytes(b"damaged")
    pull(service.snapshot_id, url, tmp_path)
    assert tree(tmp_path) == published


def test_another_snapshot_is_not_overwritten(service: Service, url: str, tmp_path: Path):
    manifest = json.loads((service.settings.snapshot_dir / service.snapshot_id / "manifest.json").read_bytes())
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | {"snapshot_id": "0" * 64}))
    with pytest.raises(SluiceError, match="another snapshot"):
        pull(service.snapshot_id, url, tmp_path)


def test_an_unknown_snapshot(url: str, tmp_path: Path):
    with pytest.raises(SluiceError) as caught:
        pull("0" * 64, url, tmp_path)
    assert caught.value.code is ErrorCode.NOT_FOUND


def test_an_id_is_no_path(url: str, tmp_path: Path):
    with pytest.raises(SluiceError, match="no snapshot id"):
        pull("../../v1/stats", url, tmp_path)


def test_nobody_there(tmp_path: Path):
    with pytest.raises(SluiceError) as caught:
        pull("0" * 64, "http://127.0.0.1:9", tmp_path)
    assert caught.value.code is ErrorCode.SERVICE_UNAVAILABLE


@pytest.fixture
def liar(service: Service) -> Iterator[ThreadingHTTPServer]:
    """A server of one manifest, which a test may change."""
    folder = service.settings.snapshot_dir / service.snapshot_id

    class Liar(BaseHTTPRequestHandler):
        manifest = json.loads((folder / "manifest.json").read_bytes())

        def do_GET(self) -> None:
            body = json.dumps(self.manifest).encode() if self.path.endswith("manifest.json") else b"lies"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Liar) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def lies(liar: ThreadingHTTPServer) -> tuple[dict, str]:
    return liar.RequestHandlerClass.manifest, f"http://127.0.0.1:{liar.server_port}"


def test_a_manifest_that_was_changed_is_refused(service: Service, liar: ThreadingHTTPServer, tmp_path: Path):
    manifest, url = lies(liar)
    manifest["parts"][0]["digest"] = "0" * 64
    with pytest.raises(SluiceError, match="digest it is named by"):
        pull(service.snapshot_id, url, tmp_path)


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "data/../../outside", "a\\b", "manifest.json", ""])
def test_a_file_outside_the_folder_is_refused(service: Service, liar: ThreadingHTTPServer, tmp_path: Path, name: str):
    manifest, url = lies(liar)
    manifest["files"][0]["name"] = name
    with pytest.raises(SluiceError, match="outside the snapshot"):
        pull(service.snapshot_id, url, tmp_path / "here")
    assert not (tmp_path / "outside").exists()


def test_wrong_bytes_never_get_their_name(
    service: Service, liar: ThreadingHTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("service.cli.pull.PAUSE_SECONDS", 0.0)
    _, url = lies(liar)
    with pytest.raises(SluiceError) as caught:
        pull(service.snapshot_id, url, tmp_path)
    assert caught.value.code is ErrorCode.DIGEST_MISMATCH
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
