"""Pulling a snapshot from a real service: whole, verified, resumed; and from one that cannot be trusted."""

import asyncio
import gzip
import json
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import datasets
import pytest
from starlette.datastructures import Headers
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from typer.testing import CliRunner

from service.api import create_app
from service.cli.app import app
from service.cli.pull import TRIES
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
    (tmp_path / "manifest.json.partial").write_bytes(published["manifest.json"])
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
    """A server of one manifest and status, which a test may change."""
    folder = service.settings.snapshot_dir / service.snapshot_id

    class Liar(BaseHTTPRequestHandler):
        manifest = json.loads((folder / "manifest.json").read_bytes())
        status = b"{}"

        def do_GET(self) -> None:
            told = {"manifest.json": json.dumps(self.manifest).encode(), "status.json": type(self).status}
            body = told.get(self.path.rsplit("/", 1)[1], b"lies")
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


@pytest.mark.parametrize(
    "name", ["../outside", "/tmp/outside", "data/../../outside", "a\\b", "a\nb", "manifest.json", ""]
)
def test_a_file_outside_the_folder_is_refused(service: Service, liar: ThreadingHTTPServer, tmp_path: Path, name: str):
    manifest, url = lies(liar)
    manifest["files"][0]["name"] = name
    with pytest.raises(SluiceError, match="outside the snapshot"):
        pull(service.snapshot_id, url, tmp_path / "here")
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("status", [b"lies", b'{"files": {"x": 1}}', b'{"files": {"x": {"rows": 1}}}'])
def test_a_status_that_cannot_be_read_is_refused(
    service: Service, liar: ThreadingHTTPServer, tmp_path: Path, status: bytes
):
    _, url = lies(liar)
    liar.RequestHandlerClass.status = status
    with pytest.raises(SluiceError, match="status cannot be read"):
        pull(service.snapshot_id, url, tmp_path / "here")
    assert not (tmp_path / "here").exists()


