"""The small pure parts: the table of refusals is total, headers and hostile JSON read as they should."""

import contextlib
import json
from datetime import UTC, datetime, timedelta

import attrs
import msgspec
import orjson
import oro_sdk.models
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.trajectory import ExecutionKind, Judgement
from service.source.http.calls import retry_after_seconds
from service.source.http.decoding import MAX_KEY_BYTES, Malformed, Row, decode
from service.source.oro import rows
from service.source.oro.known_fields import ID_FIELDS, KNOWN_FIELDS
from service.source.oro.listing import RaceListing, RunListing
from service.source.refusals import PASSING, Refusal, refusal_of

NOW = datetime(2026, 6, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize("refusal", Refusal)
def test_every_refusal_is_terminal_or_has_a_delay(refusal: Refusal) -> None:
    assert refusal.terminal == (refusal.delay == timedelta(0))


def test_what_a_refusal_says_something_about() -> None:
    embargoes = {Refusal.RACE_IN_FLIGHT, Refusal.NOT_RELEASED, Refusal.FEEDBACK_ABSENT}
    away = {Refusal.RATE_LIMITED, Refusal.UNREACHABLE, Refusal.TIMEOUT, Refusal.UPSTREAM_ERROR}
    assert {refusal for refusal in Refusal if refusal.is_embargo} == embargoes
    assert {refusal for refusal in Refusal if refusal.is_about_source} == away
    assert away < PASSING
    assert not [refusal for refusal in embargoes | away if refusal.terminal]


@given(st.integers(300, 599), st.one_of(st.none(), st.text(), st.dictionaries(st.text(), st.integers())))
def test_every_status_has_a_refusal(status: int, body: object) -> None:
    assert isinstance(refusal_of(status, body), Refusal)


def test_a_typed_code_says_more_than_its_status() -> None:
    assert refusal_of(404, {"error_code": "ARTIFACT_NOT_RELEASED"}) is Refusal.NOT_RELEASED
    assert refusal_of(403, {"error_code": "RACE_IN_FLIGHT"}) is Refusal.RACE_IN_FLIGHT
    assert refusal_of(404, {"error_code": ["odd"]}) is Refusal.UNEXPECTED
    assert refusal_of(503, {"error_code": "ARTIFACT_NOT_FOUND"}) is Refusal.UPSTREAM_ERROR


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("soon", None),
        ("nan", None),
        ("30", 30.0),
        ("-5", 0.0),
        ("inf", 3600.0),
        ("86400", 3600.0),
        ("Mon, 01 Jun 2026 12:01:30 GMT", 90.0),
        ("Mon, 01 Jun 2026 11:00:00 GMT", 0.0),
        (f"Mon, 01 Jun {'9' * 30} 11:00:00 GMT", None),
        (f"Mon, 01 Jun 2026 11:00:00 +{'9' * 20}", None),
    ],
)
def test_retry_after_in_both_forms(value: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(value, NOW) == seconds


@pytest.mark.parametrize("shape", KNOWN_FIELDS)
def test_known_fields_are_those_of_the_sdk(shape: str) -> None:
    fields = {field.name for field in attrs.fields(getattr(oro_sdk.models, shape))}
    assert KNOWN_FIELDS[shape] == fields - {"additional_properties"}
    assert ID_FIELDS.get(shape) in fields | {None}


def run_with(**fields: object) -> RunListing:
    row = Row(eval_run_id="r", agent_version_id="a", suite_id=3, status="SUCCESS", is_included=True) | fields
    return rows.run(Row(row), ExecutionKind.LEGACY)


def test_which_runs_count() -> None:
    assert run_with().counts
    assert not run_with(status="FAILED").counts
    assert not run_with(is_included=False).counts
    assert not run_with(invalidated_at="2026-06-01T00:00:00Z").counts


@pytest.mark.parametrize("status", [*sorted(rows.RUN_STATUSES), "ASCENDED"])
def test_which_runs_are_over(status: str) -> None:
    assert run_with(status=status).is_over == (status not in {"CLAIMED", "RUNNING", "ASCENDED"})


@pytest.mark.parametrize("status", [*sorted(rows.RACE_STATUSES), "ASCENDED"])
def test_which_races_are_complete(status: str) -> None:
    listed: RaceListing = rows.race(Row(race_id="r", status=status), ())
    assert listed.is_complete == (status == "RACE_COMPLETE")


@pytest.mark.parametrize(
    ("reward", "products"),
    [({"a": 1}, [{"a": 1}]), ([{"a": 1}, "x", {"b": 2}], [{"a": 1}, {"b": 2}]), (None, None), ([], None), ("x", None)],
)
def test_gold_is_a_list_of_products_however_it_is_nested(reward: object, products: object) -> None:
    suite = rows.suite(Row(suite_id=3))
    assert rows.problem(Row(problem_id="p", metadata={"reward": reward}), suite).reward == products


@pytest.mark.parametrize(
    ("expected", "persisted", "given", "whole"),
    [
        (2, 2, 2, True),
        (2, 1, 1, False),  # the validator has not sent one yet
        (2, 2, 1, False),  # it has, and the API does not list it
        (2, 1, 2, False),
        (0, 0, 0, True),  # the API says itself that there is nothing
        (None, 0, 0, False),
        (None, None, 0, False),
        (None, 2, 2, True),
        (None, 2, 1, False),
        (None, None, 1, True),
    ],
)
def test_when_all_items_of_a_run_are_given(
    expected: int | None, persisted: int | None, given: int, whole: bool
) -> None:
    details = Row(expected_item_count=expected, persisted_item_count=persisted)
    assert rows.all_given(details, given) is whole


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_are_malformed(body: bytes) -> None:
    with contextlib.suppress(Malformed):
        decode(body)


def test_what_a_database_cannot_hold_is_replaced() -> None:
    assert decode(b'{"a\\u0000": ["\\ud800", NaN, Infinity, 1.5]}') == {"a\ufffd": ["?", None, None, 1.5]}


@pytest.mark.parametrize("nul", [b"", b"\\u0000"])
def test_integers_of_any_length_become_what_can_be_written_again(nul: bytes) -> None:
    body = b'{"a": "%s", "n": [%s]}' % (nul, b", ".join(str(value).encode() for value in INTEGERS))
    numbers = decode(body)["n"]
    assert numbers == [5, -(2**63), 2**64 - 1, float(2**64), float(-(2**63) - 1), 1e30, None, None]
    assert orjson.loads(orjson.dumps(numbers)) == numbers


INTEGERS = (5, -(2**63), 2**64 - 1, 2**64, -(2**63) - 1, 10**30, 10**400, "9" * 5000)
"""The last has more digits than Python turns into an integer; it and the one before are beyond any float."""


def test_a_number_beyond_any_float_is_absent() -> None:
    assert Row(score=10**400).number("score") is None
    assert Row(score=10**30).number("score") == 1e30


@pytest.mark.parametrize("field", ["version_number", "race_number", "suite_id"])
def test_a_count_that_no_column_holds_is_absent(field: str) -> None:
    fits, exceeds = Row({field: 2**31 - 1}), Row({field: 2**31})
    assert (fits.count(field), exceeds.count(field)) == (2**31 - 1, None)


def test_an_id_too_long_to_be_indexed_is_malformed() -> None:
    fits, exceeds = "ü" * (MAX_KEY_BYTES // 2), "ü" * (MAX_KEY_BYTES // 2) + "x"
    suite = rows.suite(Row(suite_id=3, environment={"catalog_epoch": "w" * MAX_KEY_BYTES}))
    assert rows.agent(Row(agent_version_id=fits)).agent_version_id == fits
    for read in (
        lambda: rows.agent(Row(agent_version_id=exceeds)),
        lambda: rows.agent(Row(agent_version_id="a", miner_hotkey=exceeds)),
        lambda: rows.race(Row(race_id=exceeds, status="RACE_COMPLETE"), ()),
        lambda: run_with(eval_run_id=exceeds),
        lambda: run_with(race_id=exceeds),
        lambda: rows.problem(Row(problem_id=exceeds), suite),
        lambda: rows.task(Row(task_id="t"), suite),  # it fits alone, but not behind the name of its world
        lambda: rows.episode_item(Row(item_id="t"), run_with(), "w" * MAX_KEY_BYTES, released=True),
        lambda: rows.episode_item(Row(item_id="t", episode_result_id=exceeds), run_with(), "w", released=True),
        lambda: rows.legacy_item(Row(), Row(problem_id=exceeds), run_with(), released=True),
    ):
        with pytest.raises(Malformed, match="too long"):
            read()


def test_a_long_name_is_cut() -> None:
    item = rows.legacy_item(Row(status="S" * 9000), Row(problem_id="p", category="C" * 9000), run_with(), released=True)
    assert (item.judgement["status"], item.category) == ("S" * 200, "c" * 200)
    assert rows.agent(Row(agent_version_id="a", agent_name="n" * 9000)).agent_name == "n" * 200


def judged(components: object) -> Judgement:
    result = Row(score_components=components)
    item = rows.legacy_item(result, Row(problem_id="p"), run_with(), released=True)
    return msgspec.convert(item.judgement, Judgement)


def test_components_are_neither_deep_nor_large() -> None:
    deep: object = {}
    for level in range(90, 0, -1):
        deep = {"level": level, "below": deep if level % 2 else [deep]}
    kept = json.dumps(judged(deep).components)
    # 32 objects and lists in all, half as many lists as objects: 21 or 22 objects.
    assert kept.count("{") + kept.count("[") == 32
    assert judged({"a": {"b": [1.5]}}).components == {"a": {"b": [1.5]}}
    assert judged({"a": "x" * 70_000}).components == {}


@pytest.mark.parametrize("depth", [101, 5000, 200_000])
def test_deep_nesting_is_malformed(depth: int) -> None:
    with pytest.raises(Malformed):
        decode(b"[" * depth + b"]" * depth)


@given(st.text() | st.from_regex(r"\w{3}, \d+ \w{3} \d+ \d+:\d+:\d+ [+-]\d+", fullmatch=True))
def test_no_retry_after_is_too_odd(value: str) -> None:
    seconds = retry_after_seconds(value, NOW)
    assert seconds is None or 0.0 <= seconds <= 3600.0


def test_a_moment_outside_the_calendar_is_absent() -> None:
    row = Row(early="0001-01-01T00:00:00+23:59", late="9999-12-31T23:59:59-23:59", fine="2026-06-01T14:00:00+02:00")
    assert (row.moment("early"), row.moment("late"), row.moment("fine")) == (None, None, NOW)


def test_fields_of_the_wrong_type_are_absent() -> None:
    row = Row(text=5, number="5", flag=1, count=True, moment="yesterday", rows={}, row=[], big=2**70)
    assert (row.text("text"), row.number("number"), row.count("count"), row.moment("moment")) == (None,) * 4
    assert (row.rows("rows"), row.row("row"), row.count("big")) == ([], {}, None)
    assert row.flag("flag", default=True)
    with pytest.raises(Malformed):
        row.needed("text")
