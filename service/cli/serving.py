"""The REST service in a thread of this process, for as long as a block lasts. Adds no route."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import uvicorn
from starlette.types import ASGIApp

from service.errors import ErrorCode, SluiceError

START_SECONDS = 15.0
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
    with listening(host, port) as listener:
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, name="api", daemon=True)
        thread.start()
        try:
            _await_start(server, thread)
            yield f"http://{host}:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(START_SECONDS)


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there.

    Raises:
        SluiceError: PREREQUISITE_MISSING when that cannot be.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(256)
    except OSError as error:
        listener.close()
        raise SluiceError(
            ErrorCode.PREREQUISITE_MISSING,
            f"cannot listen on {host}:{port}: {error.strerror}; choose another with --port",
            host=host,
            port=port,
        ) from error
    return listener


def _await_start(server: uvicorn.Server, thread: Thread) -> None:
    """Wait until the server accepts. `join` is the pause, and ends at once when the thread dies."""
    for _ in range(int(START_SECONDS / 0.01)):
        if server.started:
            return
        thread.join(0.01)
        if not thread.is_alive():
            break
    raise SluiceError(ErrorCode.SERVICE_UNAVAILABLE, "the REST service did not start")