def test_wrong_bytes_never_get_their_name(
    service: Service, liar: ThreadingHTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("service.cli.pull.PAUSE_SECONDS", 0.0)
    _, url = lies(liar)
    with pytest.raises(SluiceError) as caught:
        pull(service.snapshot_id, url, tmp_path)
    assert caught.value.code is ErrorCode.DIGEST_MISMATCH
    # What marks the folder as begun is all there is.
    assert set(tree(tmp_path)) == {"manifest.json.partial"}


class Moody:
    """The service behind a door that fails as the test wishes: 503s first, and answers that end early."""

    def __init__(self, inner: ASGIApp, failures: int) -> None:
        self.inner, self.failures = inner, failures
        self.asked: list[tuple[str, str]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.inner(scope, receive, send)
        headers = Headers(scope=scope)
        self.asked.append((scope["path"].rsplit("/", 1)[1], headers.get("range", "")))
        assert headers["accept-encoding"] == "identity"
        if self.failures:
            self.failures -= 1
            return await Response(status_code=503)(scope, receive, send)
        return await self.inner(scope, receive, send)


def test_a_busy_service_is_outlasted_and_the_rest_of_a_file_resumed(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Three 503s: for the manifest, and twice for the file of which 100 bytes are there already."""
    monkeypatch.setattr("service.cli.pull.PAUSE_SECONDS", 0.0)
    published = tree(service.settings.snapshot_dir / service.snapshot_id)
    name = min(entry for entry in published if entry.startswith("data/"))
    (tmp_path / "data/agentic").mkdir(parents=True)
    (tmp_path / f"{name}.partial").write_bytes(published[name][:100])
    door = Moody(create_app(service.engine, service.settings), failures=1)
    with serving(door, "127.0.0.1", 0) as url:
        monkeypatch.setattr("service.cli.pull._claim", lambda *_: setattr(door, "failures", 2))
        pull(service.snapshot_id, url, tmp_path)
    short = name.rsplit("/", 1)[1]
    known = [("manifest.json", "")] * 2 + [("status.json", "")]
    assert door.asked[:6] == known + [(short, "bytes=100-")] * 3
    assert tree(tmp_path) == published


def test_a_service_that_stays_busy_ends_it(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("service.cli.pull.PAUSE_SECONDS", 0.0)
    door = Moody(create_app(service.engine, service.settings), failures=1000)
    with serving(door, "127.0.0.1", 0) as url, pytest.raises(SluiceError, match="answered 503") as caught:
        pull(service.snapshot_id, url, tmp_path)
    assert caught.value.code is ErrorCode.SERVICE_UNAVAILABLE
    assert len(door.asked) == TRIES


def test_a_document_without_end_is_cut_off(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The rest is sent only once it has been refused: whoever read on to the end would wait for it."""
    monkeypatch.setattr("service.cli.pull.DOCUMENT_LIMIT_BYTES", 1000)
    refused, late = threading.Event(), threading.Event()

    async def pieces() -> AsyncIterator[bytes]:
        yield b"x" * 2000
        if not await asyncio.to_thread(refused.wait, 20):
            late.set()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        await StreamingResponse(pieces())(scope, receive, send)

    with serving(endless, "127.0.0.1", 0) as url:
        with pytest.raises(SluiceError, match="larger than any"):
            pull(service.snapshot_id, url, tmp_path)
        assert not late.is_set()
        refused.set()


def test_an_encoded_answer_is_refused(service: Service, tmp_path: Path):
    """It was asked for as it is; inflated it could be any size."""

    async def encoded(scope: Scope, receive: Receive, send: Send) -> None:
        body = gzip.compress(b"0" * 1000)
        await Response(body, headers={"Content-Encoding": "gzip"})(scope, receive, send)

    with serving(encoded, "127.0.0.1", 0) as url, pytest.raises(SluiceError, match="came encoded"):
        pull(service.snapshot_id, url, tmp_path)


def test_a_folder_of_something_else_is_not_overwritten(service: Service, url: str, tmp_path: Path):
    (tmp_path / "manifest.json").write_text("[1]")
    with pytest.raises(SluiceError, match="another snapshot"):
        pull(service.snapshot_id, url, tmp_path)


@pytest.mark.parametrize("own", ["README.md", "data/agentic/train-00000.parquet", "notes.txt"])
def test_a_folder_of_ones_own_is_left_alone(service: Service, url: str, tmp_path: Path, own: str):
    """Even where the names are a snapshot's: only the manifest of an earlier try makes the folder ours."""
    (tmp_path / own).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / own).write_text("mine")
    with pytest.raises(SluiceError, match="files of something else"):
        pull(service.snapshot_id, url, tmp_path)
    assert tree(tmp_path) == {own: b"mine"}


@pytest.mark.parametrize("dest", ["file", "file/below"])
def test_a_folder_that_cannot_be_made_is_one_sentence(service: Service, url: str, tmp_path: Path, dest: str):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(SluiceError, match="cannot be used: ") as caught:
        pull(service.snapshot_id, url, tmp_path / dest)
    assert caught.value.code is ErrorCode.BAD_INPUT
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_that_may_not_be_written_to(
    service: Service, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The fault is made here: root, as whom tests may run, may write everywhere."""

    def forbidden(path: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "mkdir", forbidden)
    with pytest.raises(SluiceError, match=f"{tmp_path}/here cannot be used: Permission denied"):
        pull(service.snapshot_id, url, tmp_path / "here")


@pytest.mark.parametrize("url", ["127.0.0.1:8715", "localhost", "ftp://host", "http://", "http://host:port", ""])
def test_what_is_no_url_is_said_at_once(tmp_path: Path, url: str):
    with pytest.raises(SluiceError, match="--url") as caught:
        pull("0" * 64, url, tmp_path)
    assert caught.value.code is ErrorCode.BAD_INPUT


def test_what_is_not_there_is_asked_for_once(service: Service, tmp_path: Path):
    door = Moody(create_app(service.engine, service.settings), failures=0)
    with serving(door, "127.0.0.1", 0) as url, pytest.raises(SluiceError, match="has no such snapshot"):
        pull("0" * 64, url, tmp_path)
    assert len(door.asked) == 1


def test_the_first_digits_are_enough(service: Service, url: str, tmp_path: Path):
    pull(service.snapshot_id[:8], url, tmp_path / "here")
    assert tree(tmp_path / "here") == tree(service.settings.snapshot_dir / service.snapshot_id)
    with pytest.raises(SluiceError, match="too short"):
        pull(service.snapshot_id[:7], url, tmp_path / "there")
    assert not (tmp_path / "there").exists()
