"""The client against servers that break HTTP: each ends as a cause, in bounded time and memory, and spoils no other."""

import gzip
import socket
import ssl
import threading
import time
from pathlib import Path

import pytest
import trustme

from service.source.http.calls import open_client
from service.source.http.connections import MAX_IDLE, Connections, NotAnswered
from service.source.http.objects import Caps, TakingFailed, take
from service.source.refusals import Refusal
from tests.source.wire import Script, answering, dripping, endless, whole

SMALL = 100_000
HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
BODY = b'[{"step": 1}]'


def get(client: Connections, url: str, path: str = "/o") -> bytes:
    with client.send("GET", f"{url}{path}") as response:
        return take(response.pieces(SMALL), Caps(wire_bytes=SMALL))


def test_a_request_names_the_client_and_its_host_and_a_redirect_is_not_followed() -> None:
    moved = whole(b"", "Location: http://other.example/", status="302 Found")
    with answering(moved) as wire, open_client() as client, client.send("GET", f"{wire.url}/a b?q=\xe9&x=%2F") as got:
        assert (got.status, got.headers["location"]) == (302, "http://other.example/")
    [request] = wire.requests
    first, *lines = request.decode().split("\r\n")
    assert first == "GET /a%20b?q=%C3%A9&x=%2F HTTP/1.1"
    named = dict(line.split(": ", 1) for line in lines if line)
    assert named["User-Agent"].startswith("sluice-sn15/")
    assert named["Host"] == wire.url.removeprefix("http://")
    assert named["Accept-Encoding"] == "gzip"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (b"", Refusal.TRUNCATED),
        (b"SSH-2.0-OpenSSH\r\n", Refusal.TRUNCATED),
        (b"HTTP/2 200\r\n\r\n", Refusal.TRUNCATED),
        (b"HTTP/1.1 two hundred\r\n\r\n", Refusal.TRUNCATED),
        (b"\x16\x03\x01\x00\x05", Refusal.TRUNCATED),
        (HEAD + b"Content-Le", Refusal.TRUNCATED),
        (HEAD + b"Content-Length: 100\r\n\r\n" + BODY, Refusal.TRUNCATED),
        (HEAD + b"X-A: b\r\n" * 200 + b"\r\n", Refusal.TRUNCATED),
        (HEAD + b"X-A: " + b"b" * 70_000 + b"\r\n\r\n", Refusal.TOO_LARGE),
        (HEAD + (b"X-A: " + b"b" * 2_000 + b"\r\n") * 50 + b"\r\n", Refusal.TOO_LARGE),
        (endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), Refusal.TOO_LARGE),
        (CHUNKED + b"zz\r\n" + BODY, Refusal.TRUNCATED),
        (CHUNKED + b"ff\r\n" + BODY, Refusal.TRUNCATED),
        (CHUNKED + b"%x\r\n" % len(BODY) + BODY + b"\r\n", Refusal.TRUNCATED),
        (endless(CHUNKED + b"-1\r\n", b"x"), Refusal.TOO_LARGE),
        (endless(CHUNKED, b"1\r\nx\r\n"), Refusal.TOO_LARGE),
        (endless(CHUNKED + b"1\r\nx\r\n0\r\n", b"X-Trailer: a\r\n"), Refusal.TOO_LARGE),
        (endless(HEAD + b"\r\n", b"x"), Refusal.TOO_LARGE),
        (dripping(b"", b"", 0.05), Refusal.TIMEOUT),
        (dripping(HEAD + b"Content-Length: 100\r\n\r\n", b"", 0.05), Refusal.TIMEOUT),
        (dripping(HEAD + b"Content-Length: 10000\r\n\r\n", b"x", 0.05), Refusal.TRUNCATED),
        (dripping(HEAD, b"X-A: b\r\n", 0.05), Refusal.TRUNCATED),
    ],
    ids=range(22),
)
def test_what_is_no_answer_has_a_cause_soon_and_the_next_one_is_asked_anew(script: Script, reason: Refusal) -> None:
    with answering(script, whole(BODY)) as wire, open_client(timeout_seconds=0.3) as client:
        began = time.monotonic()
        with pytest.raises((NotAnswered, TakingFailed)) as failed:
            get(client, wire.url)
        assert failed.value.reason is reason
        assert time.monotonic() - began < 3.0  # ten times the wait for one read, the whole being four of them
        assert wire.url.rsplit(":", 1)[1] not in str(failed.value)
        assert get(client, wire.url) == BODY


