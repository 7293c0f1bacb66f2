"""A source that behaves badly: every fault ends as its own refusal or is waited out; nothing secret is said aloud."""

import gzip
import json
import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from service.domain.trajectory import ExecutionKind
from service.errors import SluiceError
from service.replay.faults import Fault
from service.replay.server import Replay
from service.source.answers import Fetched, FetchTarget, Refused
from service.source.http.budget import Unthrottled
from service.source.http.calls import Calls, No, SourceRefused, open_client
from service.source.http.objects import Caps
from service.source.oro.oddities import Oddity
from service.source.oro.source import OroSource
from service.source.refusals import Refusal
from tests.replay.recording import ENVPACK_SUITE, LEGACY_SUITE
from tests.source.conftest import all_items, target_of

OBJECTS = "^/objects/"
DOWNLOAD_URL = "download-url$"


def answering(pattern: str, content: object, times: int = 1) -> Fault:
    return Fault(pattern, times, status=200, body=json.dumps(content).encode())


def refused(source: OroSource, target: FetchTarget) -> Refusal:
    answer = source.fetch(target)
    assert isinstance(answer, Refused)
    return answer.reason


def test_a_rate_limit_refuses_a_fetch_until_the_time_it_names(
    replay: Replay, source: OroSource, target: FetchTarget
) -> None:
    replay.faults.add(Fault(DOWNLOAD_URL, status=429, headers={"Retry-After": "1"}))
    asked_at = datetime.now(UTC)
    answer = source.fetch(target)
    assert isinstance(answer, Refused)
    assert answer.reason is Refusal.RATE_LIMITED
    assert answer.retry_at is not None
    assert timedelta(seconds=1) <= answer.retry_at - asked_at < timedelta(seconds=5)
    began = time.monotonic()
    assert isinstance(source.fetch(target), Fetched)
    assert time.monotonic() - began > 0.5  # the budget was parked for the rest of that second


def test_an_api_in_maintenance_that_says_how_long_is_left_alone_so_long(
    replay: Replay, source: OroSource, target: FetchTarget
) -> None:
    replay.faults.add(Fault(DOWNLOAD_URL, status=503, headers={"Retry-After": "1"}))
    assert isinstance(source.fetch(target), Refused)
    began = time.monotonic()
    assert isinstance(source.fetch(target), Fetched)
    assert time.monotonic() - began > 0.5


@pytest.mark.parametrize("seconds", [0, 2])
def test_a_listing_waits_a_rate_limit_out_in_either_spelling(replay: Replay, source: OroSource, seconds: int) -> None:
    # An HTTP date has whole seconds, so two ahead means more than one from now.
    value = format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True) if seconds else "0.4"
    replay.faults.add(Fault("/suites$", status=429, headers={"Retry-After": value}))
    began = time.monotonic()
    assert len(source.suites()) == 2
    assert time.monotonic() - began > (0.8 if seconds else 0.3)


def test_a_listing_survives_passing_errors_and_gives_up_on_lasting_ones(replay: Replay, source: OroSource) -> None:
    replay.faults.add(Fault("/suites$", times=3, status=503))
    assert len(source.suites()) == 2
    replay.faults.add(Fault("/suites$", times=4, status=500))
    with pytest.raises(SourceRefused, match="upstream_error"):
        source.suites()
    replay.faults.add(Fault("/suites$", status=418))
    with pytest.raises(SourceRefused, match="unexpected"):
        source.suites()
    assert len(source.suites()) == 2


