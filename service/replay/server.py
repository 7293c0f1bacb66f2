"""Run the replay server in a thread, for as long as a block lasts. Knows no signal: the CLI does."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from service.listening import in_thread, listening, url_of
from service.replay.app import create_app
from service.replay.archive import read_archive
from service.replay.faults import FaultInjector, Faults
from service.replay.presign import Presigner
from service.replay.recorded import Archive

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Replay:
    """A running replay server. Changing `archive` changes its answers: a race may complete under a client's eyes."""

    url: str
    archive: Archive
    faults: Faults | None
    """What it was started with, to be added to while it runs; None for a server that behaves."""


@contextlib.contextmanager
def replaying(
    source: Path | Archive,
    host: str = LOOPBACK,
    port: int = 0,
    url_lifetime_seconds: int = 300,
    faults: Faults | None = None,
) -> Iterator[Replay]:
    """Serve a folder (or what was read from one) in a thread. Port 0 takes a free one; `Replay.url` tells which."""
    archive = read_archive(source) if isinstance(source, Path) else source
    app: ASGIApp = create_app(archive, Presigner(url_lifetime_seconds))
    server = _server(app if faults is None else FaultInjector(app, faults))
    with listening(host, port) as listener, in_thread(server, listener, "replay"):
        yield Replay(url_of(listener), archive, faults)


def _server(app: ASGIApp) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        lifespan="off",
        timeout_graceful_shutdown=2,
        timeout_keep_alive=30,
    )
    return uvicorn.Server(config)