@pytest.mark.parametrize(
    "script",
    [
        b"HTTP/1.0 200 OK\r\n\r\n" + BODY,
        b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\nConnection: keep-alive\r\n\r\n" % len(BODY) + BODY,
        HEAD + b"Connection: close\r\n\r\n" + BODY,
        HEAD
        + b"Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\n"
        + BODY[:4]
        + b"\r\n9\r\n"
        + BODY[4:]
        + b"\r\n0\r\nX-T: 1\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + whole(BODY),
        b"HTTP/1.1 103 Early Hints\r\nContent-Length: 1\r\n\r\n" + whole(BODY),
        HEAD + b"no field\r\ncontent-LENGTH : %d\r\n folded: 3\r\nContent-Length: 1\r\n\r\n" % len(BODY) + BODY,
        whole(gzip.compress(BODY), "Content-Encoding: gzip"),
        whole(gzip.compress(BODY), "Content-Type: application/gzip"),
        whole(BODY, "Content-Encoding: gzip"),
        whole(BODY, f"Content-Length: {len(BODY)}"),
    ],
    ids=range(11),
)
def test_each_way_to_send_a_body_gives_the_same_bytes(script: bytes) -> None:
    with answering(script) as wire, open_client(timeout_seconds=2.0) as client:
        assert [get(client, wire.url) for _ in range(3)] == [BODY] * 3


def test_a_connection_is_used_again_unless_its_body_was_left() -> None:
    with answering(whole(BODY)) as wire, open_client(timeout_seconds=2.0) as client:
        for _ in range(3):
            assert get(client, wire.url) == BODY
        assert wire.connections == 1
        with client.send("GET", wire.url):
            pass
        assert get(client, wire.url) == BODY
        assert wire.connections == 2


def test_a_connection_that_was_closed_or_speaks_unasked_is_not_used_again() -> None:
    def then_closes(peer: socket.socket) -> None:
        peer.sendall(whole(BODY))

    def goes_on(peer: socket.socket) -> None:
        peer.sendall(whole(BODY))
        time.sleep(0.05)
        peer.sendall(whole(b"[2]"))
        peer.recv(1)

    with answering(then_closes, goes_on, whole(BODY)) as wire, open_client(2.0) as client:
        for _ in range(3):
            assert get(client, wire.url) == BODY
            time.sleep(0.1)
        assert wire.connections == 3


def test_what_rests_is_bounded() -> None:
    with answering(whole(BODY)) as wire, open_client(timeout_seconds=5.0) as client:
        together = threading.Barrier(MAX_IDLE + 4)

        def ask() -> None:
            with client.send("GET", wire.url) as response:
                together.wait()
                take(response.pieces(SMALL), Caps())

        threads = [threading.Thread(target=ask) for _ in range(MAX_IDLE + 4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wire.connections == MAX_IDLE + 4
        assert len(client._idle) == MAX_IDLE


def test_nobody_in_a_private_network_is_asked_unless_expected() -> None:
    with answering(whole(BODY)) as wire, open_client(timeout_seconds=2.0) as client:
        for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]"):
            url = wire.url.replace("127.0.0.1", host)
            with pytest.raises(NotAnswered) as refused, client.send("GET", url, public_only=True):
                pass
            assert refused.value.reason in (Refusal.FORBIDDEN_HOST, Refusal.UNREACHABLE)
        assert wire.requests == []
        assert get(client, wire.url) == BODY
        with pytest.raises(NotAnswered), client.send("GET", wire.url, public_only=True):
            pass  # not even over the connection that rests


def test_a_certificate_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    authority, vouched = trustme.CA(), tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(vouched))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for answer in (b"", whole(BODY)):
                peer, _ = listener.accept()
                try:
                    with context.wrap_socket(peer, server_side=True) as secure:
                        secure.recv(65_536)
                        secure.sendall(answer)
                except OSError:
                    continue

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"https://localhost:{listener.getsockname()[1]}"
        with open_client(timeout_seconds=2.0) as client:
            with pytest.raises(NotAnswered) as refused:
                get(client, url)
            assert refused.value.reason is Refusal.UNREACHABLE
            client._tls_context().load_verify_locations(vouched)
            assert get(client, url) == BODY
        thread.join(5)