@pytest.mark.parametrize(
    ("fault", "reason", "terminal"),
    [
        (Fault(DOWNLOAD_URL, status=500), Refusal.UPSTREAM_ERROR, False),
        (Fault(OBJECTS, status=503), Refusal.UPSTREAM_ERROR, False),
        (Fault(OBJECTS, times=2, status=403), Refusal.EXPIRED_URL, False),
        (Fault(OBJECTS, status=404), Refusal.OBJECT_ABSENT, True),
        (Fault(OBJECTS, keep_bytes=60), Refusal.TRUNCATED, False),
        (Fault(OBJECTS, keep_bytes=60, cut=True), Refusal.TRUNCATED, False),
        (Fault(OBJECTS, keep_bytes=0), Refusal.TRUNCATED, False),
        (Fault(DOWNLOAD_URL, keep_bytes=10, cut=True), Refusal.TRUNCATED, False),
        (Fault(OBJECTS, status=200, body=b"\x1f\x8bnot gzip at all"), Refusal.BAD_GZIP, True),
        (Fault(OBJECTS, status=200, body=gzip.compress(bytes(4_000_000), mtime=0)), Refusal.GZIP_BOMB, True),
        (Fault(OBJECTS, status=200, body=b"x" * (8 * 1024 * 1024 + 1)), Refusal.TOO_LARGE, True),
        (Fault(OBJECTS, status=302, headers={"Location": "//[bad"}), Refusal.FORBIDDEN_HOST, True),
        (Fault(OBJECTS, delay_seconds=3.0), Refusal.TIMEOUT, False),
        (Fault(DOWNLOAD_URL, status=200, body=b"<html>"), Refusal.UNREADABLE_ANSWER, False),
        (Fault(DOWNLOAD_URL, status=200, body=b"[]"), Refusal.UNREADABLE_ANSWER, False),
        (Fault(DOWNLOAD_URL, status=404, body=b"gone"), Refusal.UNEXPECTED, False),
        (Fault(OBJECTS, status=302, headers={"Location": "http://evil.example/x"}), Refusal.FORBIDDEN_HOST, True),
        (Fault(OBJECTS, status=302, headers={"Location": "http://127.0.0.1:1/x"}), Refusal.FORBIDDEN_HOST, True),
    ],
    ids=lambda value: value.value if isinstance(value, Refusal) else None,
)
def test_each_fault_of_a_fetch_has_its_name(
    replay: Replay, source: OroSource, target: FetchTarget, fault: Fault, reason: Refusal, terminal: bool
) -> None:
    replay.faults.add(fault)
    answer = source.fetch(target)
    assert isinstance(answer, Refused)
    assert (answer.reason, answer.terminal) == (reason, terminal)
    assert isinstance(source.fetch(target), Fetched)


def test_an_expired_url_is_asked_for_anew(replay: Replay, source: OroSource, target: FetchTarget) -> None:
    replay.faults.add(Fault(OBJECTS, status=403, body=b"<Error><Code>AccessDenied</Code></Error>"))
    replay.faults.requests.clear()
    assert isinstance(source.fetch(target), Fetched)
    assert [path.rsplit("/", 1)[-1] for path in replay.faults.requests].count("download-url") == 2


def test_a_redirect_on_the_same_host_is_followed(replay: Replay, source: OroSource, target: FetchTarget) -> None:
    replay.faults.add(Fault(OBJECTS, status=302, headers={"Location": "/health"}))
    answer = source.fetch(target)
    assert isinstance(answer, Fetched)
    assert answer.payload == b'{"status":"ok"}'


def test_plain_json_and_nul_bytes_pass_as_they_are(replay: Replay, source: OroSource, target: FetchTarget) -> None:
    body = b'[{"think": "a\0b \\u0000", "score": NaN}]'
    replay.faults.add(Fault(OBJECTS, status=200, body=body))
    assert source.fetch(target) == Fetched(body)


def test_hosts_that_are_not_on_the_list_are_never_asked(replay: Replay, source: OroSource, target: FetchTarget) -> None:
    for url in (
        "http://evil.example/o",
        "file:///etc/passwd",
        "http://x@127.0.0.1/o",
        "http://[",
        "https://amazonaws.com.evil.example/",
    ):
        replay.faults.add(answering(DOWNLOAD_URL, {"download_url": url}))
        assert refused(source, target) is Refusal.FORBIDDEN_HOST


