"""The page: its figures are those of the corpus, and nothing that strangers wrote becomes markup."""

import html
import re
from pathlib import Path

from sqlalchemy import text
from starlette.testclient import TestClient

from service.api import create_app
from service.store.engine import open_engine
from tests.api import corpus
from tests.api.conftest import Service
from tests.api.corpus import HOSTILE


def words(page: str) -> str:
    """What a reader sees: no tags, one space between words."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_the_funnel(client: TestClient):
    seen = words(client.get("/").text)
    assert "announced 10 100.0 %" in seen
    assert "harvested 9 90.0 %" in seen
    assert "judged 8 80.0 %" in seen
    assert "kept 5 50.0 %" in seen
    # Of eleven kept rows six are in the snapshot: two were in reserve, three left out in selection.
    assert "left out: reserve 2 20.0 % left out: duplicate 2 20.0 % left out: family cap 1 10.0 %" in seen
    assert "in the latest snapshot 6 60.0 %" in seen
    assert "kept negative (in no split yet) 0 0.0 %" in seen
    assert "Not given by the source: no object 1" in seen
    assert "loop 3 33.3 %" in seen


def test_races_and_snapshot(client: TestClient, service: Service):
    seen = words(client.get("/").text)
    assert "race 7 suite 3 race complete 2026-05-04 19:00 UTC 2 10 / 10" in seen
    assert service.snapshot_id in seen
    assert "audit passed 3 train, 3 eval" in seen


def test_one_is_singular(client: TestClient):
    seen = words(client.get("/").text)
    assert "9 trajectories 5 kept 1 race 4 leak clusters 1 snapshot " in seen


def test_the_page_says_how_to_pull(client: TestClient, service: Service):
    seen = words(client.get("/partials/overview", headers={"Host": "my.host:81"}).text)
    assert f"sluice pull {service.snapshot_id[:12]} --url http://my.host:81 --dest sn15" in seen
    assert 'href="/docs"' in client.get("/partials/overview").text


def test_the_reference_is_readable(client: TestClient):
    page = client.get("/docs").text
    assert "`" not in words(page)
    assert "<code>next_after</code>" in page
    assert "Rows at most. Default 100. At most 500." in words(page)
    assert "trajectory_key is the same everywhere" in words(page)


def test_hostile_names_stay_text(client: TestClient):
    for path in ("/", "/partials/overview"):
        page = client.get(path).text
        assert html.escape(HOSTILE, quote=False) in page.replace("&#34;", '"')
        assert HOSTILE not in page
        assert "<script>" not in page


def test_the_page_needs_nothing_from_elsewhere(client: TestClient):
    for path in ("/", "/docs"):
        page = client.get(path).text
        assert not re.findall(r"""(?:src|href)=["'](?:https?:)?//""", page)
        assert "style=" not in page
        for name in re.findall(r'(?:src|href)="(/static/[^"]+)"', page):
            assert client.get(name).status_code == 200


def test_the_partial_is_the_part_of_the_page(client: TestClient):
    partial = client.get("/partials/overview").text
    assert "<html" not in partial
    assert "Funnel" in partial


def test_an_empty_corpus_has_a_page(database_url: str, service: Service):
    engine = open_engine(database_url)
    client = TestClient(create_app(engine, service.settings))
    seen = words(client.get("/").text)
    assert "No snapshot has been published yet." in seen
    assert "The source has not been walked yet." in seen
    assert client.get("/v1/stats").json()["snapshot"] is None
    engine.dispose()


def test_a_refused_release_is_shown(database_url: str, service: Service, tmp_path: Path):
    engine = open_engine(database_url)
    corpus.fill(engine, tmp_path)
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE releases SET snapshot_id = NULL, refusal = CAST(:refusal AS jsonb)"),
            {"refusal": '{"code": "EMPTY_SPLIT", "message": "<i>no</i>"}'},
        )
    client = TestClient(create_app(engine, service.settings))
    assert "EMPTY_SPLIT The present corpus is not released: <i>no</i>" in words(client.get("/").text)
    stats = client.get("/v1/stats").json()
    assert (stats["snapshot"], stats["refusal"]["code"]) == (None, "EMPTY_SPLIT")
    engine.dispose()
