"""A server that says exactly the bytes it is told to: what no HTTP library would send."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Script = bytes | Callable[[socket.socket], None]


class Wire:
    """Answers each request on each connection with the next script; the last one is used for ever."""

    def __init__(self, scripts: list[Script]) -> None:
        self._scripts = list(scripts)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0
        self.requests: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                peer, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._answer, args=(peer,), daemon=True).start()

    def _answer(self, peer: socket.socket) -> None:
        with suppress(OSError), peer:
            while request := _request(peer):
                with self._lock:
                    self.requests.append(request)
                    script = self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]
                if callable(script):
                    script(peer)
                else:
                    peer.sendall(script)
                if not (isinstance(script, bytes) and b"keep-alive" in script):
                    return


def _request(peer: socket.socket) -> bytes:
    request = b""
    while b"\r\n\r\n" not in request:
        more = peer.recv(65_536)
        if not more:
            return b""
        request += more
    return request


@contextmanager
def answering(*scripts: Script) -> Iterator[Wire]:
    wire = Wire(list(scripts))
    try:
        yield wire
    finally:
        wire.close()


def whole(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """An honest answer that leaves its connection open."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: keep-alive", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def dripping(head: bytes, drop: bytes, pause_seconds: float) -> Script:
    """One drop after another, for longer than anyone should wait."""

    def drip(peer: socket.socket) -> None:
        peer.sendall(head)
        for _ in range(int(60 / pause_seconds)):
            peer.sendall(drop)
            time.sleep(pause_seconds)

    return drip


def endless(head: bytes, more: bytes) -> Script:
    """As many bytes as anyone takes."""

    def flood(peer: socket.socket) -> None:
        peer.sendall(head)
        while True:
            peer.sendall(more * 1000)

    return flood