@pytest.mark.parametrize("host", ["a" * 64, "\ud800", "xn--\u2028", "a..b"])
def test_a_host_that_cannot_be_asked_is_refused_and_never_raised(replay: Replay, host: str) -> None:
    with open_client(timeout_seconds=2.0) as client:
        calls = Calls(replay.url, Unthrottled(), client, Caps(), 0.0, threading.Event())
        assert calls.follow(f"https://{host}.example/o") == No(Refusal.FORBIDDEN_HOST)


def test_an_id_that_no_path_can_hold_is_refused_and_never_raised(source: OroSource, target: FetchTarget) -> None:
    for kind in ExecutionKind:
        answer = source.fetch(replace(target, kind=kind, problem_id="\ud800", episode_result_id="\ud800"))
        assert isinstance(answer, Refused)


def test_a_stop_ends_the_wait_for_a_listing_and_lets_no_fetch_begin(replay: Replay, target: FetchTarget) -> None:
    stopping = threading.Event()
    with open_client(timeout_seconds=2.0) as client:
        source = OroSource(replay.url, Unthrottled(stopping), client, backoff_seconds=60.0, stopping=stopping)
        replay.faults.add(Fault("/suites$", status=503))
        threading.Timer(0.3, stopping.set).start()
        began = time.monotonic()
        with pytest.raises(SluiceError, match="STOPPING"):
            source.suites()
        assert time.monotonic() - began < 5
        replay.faults.requests.clear()
        with pytest.raises(SluiceError, match="STOPPING"):
            source.fetch(target)
        assert replay.faults.requests == []


