"""An ASGI application served by a thread of this process on a socket opened first, so that its port is known.

Adds no route and knows no application; whoever serves says how long open answers may take to end.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import uvicorn

from service.errors import ErrorCode, SluiceError

START_SECONDS = 15.0
BACKLOG = 256


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes a free one.

    Raises:
        SluiceError: PREREQUISITE_MISSING when that cannot be.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio turns Nagle off only on sockets that name it: 40 ms a request otherwise.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        message = f"cannot listen on {host}:{port}: {error.strerror}; choose another port"
        raise SluiceError(ErrorCode.PREREQUISITE_MISSING, message, host=host, port=port) from error
    return listener


def url_of(listener: socket.socket) -> str:
    """Base URL of what is served on a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def in_thread(server: uvicorn.Server, listener: socket.socket, name: str) -> Iterator[None]:
    """Serve on the socket while the block runs, in a thread of that name.

    Raises:
        SluiceError: SERVICE_UNAVAILABLE when the server does not start.
    """
    thread = Thread(target=server.run, kwargs={"sockets": [listener]}, name=name, daemon=True)
    thread.start()
    try:
        _await_start(server, thread)
        yield
    finally:
        server.should_exit = True
        thread.join(START_SECONDS)


def _await_start(server: uvicorn.Server, thread: Thread) -> None:
    """Wait until the server accepts. `join` is the pause, and ends at once when the thread dies."""
    for _ in range(int(START_SECONDS / 0.01)):
        if server.started:
            return
        thread.join(0.01)
        if not thread.is_alive():
            break
    raise SluiceError(ErrorCode.SERVICE_UNAVAILABLE, f"the {thread.name} server did not start")
