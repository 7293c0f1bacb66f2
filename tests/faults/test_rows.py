"""Whatever stands in its rows, and whatever changes while they are read, a pass ends with what is released."""

import gzip
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from service.replay.faults import Fault
from service.replay.recorded import Archive, LegacyItem, Race
from service.source.oro import reader
from service.store.engine import reading
from service.store.models import LedgerItem
from service.store.models import Race as StoredRace
from tests.faults.conftest import EVER, Harvest
from tests.faults.released import exactly_released, harvested

LISTED = "^/v1/public/(races|suites|leaderboard|agent-versions|evaluation-runs)"
NUL = "a\0b"

Rewritten = Callable[[dict[str, Any]], None]


def objects_of(answer: Any) -> Iterator[dict[str, Any]]:
    """Every object in an answer, the outermost first."""
    if isinstance(answer, dict):
        yield answer
    for inner in answer.values() if isinstance(answer, dict) else answer if isinstance(answer, list) else ():
        yield from objects_of(inner)


def in_every(change: Rewritten, pattern: str = LISTED, times: int = EVER) -> Fault:
    """The fault that changes every object of the answers."""

    def rewritten(answer: Any) -> Any:
        for each in list(objects_of(answer)):
            change(each)
        return answer

    return Fault(pattern, times, rewrite=rewritten)


def setting(value: Any, *names: str, where: Callable[[dict[str, Any]], bool] = lambda _: True) -> Rewritten:
    """A change that writes one value into fields, where they are there."""

    def change(row: dict[str, Any]) -> None:
        if where(row):
            row.update(dict.fromkeys(names & row.keys(), value))

    return change


def is_race(row: dict[str, Any]) -> bool:
    return "race_started_at" in row


def is_run(row: dict[str, Any]) -> bool:
    return "claimed_at" in row


def is_result(row: dict[str, Any]) -> bool:
    return "validator_hotkey" in row and not is_run(row)


def naive(row: dict[str, Any]) -> None:
    for name, value in row.items():
        if isinstance(value, str) and value.endswith("+00:00"):
            row[name] = value.removesuffix("+00:00")


def doubled(answer: Any) -> Any:
    """The answer with every row of its lists twice."""
    if isinstance(answer, list):
        return [twice for each in answer for twice in (doubled(each), doubled(each))]
    return {name: doubled(value) for name, value in answer.items()} if isinstance(answer, dict) else answer


UNKNOWN_FOR_A_WHILE = {
    "race status": in_every(setting("RACE_PAUSED", "status", where=is_race)),
    "run status": in_every(setting("PONDERING", "status", where=is_run)),
    "execution kind": in_every(setting("holodeck", "execution_kind")),
    "phase": in_every(setting("OVERTIME", "phase")),
}
HARMLESS = {
    "problem status": in_every(setting("PONDERED", "status", where=is_result)),
    "outcome": in_every(setting("sideways", "verdict_status", "outcome", "failure_category")),
    "agent state and qualification type": in_every(setting("SIDEWAYS", "state", "qualification_type")),
    "naive timestamps": in_every(naive),
    "timestamps that are none": in_every(setting("yesterday", "claimed_at", "completed_at", "race_started_at")),
    "NUL bytes in names": in_every(setting(NUL, "agent_name", "validator_hotkey", "miner_hotkey", "category")),
    "numbers that are none": in_every(setting("many", "score", "race_number", "version_number", "rank")),
    "every row twice": Fault(LISTED, EVER, rewrite=doubled),
    "fields nobody knows": in_every(lambda row: row.update(novelty={"deep": [1, {"a": NUL}]})),
}


@pytest.mark.parametrize("fault", UNKNOWN_FOR_A_WHILE.values(), ids=UNKNOWN_FOR_A_WHILE.keys())
def test_words_nobody_knows_hold_back_what_they_speak_of_until_they_are_known(harvest: Harvest, fault: Fault) -> None:
    harvest.add(fault)
    harvest.attempt()
    released = exactly_released(harvest.archive)
    assert harvested(harvest.context).items() <= released.items()
    harvest.ends_well(days=True)


@pytest.mark.parametrize("fault", HARMLESS.values(), ids=HARMLESS.keys())
def test_odd_rows_that_stay_odd_hold_back_nothing(harvest: Harvest, fault: Fault) -> None:
    harvest.add(fault)
    harvest.attempt()
    assert harvested(harvest.context) == exactly_released(harvest.archive)
    harvest.ends_well(days=True)


def test_bytes_with_nul_are_kept_as_they_came(harvest: Harvest) -> None:
    run = next(run for run in harvest.archive.runs.values() if isinstance(run.items[0], LegacyItem))
    odd = gzip.compress(b'[{"think": "a\0b \\u0000 \xff", "score": NaN}]', mtime=0)
    harvest.archive.replace(replace(run, items=(replace(run.items[0], packed=odd), *run.items[1:])))
    harvest.attempt()
    assert harvested(harvest.context) == exactly_released(harvest.archive)


def legacy_race(archive: Archive) -> Race:
    return next(race for race in archive.races.values() if race.execution_kind != "envpack")