def test_nothing_of_a_presigned_url_is_logged(
    replay: Replay, source: OroSource, target: FetchTarget, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        assert isinstance(source.fetch(target), Fetched)
        for fault in (Fault(OBJECTS, keep_bytes=9, cut=True), Fault(OBJECTS, times=2, status=403)):
            replay.faults.add(fault)
            assert "X-Amz" not in repr(source.fetch(target))
    own = [record.getMessage() for record in caplog.records if not record.name.startswith("uvicorn")]
    assert not [message for message in own if "X-Amz" in message or "HTTP Request" in message]


def suite_row(suite_id: int, **changes: object) -> Mapping[str, object]:
    return {"suite_id": suite_id, "suite_version": 1, "is_active": True} | changes


def test_what_is_new_is_kept_counted_and_never_fatal(replay: Replay, source: OroSource) -> None:
    [run] = [run for run in all_runs(source) if run.phase == "RACE" and run.suite_id == ENVPACK_SUITE]
    row = dict(run.raw) | {"status": "ASCENDED", "mood": "fine", "completed_at": "2026-06-04T10:00:00"}
    dreamt, unsure = {"eval_run_id": "dreamt", "suite_id": 77}, {"eval_run_id": "unsure", "is_included": "yes"}
    rows = [row, row | dreamt, {"eval_run_id": None}, "not a row", row | unsure]
    replay.faults.add(answering("/runs$", rows))
    suites = [suite_row(ENVPACK_SUITE, execution_kind="envpack"), suite_row(77, execution_kind="dream")]
    replay.faults.add(answering("/suites$", suites))
    listed = source.runs(run.agent_version_id)
    assert [(one.status, one.is_included) for one in listed] == [("ASCENDED", True), ("ASCENDED", False)]
    assert listed[0].raw["mood"] == "fine"
    assert listed[0].completed_at == datetime(2026, 6, 4, 10, tzinfo=UTC)
    assert source.oddities.counts() == {
        Oddity.UNKNOWN_STATUS: 2,
        Oddity.UNKNOWN_FIELD: 3,
        Oddity.UNKNOWN_EXECUTION_KIND: 2,  # the suite itself, and the run in it
        Oddity.MALFORMED_ROW: 2,
    }


def all_runs(source: OroSource) -> list:
    return [run for agent in source.agents() for run in source.runs(agent.agent_version_id)]


def test_nul_and_nan_in_a_listing_become_harmless(replay: Replay, source: OroSource) -> None:
    body = b'{"race": null, "qualifiers": [], "x": NaN}'
    replay.faults.add(Fault("/races/current$", status=200, body=body))
    assert len(list(source.races())) == 2
    body = b'{"problems": [{"problem_id": "p", "metadata": {"query": "a\\u0000b\\ud800"}}]}'
    replay.faults.add(Fault("/suites/4/problems$", status=200, body=body))
    [problem] = [problem for problem in source.problems() if problem.suite_id == LEGACY_SUITE]
    assert problem.query == "a\ufffdb?"


def test_a_listing_that_ignores_its_offset_ends(replay: Replay, source: OroSource) -> None:
    rows = [{"race_id": f"r{number}"} for number in range(3)]
    replay.faults.add(answering("/races/history$", {"total": 10**9, "races": rows}, times=50))
    replay.faults.add(answering("/races/r[0-9]$", {"race": None}, times=50))
    assert len(list(source.races())) == 1
    asked = [path.rsplit("/", 1)[-1] for path in replay.faults.requests]
    assert asked == ["current", "history", "r0", "r1", "r2", "history"]


def test_a_listing_of_ever_new_rows_ends(replay: Replay, source: OroSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.source.oro.reader.MAX_PAGES", 3)
    for number in range(9):
        page = {"total": 10**9, "races": [{"race_id": f"r{number}"}]}
        replay.faults.add(answering("/races/history$", page))
    replay.faults.add(answering("/races/r[0-9]$", {"race": None}, times=50))
    assert len(list(source.races())) == 1
    assert [path.rsplit("/", 1)[-1] for path in replay.faults.requests].count("history") == 3
    assert source.oddities.counts() == {Oddity.ENDLESS_LISTING: 1}


def test_a_repeated_row_counts_once(replay: Replay, source: OroSource) -> None:
    [run] = [run for run in all_runs(source) if run.phase == "RACE" and run.suite_id == ENVPACK_SUITE]
    other = dict(run.raw) | {"eval_run_id": "other"}
    replay.faults.add(answering("/runs$", [run.raw, other, dict(run.raw) | {"status": "FAILED"}]))
    assert [(one.eval_run_id, one.status) for one in source.runs(run.agent_version_id)] == [
        (run.eval_run_id, "SUCCESS"),
        ("other", "SUCCESS"),
    ]
    episode = {"item_id": "TF8-1", "status": "completed"}
    items = {"expected_item_count": 2, "persisted_item_count": 2, "items": [episode, episode]}
    replay.faults.add(answering("/evaluation-runs/", {"items": items}))
    listed = source.items(run)
    assert len(listed.items) == 1
    assert not listed.complete, "one of two items is still to come, however often the other is there"
    problem = {"problem_id": "p", "metadata": {}}
    replay.faults.add(answering("/suites/4/problems$", {"problems": [problem, problem]}))
    assert [one.problem_id for one in source.problems() if one.suite_id == LEGACY_SUITE] == ["p"]
    assert source.oddities.counts() == {Oddity.DUPLICATE_ROW: 3}


def test_a_repeated_problem_of_an_agent_counts_once(replay: Replay, source: OroSource) -> None:
    run = next(run for run in all_runs(source) if run.kind is ExecutionKind.LEGACY and run.phase == "QUALIFYING")
    result = {"eval_run_id": run.eval_run_id, "status": "SUCCESS", "score": 1.0}
    entry = {"problem_id": "p", "category": "Product", "validator_results": [result]}
    again = entry | {"validator_results": [result | {"score": 0.0}]}
    replay.faults.add(answering("/agent-versions/[^/]+/problems$", {"problems": [entry, again]}))
    assert [item.judgement["score"] for item in source.items(run).items] == [1.0]
    assert source.oddities.counts() == {Oddity.DUPLICATE_ROW: 1}


def test_a_race_or_qualifier_listed_again_counts_once(replay: Replay, source: OroSource) -> None:
    qualifier = {"agent_version_id": "a"}
    race = {"race": {"race_id": "r", "status": "RACE_COMPLETE"}, "qualifiers": [qualifier, qualifier]}
    replay.faults.add(answering("/races/current$", race))
    replay.faults.add(answering("/races/history$", {"total": 1, "races": [{"race_id": "alias"}]}))
    replay.faults.add(answering("/races/alias$", race))
    [listed] = source.races()
    assert [agent.agent_version_id for agent in listed.agents] == ["a"]
    assert source.oddities.counts() == {Oddity.DUPLICATE_ROW: 3}


def test_a_run_of_another_agent_version_is_left_out(replay: Replay, source: OroSource) -> None:
    run = all_runs(source)[0]
    replay.faults.add(answering("/runs$", [run.raw, dict(run.raw) | {"eval_run_id": "r", "agent_version_id": "x"}]))
    assert [one.eval_run_id for one in source.runs(run.agent_version_id)] == [run.eval_run_id]
    assert source.oddities.counts() == {Oddity.MALFORMED_ROW: 1}


@pytest.mark.parametrize(
    "fault",
    [
        Fault("/leaderboard$", status=404),
        Fault("/leaderboard$", status=404, body=b'{"error_code": "SUITE_NOT_FOUND"}'),
        Fault("/leaderboard$", status=200, body=b"<html>"),
        Fault("/leaderboard$", status=200, body=b"null"),
    ],
)
def test_one_leaderboard_that_cannot_be_read_hides_no_other(replay: Replay, source: OroSource, fault: Fault) -> None:
    everyone = {agent.agent_version_id for agent in source.agents()}
    replay.faults.add(fault)
    others = {agent.agent_version_id for agent in source.agents()}
    assert others < everyone
    assert others
    assert source.oddities.counts() == {Oddity.DEAD_LINK: 1}


def test_a_source_that_is_away_is_no_unreadable_leaderboard(replay: Replay, source: OroSource) -> None:
    source.suites()
    replay.faults.add(Fault("/leaderboard$", times=4, status=503))
    with pytest.raises(SourceRefused, match="upstream_error"):
        list(source.agents())


def test_a_name_that_no_url_can_hold_was_the_wrong_question(source: OroSource, target: FetchTarget) -> None:
    too_long = replace(target, kind=ExecutionKind.ENVPACK, episode_result_id="x" * 100_000)
    assert refused(source, too_long) is Refusal.BAD_REQUEST


def test_a_presigned_url_may_be_longer_than_an_id(replay: Replay, source: OroSource, target: FetchTarget) -> None:
    replay.faults.add(answering(DOWNLOAD_URL, {"download_url": f"{replay.url}/health?X-Amz-Signature={'a' * 2000}"}))
    given = source.fetch(target)
    assert isinstance(given, Fetched)
    assert given.payload == b'{"status":"ok"}'


def test_a_total_that_lies_does_not_loop_for_ever(replay: Replay, source: OroSource) -> None:
    replay.faults.add(answering("/races/history$", {"total": 10**9, "races": []}))
    assert len(list(source.races())) == 1


def test_a_dead_link_ends_no_walk(replay: Replay, source: OroSource) -> None:
    gone = b'{"detail": "", "error_code": "RACE_NOT_FOUND"}'
    replay.faults.add(Fault("/races/[0-9a-f-]{36}$", status=404, body=gone))
    replay.faults.add(Fault("/suites/9/problems$", status=404, body=gone.replace(b"RACE", b"SUITE")))
    assert len(list(source.races())) == 2  # the one under way, and one of two that are over
    assert {problem.suite_id for problem in source.problems()} == {LEGACY_SUITE}
    assert source.oddities.counts() == {Oddity.DEAD_LINK: 2}


def test_gated_feedback_is_asked_for_again_later(replay: Replay, source: OroSource) -> None:
    episode = next(item for item in all_items(source) if item.episode_result_id)
    replay.faults.add(Fault("/feedback$", status=404, body=b'{"detail": "", "error_code": "ARTIFACT_NOT_FOUND"}'))
    answer = source.fetch(target_of(episode))
    assert isinstance(answer, Refused)
    assert (answer.reason, answer.terminal) == (Refusal.FEEDBACK_ABSENT, False)
