"""The REST service in a thread of this process, for as long as a block lasts. Adds no route."""

from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from service.listening import in_thread, listening, url_of

DRAIN_SECONDS = 5
"""Open downloads get this long when the service stops; clients resume them."""


@contextmanager
def serving(app: ASGIApp, host: str, port: int) -> Iterator[str]:
    """Serve `app`; yields its base URL. Port 0 takes a free one.

    Raises:
        SluiceError: PREREQUISITE_MISSING when the port is taken.
    """
    server = uvicorn.Server(
        uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=DRAIN_SECONDS)
    )
    with listening(host, port) as listener, in_thread(server, listener, "REST"):
        yield url_of(listener)
