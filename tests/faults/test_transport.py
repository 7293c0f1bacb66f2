"""Whatever the wire does, the source is asked again, and one clean pass ends with exactly the released items."""

import gzip
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from service.replay.faults import Fault
from service.source import refusals
from service.source.refusals import Refusal
from tests.faults.conftest import EVER, Harvest
from tests.faults.released import exactly_released, harvested
from workers.retries import MAX_ATTEMPTS

EVERYTHING = "^/"
LISTINGS = "^/v1/public/(races|suites|leaderboard|agent-versions|evaluation-runs)"
OBJECTS = "^/objects/"
GIVEN = "^/objects/|/feedback$"
"""What bytes come from: stored objects and feedback."""
EXPIRED = b'<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>'
BOMB = gzip.compress(bytes(4_000_000), mtime=0)
HTML = b"<!doctype html><html><title>Just a moment...</title></html>"
ELSEWHERE = {"Location": "http://evil.example/x"}


def test_a_harvest_that_nothing_disturbs_ends_with_exactly_the_released_items(harvest: Harvest) -> None:
    harvest.attempt()
    expected = exactly_released(harvest.archive)
    assert harvested(harvest.context) == expected
    assert len(expected) > 25
    assert {item.state for item in expected.values()} == {"fetched", "gone"}
    harvest.attempt()
    assert harvested(harvest.context) == expected


WIRE = {
    "errors on every third request": [Fault(EVERYTHING, EVER, every=3, status=503)],
    "a burst of errors": [Fault(EVERYTHING, 40, status=500)],
    "bad gateways with a page": [Fault(EVERYTHING, EVER, every=5, status=502, body=HTML)],
    "resets in the middle of a body": [Fault(EVERYTHING, EVER, every=3, keep_bytes=20, reset=True)],
    "resets before any of a body": [Fault(EVERYTHING, EVER, every=4, keep_bytes=0, reset=True)],
    "connections closed in the middle of a body": [Fault(EVERYTHING, EVER, every=3, keep_bytes=20, cut=True)],
    "gzip that ends early": [Fault(OBJECTS, EVER, every=2, keep_bytes=60)],
    "objects without content": [Fault(OBJECTS, EVER, every=2, keep_bytes=0)],
    "too long a length": [Fault(EVERYTHING, EVER, every=3, missing_bytes=7)],
    "too short a length": [Fault("^(?!.*/feedback$)", EVER, every=3, missing_bytes=-7)],
    "URLs that have expired": [Fault(OBJECTS, EVER, status=403, body=EXPIRED)],
    "URLs that expire now and then": [Fault(OBJECTS, EVER, every=3, status=403, body=EXPIRED)],
    "listings that lead to another host": [Fault(LISTINGS, EVER, every=3, status=302, headers=ELSEWHERE)],
    "HTML in the place of listings": [Fault(LISTINGS, EVER, every=3, status=200, body=HTML)],
    "HTML in the place of URLs": [Fault("/download-url$", EVER, every=2, status=200, body=HTML)],
    "listings that are no objects": [Fault(LISTINGS, EVER, every=3, status=200, body=b"[[]]")],
    "listings that nest without end": [Fault(LISTINGS, EVER, every=3, status=200, body=b"[" * 100_000)],
    "bombs in the place of listings": [Fault(LISTINGS, EVER, every=3, status=200, body=BOMB)],
    "undocumented statuses": [Fault(EVERYTHING, EVER, every=3, status=418)],
}


@pytest.mark.parametrize("faults", WIRE.values(), ids=WIRE.keys())
def test_faults_of_the_wire(harvest: Harvest, faults: list[Fault]) -> None:
    harvest.add(*faults)
    harvest.attempt()
    harvest.let_time_pass()
    harvest.faults.clear()
    harvest.walk()
    harvest.add(*faults)
    harvest.fetch()
    harvest.ends_well()


@pytest.mark.parametrize(
    "fault",
    [
        Fault("/feedback$", EVER, every=2, missing_bytes=-7),
        Fault("/feedback$", EVER, every=2, status=200, body=HTML),
        Fault("/objects/", EVER, every=2, status=200, body=HTML),
    ],
    ids=["too short a length", "HTML for feedback", "HTML for an object"],
)
def test_what_is_given_is_not_what_was_asked_for(harvest: Harvest, fault: Fault) -> None:
    harvest.walk()
    harvest.add(fault)
    harvest.fetch()
    harvest.ends_well()


def test_answers_that_drip(harvest: Harvest) -> None:
    with harvest.impatient(0.1) as hasty:
        hasty.add(Fault("/suites$", 1, drip_seconds=0.02))
        hasty.attempt()
        hasty.faults.clear()
        harvest.walk()
        hasty.add(Fault(GIVEN, 2, drip_seconds=0.02))
        hasty.fetch()
    harvest.ends_well()


def test_answers_that_never_come(harvest: Harvest) -> None:
    harvest.walk()
    harvest.add(Fault(EVERYTHING, 3, every=4, delay_seconds=0.3))
    with harvest.impatient(0.1) as hasty:
        hasty.attempt()
    harvest.ends_well()


@pytest.mark.parametrize("spelling", ["seconds", "date", "none", "nonsense"])
def test_storms_of_rate_limits(harvest: Harvest, spelling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = refusals._RULES[Refusal.RATE_LIMITED]
    monkeypatch.setitem(refusals._RULES, Refusal.RATE_LIMITED, rule._replace(delay=timedelta(seconds=0.02)))
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=1), usegmt=True)
    told = {"seconds": "1", "date": soon, "none": None, "nonsense": "when I say so"}[spelling]
    # A second is the shortest that can be told, so there are few of those.
    times = 2 if spelling == "seconds" else 60
    headers = {} if told is None else {"Retry-After": told}
    harvest.add(Fault(EVERYTHING, times, every=8 if spelling == "seconds" else 2, status=429, headers=headers))
    for _ in range(2):
        harvest.attempt()
        harvest.let_time_pass()
    harvest.ends_well()


IN_BETWEEN = {
    "bombs": Fault(GIVEN, EVER, every=3, status=200, body=BOMB),
    "gzip that is none": Fault(OBJECTS, EVER, every=3, status=200, body=b"\x1f\x8bnot gzip at all"),
    "objects that lead to another host": Fault(OBJECTS, EVER, every=3, status=302, headers=ELSEWHERE),
    "bytes without end": Fault(GIVEN, 2, status=200, body=b"x" * (8 * 1024 * 1024 + 1)),
    "bad requests": Fault("/download-url$|/feedback$", EVER, every=3, status=400, body=b"{}"),
}


@pytest.mark.parametrize("fault", IN_BETWEEN.values(), ids=IN_BETWEEN.keys())
def test_answers_that_whoever_stands_between_may_give(harvest: Harvest, fault: Fault) -> None:
    harvest.add(fault)
    for _ in range(MAX_ATTEMPTS - 1):
        harvest.attempt()
        harvest.let_time_pass()
    harvest.ends_well()


def test_such_answers_are_believed_in_the_end(harvest: Harvest) -> None:
    harvest.add(IN_BETWEEN["bombs"], Fault(GIVEN, EVER, status=200, body=BOMB))
    for _ in range(MAX_ATTEMPTS):
        harvest.attempt()
        harvest.let_time_pass()
    asked = len(harvest.faults.requests)
    harvest.fetch()
    assert len(harvest.faults.requests) == asked
    assert {item.state for item in harvested(harvest.context).values()} == {"gone"}
