"""Listings asked for again: only if they changed, by whatever the source named them with, in bounded memory."""

import threading

import pytest

from service.replay.faults import Fault
from service.replay.server import Replay
from service.source.http.budget import Unthrottled
from service.source.http.calls import Calls, SourceRefused, open_client
from service.source.http.keeping import KeptAnswers, Validators
from service.source.http.objects import Caps
from service.source.oro.source import OroSource
from tests.source.wire import Script, answering, whole

NOT_MODIFIED = whole(b"", status="304 Not Modified")


def listings(*scripts: Script, times: int) -> tuple[list[object], list[bytes]]:
    with answering(*scripts) as wire, open_client(timeout_seconds=2.0) as client:
        calls = Calls(wire.url, Unthrottled(), client, Caps(), 0.0, threading.Event())
        answers = [calls.listing("/suites", {"limit": 1}) for _ in range(times)]
        assert wire.connections == 1
        return answers, wire.requests


@pytest.mark.parametrize(
    ("header", "asked"),
    [
        ('ETag: "a-1"', b'If-None-Match: "a-1"'),
        ('ETag: W/"a"', b'If-None-Match: W/"a"'),
        ("Last-Modified: Tue, 01 Dec 2026 00:00:00 GMT", b"If-Modified-Since: Tue, 01 Dec 2026 00:00:00 GMT"),
    ],
)
def test_a_listing_that_did_not_change_is_not_sent_again(header: str, asked: bytes) -> None:
    answers, requests = listings(
        whole(b"[1]", header), NOT_MODIFIED, NOT_MODIFIED, whole(b"[2]"), whole(b"[3]"), times=5
    )
    assert answers == [[1], [1], [1], [2], [3]]
    assert [asked in request for request in requests] == [False, True, True, True, False]


@pytest.mark.parametrize("header", ['ETag: "a', 'ETag: "\xe9"', f'ETag: "{"a" * 300}"', "Last-Modified: <b>", "X: y"])
def test_a_name_that_is_none_is_not_sent_back(header: str) -> None:
    _, requests = listings(whole(b"[1]", header), times=2)
    assert not any(b"If-" in request for request in requests)


def test_nothing_changed_is_no_answer_to_who_holds_nothing() -> None:
    with pytest.raises(SourceRefused, match="unexpected"):
        listings(NOT_MODIFIED, times=1)


def test_a_listing_that_cannot_be_read_is_not_kept() -> None:
    with answering(whole(b"<html>", 'ETag: "a"'), whole(b"[1]")) as wire, open_client(timeout_seconds=2.0) as client:
        calls = Calls(wire.url, Unthrottled(), client, Caps(), 0.0, threading.Event())
        with pytest.raises(SourceRefused, match="unreadable_answer"):
            calls.listing("/suites")
        assert calls.listing("/suites") == [1]
        assert b"If-None-Match" not in wire.requests[1]


def test_what_was_used_longest_ago_goes_first() -> None:
    kept = KeptAnswers(most_bytes=100)
    tag = Validators('"t"')
    for name in ("a", "b", "c"):
        kept.keep(name, tag, name.encode() * 10)  # some twenty bytes each, packed
    assert kept.find("a") is not None
    assert kept._bytes == sum(len(one.zstd) for one in kept._kept.values())
    kept.keep("d", tag, bytes(range(70)))
    assert [name for name in "abcd" if kept.find(name)] == ["a", "d"]
    kept.keep("d", Validators(), b"nameless")
    kept.keep("e", tag, bytes(range(200)))  # more than all there is room for
    assert [name for name in "abcde" if kept.find(name)] == ["a"]
    assert kept._bytes == sum(len(one.zstd) for one in kept._kept.values())


def test_the_replay_server_names_its_listings(replay: Replay, source: OroSource) -> None:
    url = f"{replay.url}/v1/public/races/current"
    with open_client(timeout_seconds=2.0) as client:

        def ask(etag: str) -> tuple[int, str | None]:
            with client.send("GET", url, headers={"If-None-Match": etag}) as response:
                return response.status, response.headers["ETag"]

        status, etag = ask('"x"')
        assert (status, etag is not None) == (200, True)
        assert ask(str(etag)) == (304, etag)
        before = list(source.races())
        assert list(source.races()) == before
        replay.archive.races.clear()
        assert ask(str(etag))[0] == 200
        assert list(source.races()) == []
    replay.faults.add(Fault("/suites$", status=304))
    with pytest.raises(SourceRefused, match="unexpected"):
        source.suites()
