"""Snapshots and their files: what HTTP promises of ranges and conditions, and no way out of the folder."""

import hashlib
import http.client
import io

import pyarrow.parquet as pq
import pytest
import zstandard
from starlette.testclient import TestClient

from service.api import create_app
from service.cli.serving import serving
from tests.api.conftest import Service


@pytest.fixture
def base(service: Service) -> str:
    return f"/v1/snapshots/{service.snapshot_id}"


@pytest.fixture
def entry(client: TestClient, base: str) -> dict:
    """The Parquet file of train."""
    files = client.get(base).json()["files"]
    return next(file for file in files if file["split"] == "train" and file["format"] == "parquet")


def test_every_listed_file_has_its_sha256_and_is_readable(client: TestClient, base: str):
    for file in client.get(base).json()["files"]:
        answer = client.get(file["url"])
        assert hashlib.sha256(answer.content).hexdigest() == file["sha256"] == answer.headers["etag"].strip('"')
        if file["format"] == "parquet":
            assert answer.headers["content-type"] == "application/vnd.apache.parquet"
            assert pq.read_table(io.BytesIO(answer.content)).num_rows == file["rows"]
        else:
            assert answer.headers["content-type"] == "application/zstd"
            with zstandard.ZstdDecompressor().stream_reader(answer.content) as stream:
                assert stream.read().count(b"\n") == file["rows"]


def test_head_has_the_headers_and_no_body(client: TestClient, entry: dict):
    answer = client.head(entry["url"])
    assert answer.status_code == 200
    assert answer.headers["content-length"] == str(entry["bytes"])
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.content == b""


@pytest.mark.parametrize(
    ("span", "piece"),
    [("bytes=0-9", slice(0, 10)), ("bytes=10-", slice(10, None)), ("bytes=-7", slice(-7, None))],
)
def test_ranges(client: TestClient, entry: dict, span: str, piece: slice):
    whole = client.get(entry["url"]).content
    answer = client.get(entry["url"], headers={"Range": span})
    assert answer.status_code == 206
    assert answer.content == whole[piece]
    assert answer.headers["content-range"].endswith(f"/{len(whole)}")


def test_a_range_past_the_end_is_refused(client: TestClient, entry: dict):
    answer = client.get(entry["url"], headers={"Range": f"bytes={entry['bytes']}-"})
    assert answer.status_code == 416
    assert answer.headers["content-range"] == f"bytes */{entry['bytes']}"
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "REQUESTED_RANGE_NOT_SATISFIABLE"


def test_hundreds_of_ranges_give_the_whole_file(client: TestClient, entry: dict):
    spans = ",".join(f"{n}-{n}" for n in range(0, 400, 2))
    answer = client.get(entry["url"], headers={"Range": f"bytes={spans}"})
    assert (answer.status_code, len(answer.content)) == (200, entry["bytes"])


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ('"{sha256}"', 304),
        ('W/"{sha256}"', 304),
        ('"other", "{sha256}"', 304),
        ("*", 304),
        ('"other"', 200),
    ],
)
def test_if_none_match(client: TestClient, entry: dict, condition: str, status: int):
    answer = client.get(entry["url"], headers={"If-None-Match": condition.format(**entry)})
    assert answer.status_code == status
    assert answer.headers["etag"] == f'"{entry["sha256"]}"'


@pytest.mark.parametrize(("tag", "status"), [('"{sha256}"', 206), ('"other"', 200), ('W/"{sha256}"', 200)])
def test_if_range(client: TestClient, entry: dict, tag: str, status: int):
    """Another or a weak tag: the whole file, so that a client never joins halves of two files."""
    headers = {"Range": "bytes=5-", "If-Range": tag.format(**entry)}
    assert client.get(entry["url"], headers=headers).status_code == status


def test_data_is_immutable_but_status_is_not(client: TestClient, base: str, entry: dict):
    assert "immutable" in client.get(entry["url"]).headers["cache-control"]
    assert client.get(f"{base}/files/status.json").headers["cache-control"] == "no-cache"


def test_documents(client: TestClient, base: str, service: Service):
    assert client.get(f"{base}/manifest").json()["snapshot_id"] == service.snapshot_id
    assert client.get(f"{base}/status").json()["state"] == "published"
    assert client.get(f"{base}/files/audit.json").json()["ok"] is True
    assert client.get(f"{base}/files/README.md").text.startswith("---\n")
    assert [row["id"] for row in client.get("/v1/snapshots").json()["snapshots"]] == [service.snapshot_id]


@pytest.mark.parametrize(
    "name",
    [
        *("../outside.txt", "..%2foutside.txt", "%2e%2e/outside.txt", "%2fetc%2fpasswd", "//etc/passwd"),
        *("data/../../outside.txt", "data", "data/", "", ".", "%00", "README.md%00", "manifest.json/"),
        *("..%5coutside.txt", "data/agentic/../agentic/train-00000.parquet", "MANIFEST.JSON"),
    ],
)
def test_no_other_name_is_a_file(base: str, name: str, service: Service):
    service.settings.snapshot_dir.joinpath("outside.txt").write_text("outside\n")
    with serving(create_app(service.engine, service.settings), "127.0.0.1", 0) as url:
        # The path is sent as written: other clients resolve its dots.
        connection = http.client.HTTPConnection(url.removeprefix("http://"))
        connection.request("GET", f"{base}/files/{name}")
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
    assert answer.status in (404, 422)
    assert answer.headers["content-type"] == "application/problem+json"
    assert "outside\n" not in body


def test_a_snapshot_that_was_never_recorded_is_not_served(client: TestClient, service: Service):
    """Files alone are not a release: the database decides."""
    folder = service.settings.snapshot_dir / ("f" * 64)
    folder.mkdir()
    folder.joinpath("manifest.json").write_bytes(
        service.settings.snapshot_dir.joinpath(service.snapshot_id, "manifest.json").read_bytes()
    )
    assert client.get(f"/v1/snapshots/{'f' * 64}/files/manifest.json").status_code == 404