@pytest.mark.parametrize("word", ["CANCELLED", "RACE_CANCELLED"])
def test_a_race_that_is_cancelled_half_way(harvest: Harvest, word: str) -> None:
    race = legacy_race(harvest.archive)
    harvest.archive.races[race.race_id] = replace(race, status="RACE_RUNNING", completed_at=None)
    harvest.attempt()
    harvest.archive.races[race.race_id] = replace(race, status=word, completed_at=None)
    harvest.attempt()
    assert harvested(harvest.context) == exactly_released(harvest.archive)
    assert harvest.clean_pass(days=True) == exactly_released(harvest.archive)


def test_a_race_number_that_is_used_again_in_another_suite(harvest: Harvest) -> None:
    for race in list(harvest.archive.races.values()):
        harvest.archive.races[race.race_id] = replace(race, race_number=1)
    harvest.attempt()
    assert harvested(harvest.context) == exactly_released(harvest.archive)
    with reading(harvest.context.engine) as session:
        numbers = session.execute(select(StoredRace.race_number, func.count()).group_by(StoredRace.race_number))
        assert [tuple(row) for row in numbers] == [(1, len(harvest.archive.races))]


def test_pages_that_shift_while_they_are_read(harvest: Harvest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "PAGE_SIZE", 1)
    races = harvest.archive.races
    newest, *_, oldest = sorted(races.values(), key=lambda race: race.completed_at or race.created_at, reverse=True)
    assert newest.completed_at is not None

    def overtake() -> None:
        races[oldest.race_id] = replace(oldest, completed_at=newest.completed_at + timedelta(hours=1))

    # The oldest race moves to a page that has been read: this pass cannot see it, and the newest comes twice.
    harvest.add(Fault("/races/history$"), Fault("/races/history$", before=overtake))
    harvest.attempt()
    assert races[oldest.race_id].completed_at != oldest.completed_at
    harvest.ends_well()


def test_a_leaderboard_that_shrinks_while_it_is_read(harvest: Harvest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "PAGE_SIZE", 2)

    def shifted(answer: Any) -> Any:
        return {**answer, "entries": answer["entries"][1:], "total": answer["total"] - 1}

    harvest.add(Fault("/leaderboard$", EVER, every=2, rewrite=shifted))
    harvest.attempt()
    harvest.ends_well()


def test_an_agent_version_that_vanishes_and_comes_back(harvest: Harvest) -> None:
    gone = next(iter(harvest.archive.runs.values())).agent_version_id
    body = b'{"detail": "Agent version not found", "error_code": "AGENT_VERSION_NOT_FOUND"}'
    harvest.add(Fault(f"/agent-versions/{gone}/", EVER, status=404, body=body))
    harvest.attempt()
    own = {run.eval_run_id for run in harvest.archive.runs_of[gone]}
    released = exactly_released(harvest.archive)
    assert harvested(harvest.context) == {key: item for key, item in released.items() if key[0] not in own}
    harvest.ends_well(days=True)


def test_an_agent_version_that_vanishes_after_it_was_listed(harvest: Harvest) -> None:
    harvest.attempt()
    gone = next(iter(harvest.archive.runs.values())).agent_version_id
    body = b'{"detail": "Agent version not found", "error_code": "AGENT_VERSION_NOT_FOUND"}'
    harvest.add(Fault(f"/agent-versions/{gone}/", EVER, status=404, body=body))
    harvest.let_time_pass(days=True)
    harvest.attempt()
    assert harvested(harvest.context) == exactly_released(harvest.archive)
    harvest.ends_well(days=True)


def withheld(answer: Any) -> Any:
    """A run whose details are not released yet."""
    items = answer["items"] | {"detail_released": False}
    return answer | {"items": items | ({"items": []} if items["execution_kind"] == "envpack" else {})}


def test_details_that_are_released_later(harvest: Harvest) -> None:
    harvest.add(Fault("/evaluation-runs/", EVER, every=2, rewrite=withheld))
    harvest.attempt()
    before = harvested(harvest.context)
    released = exactly_released(harvest.archive)
    assert before.items() < released.items()
    harvest.ends_well()


def test_results_that_arrive_one_after_the_other(harvest: Harvest) -> None:
    def partly(answer: Any) -> Any:
        items = answer["items"]
        return answer | {"items": items | {"items": items["items"][:1], "persisted_item_count": 1}}

    harvest.add(Fault("/evaluation-runs/", EVER, every=2, rewrite=partly))
    harvest.attempt()
    harvest.ends_well()


def test_races_that_are_in_flight_when_they_are_asked_for_and_released_then(harvest: Harvest) -> None:
    harvest.walk()
    races = dict(harvest.archive.races)
    for race_id, race in races.items():
        harvest.archive.races[race_id] = replace(race, is_revealed=False)
    harvest.fetch()
    with reading(harvest.context.engine) as session:
        states = select(LedgerItem.state, LedgerItem.reason).where(LedgerItem.state != "fetched").distinct()
        assert {reason for _, reason in session.execute(states)} == {"race_in_flight", "feedback_absent", "no_object"}
    harvest.archive.races.update(races)
    assert harvest.clean_pass() == exactly_released(harvest.archive)
