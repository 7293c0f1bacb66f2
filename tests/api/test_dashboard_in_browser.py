"""The page in a real browser: its script runs, renews the figures, and nothing that strangers wrote runs with it."""

import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api import create_app
from tests.api.conftest import Service
from tests.api.test_dashboard import words

pytestmark = pytest.mark.browser


@dataclass
class Watched:
    """The service on a port; it remembers what it was asked and how it answered."""

    app: ASGIApp
    port: int = 0
    answers: list[tuple[str, int]] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def remember(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.answers.append((scope["path"], message["status"]))
            await send(message)

        await self.app(scope, receive, remember)


@pytest.fixture
def watched(service: Service) -> Iterator[Watched]:
    watched = Watched(create_app(service.engine, service.settings))
    server = uvicorn.Server(uvicorn.Config(watched, port=0, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    watched.port = server.servers[0].sockets[0].getsockname()[1]
    yield watched
    server.should_exit = True
    thread.join()


def test_the_page_shows_its_figures_and_renews_them(watched: Watched, tmp_path: Path) -> None:
    chromium = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
    look = [*chromium, "--virtual-time-budget=7000", "--dump-dom", f"http://127.0.0.1:{watched.port}/"]
    page = subprocess.run(look, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=120, check=True)
    seen = words(page.stdout)
    assert "kept 5 50.0 %" in seen
    assert 'class="stale"' not in page.stdout
    asked = [path for path, _ in watched.answers]
    assert asked.count("/partials/overview") >= 1  # every 3 s, and it looked for 7 s
    assert "/static/sluice.css" in asked
    assert {status for _, status in watched.answers} <= {200, 304}
