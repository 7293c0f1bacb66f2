"""A server in a thread: answers come at once, a taken port is one sentence, and nothing listens afterwards."""

import socket

import pytest
import uvicorn
from starlette.applications import Starlette

from service.errors import ErrorCode, SluiceError
from service.listening import in_thread, listening, url_of


def test_nagle_is_off_on_what_the_listener_accepts():
    """Asyncio sets TCP_NODELAY only on sockets whose protocol is named; 0 means that it would be left on."""
    with listening("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_a_taken_port_is_named():
    with listening("127.0.0.1", 0) as first, pytest.raises(SluiceError) as caught:
        listening("127.0.0.1", first.getsockname()[1])
    assert caught.value.code is ErrorCode.PREREQUISITE_MISSING
    assert "cannot listen on 127.0.0.1:" in caught.value.message


def test_it_serves_while_the_block_runs():
    server = uvicorn.Server(uvicorn.Config(Starlette(), log_config=None, lifespan="off"))
    with listening("127.0.0.1", 0) as listener, in_thread(server, listener, "test"):
        host, port = listener.getsockname()
        assert url_of(listener) == f"http://127.0.0.1:{port}"
        with socket.create_connection((host, port), timeout=5) as client:
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert client.recv(12) == b"HTTP/1.1 404"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, port), timeout=5)


def test_a_server_that_fails_at_once_is_an_error():
    class Broken(uvicorn.Server):
        def run(self, sockets: list[socket.socket] | None = None) -> None:
            return

    server = Broken(uvicorn.Config(Starlette(), log_config=None))
    with listening("127.0.0.1", 0) as listener, pytest.raises(SluiceError), in_thread(server, listener, "broken"):
        raise AssertionError("never reached")
