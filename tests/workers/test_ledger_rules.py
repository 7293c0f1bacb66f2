"""Rules of the ledger over a source that withholds, takes back and calls off: what is asked for, and what rests."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, update

from service.replay.archive import read_archive
from service.replay.faults import Fault, Faults
from service.replay.recorded import Race, Run
from service.replay.server import Replay, replaying
from service.source.answers import FetchTarget
from service.store.corpus import tombstones, trajectories
from service.store.engine import reading, transaction
from service.store.harvest import ledger, listings, relisting, rereading, resting
from service.store.models import EvaluationRun, Evidence, LedgerItem, Tombstone, Trajectory
from tests.replay.recording import write_recording
from tests.workers import late
from workers import subscribe
from workers.context import Context
from workers.retries import EMBARGO_WAITS
from workers.stages import ingest
from workers.subscribe import walk

NEARLY = timedelta(seconds=30)
"""The tests take less time than this."""


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[Replay]:
    """Three small races that are complete, and no qualifying runs: two legacy agents each in two, an envpack agent."""
    archive = read_archive(write_recording(tmp_path / "recording"))
    for run in [run for run in archive.runs.values() if run.race_id is None]:
        archive.forget(run)
        archive.runs_of[run.agent_version_id].remove(archive.runs.pop(run.eval_run_id))
    for race_id, race in archive.races.items():
        archive.races[race_id] = replace(race, status="RACE_COMPLETE", completed_at=race.started_at)
    with replaying(archive, faults=Faults()) as server:
        yield server


def a_race(replay: Replay, kind: str) -> Race:
    return next(race for race in replay.archive.races.values() if race.execution_kind == kind)


def a_run(replay: Replay, kind: str = "legacy_shoppingbench") -> Run:
    return next(run for run in replay.archive.runs.values() if run.execution_kind == kind)


def states(context: Context, *eval_run_ids: str) -> Counter[tuple[str, str | None]]:
    """Items by state and reason, of some runs."""
    statement = select(LedgerItem.state, LedgerItem.reason).where(LedgerItem.eval_run_id.in_(eval_run_ids))
    with reading(context.engine) as session:
        return Counter((state.value, reason) for state, reason in session.execute(statement))


def waits(context: Context, eval_run_id: str) -> set[timedelta]:
    """How long the open items of a run still wait, in whole minutes."""
    statement = select(LedgerItem.next_try_at).where(
        LedgerItem.eval_run_id == eval_run_id, LedgerItem.state.in_(ledger.OPEN_STATES)
    )
    with reading(context.engine) as session:
        return {round_up(at - context.now()) for at in session.scalars(statement)}


def round_up(wait: timedelta) -> timedelta:
    return timedelta(minutes=round((wait + NEARLY / 2) / timedelta(minutes=1)))


def runs_of(replay: Replay, race: Race) -> list[str]:
    return [run.eval_run_id for run in replay.archive.runs.values() if run.race_id == race.race_id]


def let_time_pass(context: Context) -> None:
    """Let every wait end."""
    with transaction(context.engine) as session:
        session.execute(update(LedgerItem).values(next_try_at=func.now(), claimed_by=None))
        session.execute(
            update(EvaluationRun).where(EvaluationRun.next_listing_at.is_not(None)).values(next_listing_at=func.now())
        )


def listed(replay: Replay) -> list[str]:
    """Ids of the runs whose items were asked for since the last look."""
    found = [path.split("/")[-1] for path in replay.faults.requests if "/evaluation-runs/" in path]
    replay.faults.requests.clear()
    return found


def test_a_run_that_is_withheld_is_asked_about_less_and_less_often(context: Context, replay: Replay) -> None:
    race = a_race(replay, "envpack")
    runs = runs_of(replay, race)
    replay.archive.races[race.race_id] = replace(race, is_revealed=False)
    walk(context)
    assert set(runs) <= set(listed(replay))
    for wait in (*EMBARGO_WAITS, EMBARGO_WAITS[-1]):
        with reading(context.engine) as session:
            ends = session.scalars(select(EvaluationRun.next_listing_at).where(EvaluationRun.eval_run_id.in_(runs)))
            assert {round_up(at - context.now()) for at in ends} == {wait}
        walk(context)
        assert listed(replay) == [], "the wait has not ended"
        let_time_pass(context)
        walk(context)
        assert sorted(listed(replay)) == sorted(runs)
    replay.archive.races[race.race_id] = race
    let_time_pass(context)
    walk(context)
    items = sum(len(replay.archive.runs[name].items) for name in runs)
    assert states(context, *runs) == {("expected", None): items}


def test_one_refusal_of_a_race_in_flight_puts_its_run_off_for_longer_each_time(
    context: Context, replay: Replay
) -> None:
    run = a_run(replay)
    walk(context)
    race = replay.archive.races[run.race_id]
    replay.archive.races[race.race_id] = replace(race, is_revealed=False)
    for wait in (*EMBARGO_WAITS, EMBARGO_WAITS[-1]):
        with reading(context.engine) as session:
            ids = session.scalars(select(LedgerItem.ledger_id).where(LedgerItem.eval_run_id == run.eval_run_id)).all()
        replay.faults.requests.clear()
        ingest.run(ids, context, "message")
        assert len(replay.faults.requests) == 1
        assert states(context, run.eval_run_id) == {("embargoed", "race_in_flight"): len(run.items)}
        assert waits(context, run.eval_run_id) == {wait}
        let_time_pass(context)
    replay.archive.races[race.race_id] = race
    late.fetch(context)
    assert set(states(context, run.eval_run_id)) <= {("fetched", None), ("gone", "no_object")}


def test_what_each_typed_404_leads_to(context: Context, replay: Replay) -> None:
    walk(context)
    for code, state in {
        "ARTIFACT_NOT_FOUND": "gone",
        "EVAL_RUN_NOT_FOUND": "gone",
        "AGENT_VERSION_NOT_FOUND": "gone",
        "SUITE_NOT_FOUND": "gone",
        "ARTIFACT_NOT_RELEASED": "embargoed",
    }.items():
        body = f'{{"detail": "no", "error_code": "{code}"}}'.encode()
        replay.faults.add(Fault("/download-url", status=404, body=body))
        number = next(number for number in sorted(ids_of(context, a_run(replay))) if number in late.due(context))
        ingest.run([number], context, "message")
        with reading(context.engine) as session:
            assert session.get_one(LedgerItem, number).state == state, code


def test_absent_feedback_is_waited_for_as_if_it_were_withheld(context: Context, replay: Replay) -> None:
    run = a_run(replay, "envpack")
    walk(context)
    replay.archive.forget(run)
    late.fetch(context)
    assert states(context, run.eval_run_id) == {("embargoed", "feedback_absent"): len(run.items)}
    assert waits(context, run.eval_run_id) == {timedelta(hours=1)}
    replay.archive.replace(run)
    let_time_pass(context)
    late.fetch(context)
    assert states(context, run.eval_run_id) == {("fetched", None): len(run.items)}


def test_items_of_a_run_that_stops_counting_rest_until_it_counts_again(context: Context, replay: Replay) -> None:
    run = a_run(replay)
    walk(context)
    for changed, reason in (
        ({"invalidated_at": late.INVALIDATED_AT}, "run_invalidated"),
        ({"is_included": False}, "run_excluded"),
        ({"status": "STALE"}, "run_unsuccessful"),
    ):
        replay.archive.replace(replace(run, **changed))
        late.much_later(context)
        walk(context)
        assert states(context, run.eval_run_id) == {("gone", reason): len(run.items)}
        replay.archive.replace(run)
        late.much_later(context)
        walk(context)
        assert states(context, run.eval_run_id) == {("expected", None): len(run.items)}
    assert set(late.due(context)) >= ids_of(context, run)


def ids_of(context: Context, run: Run) -> set[int]:
    with reading(context.engine) as session:
        return set(session.scalars(select(LedgerItem.ledger_id).where(LedgerItem.eval_run_id == run.eval_run_id)))


def test_items_of_a_discarded_agent_rest_and_only_the_listing_that_said_so_takes_it_back(
    context: Context, replay: Replay
) -> None:
    run = a_run(replay)
    agent = replay.archive.agents[run.agent_version_id]
    replay.archive.agents[agent.agent_version_id] = replace(agent, is_discarded=True)
    walk(context)
    assert states(context, run.eval_run_id) == {("gone", "agent_discarded"): len(run.items)}
    replay.archive.agents[agent.agent_version_id] = agent
    walk(context)
    with reading(context.engine) as session:
        (stone,) = session.scalars(select(Tombstone)).all()
    assert stone.source["listing"] == run.race_id, "an agent that never qualified is on no leaderboard"
    assert states(context, run.eval_run_id) == {("gone", "agent_discarded"): len(run.items)}
    late.much_later(context)
    walk(context)
    assert states(context, run.eval_run_id) == {("expected", None): len(run.items)}


def test_items_of_a_race_that_is_called_off_do_not_wait_for_ever(context: Context, replay: Replay) -> None:
    run = a_run(replay)
    race = replay.archive.races[run.race_id]
    runs = runs_of(replay, race)
    walk(context)
    items = sum(len(replay.archive.runs[name].items) for name in runs)
    replay.archive.races[race.race_id] = replace(race, status="RACE_CANCELLED")
    late.much_later(context)
    walk(context)
    assert states(context, *runs) == {("gone", "race_cancelled"): items}
    replay.archive.races[race.race_id] = race
    late.much_later(context)
    walk(context)
    assert states(context, *runs) == {("expected", None): items}


def test_a_race_that_is_called_off_half_way_is_asked_about_no_more(context: Context, replay: Replay) -> None:
    run = a_run(replay)
    race = replay.archive.races[run.race_id]
    replay.archive.replace(replace(run, status="RUNNING"))
    replay.archive.races[race.race_id] = replace(race, status="RACE_RUNNING", completed_at=None)
    walk(context)
    replay.archive.races[race.race_id] = replace(race, status="CANCELLED", completed_at=None)
    walk(context)
    replay.faults.requests.clear()
    walk(context)
    asked = [path for path in replay.faults.requests if race.race_id in path or run.agent_version_id in path]
    assert asked == []
    assert states(context, *runs_of(replay, race)) == {}


def test_a_race_number_that_comes_again_is_another_race(context: Context, replay: Replay) -> None:
    races = replay.archive.races
    for race_id, race in list(races.items()):
        races[race_id] = replace(race, race_number=1)
    walk(context)
    late.fetch(context)
    fetched = select(EvaluationRun.race_id, func.count(Trajectory.trajectory_id)).join(
        Trajectory, Trajectory.eval_run_id == EvaluationRun.eval_run_id
    )
    objects = Counter(replay.archive.runs[run_id].race_id for run_id, _ in replay.archive.legacy)
    objects.subtract(replay.archive.runs[key[0]].race_id for key, i in replay.archive.legacy.items() if not i.packed)
    objects.update(run.race_id for run, _ in replay.archive.episodes.values())
    with reading(context.engine) as session:
        assert dict(tuple(row) for row in session.execute(fetched.group_by(EvaluationRun.race_id))) == objects


def test_a_judgement_that_is_listed_while_the_bytes_are_on_the_way_is_not_lost(
    context: Context, replay: Replay, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = a_run(replay)
    walk(context)
    item = next(item for item in run.items if item.packed is not None)
    fetch = type(context.source).fetch

    def overtaken(source: object, target: FetchTarget) -> object:
        monkeypatch.setattr(type(context.source), "fetch", fetch)
        replay.archive.replace(late.with_item(run, item.problem_id, update=item.update | {"score": 0.125}))
        late.much_later(context)
        walk(context)
        return fetch(source, target)

    monkeypatch.setattr(type(context.source), "fetch", overtaken)
    number = select(LedgerItem.ledger_id).where(
        LedgerItem.eval_run_id == run.eval_run_id, LedgerItem.item_key == item.problem_id
    )
    with reading(context.engine) as session:
        ids = session.scalars(number).all()
    ingest.run(ids, context, "message")
    with reading(context.engine) as session:
        (body,) = session.scalars(select(Evidence.body)).all()
    assert body["judgement"]["score"] == 0.125


def test_a_stored_item_stays_stored_whatever_the_source_says_when_it_is_asked_again(
    context: Context, replay: Replay
) -> None:
    run = a_run(replay)
    walk(context)
    late.fetch(context)
    item = next(item for item in run.items if item.packed is not None)
    replay.archive.replace(late.with_item(run, item.problem_id, updated_at=late.INVALIDATED_AT))
    late.much_later(context, items=True)
    walk(context)
    assert states(context, run.eval_run_id)["changed", None] == 1
    replay.faults.add(Fault("/download-url", status=503, times=1))
    late.fetch(context)
    assert states(context, run.eval_run_id)["changed", "upstream_error"] == 1
    replay.archive.replace(replace(run, invalidated_at=late.INVALIDATED_AT))
    late.much_later(context)
    walk(context)
    assert states(context, run.eval_run_id)["fetched", "run_invalidated"] == 1
    replay.archive.replace(run)
    late.much_later(context)
    walk(context)
    assert states(context, run.eval_run_id)["changed", None] == 1
    before = late.counts(context)
    late.fetch(context)
    assert late.counts(context) == before
    assert states(context, run.eval_run_id)["changed", None] == 0


def test_no_walk_spends_more_on_re_reading_than_its_allowance_and_all_have_their_turn(
    context: Context, replay: Replay, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk(context)
    monkeypatch.setattr(subscribe, "allowance", lambda *_: 3)
    late.much_later(context)
    everything = len(replay.archive.races) + len(replay.archive.agents)
    seen: list[str] = []
    # 3 in each walk, as long as anything has not had its turn.
    for _ in range(-(-everything // 3)):
        replay.faults.requests.clear()
        walk(context)
        races = [path for path in replay.faults.requests if "/races/" in path and path.count("-") == 4]
        agents = [path for path in replay.faults.requests if path.endswith("/runs")]
        assert len(races) + len(agents) <= 3
        seen += races + agents
    assert len(seen) == len(set(seen)) == everything


def look_again(context: Context) -> None:
    late.much_later(context, items=True)
    walk(context)
    let_time_pass(context)
    late.fetch(context)


class Killed(BaseException):
    """Stands for a SIGKILL: nothing handles it, and the open transaction is lost."""


STEPS = (
    (tombstones, "settle"),
    (resting, "follow"),
    (relisting, "relist"),
    (listings, "mark_run_listed"),
    (rereading, "mark_agent_read"),
    (trajectories, "revise"),
    (ledger, "mark_fetched"),
)


def test_one_killed_at_each_step_in_turn_ends_where_an_undisturbed_one_does(
    context: Context, replay: Replay, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk(context)
    late.fetch(context)
    before = late.counts(context)
    archive = replay.archive
    whole = [
        run for run in archive.runs.values() if not late.is_envpack(run) and all(item.packed for item in run.items)
    ]
    first, second = whole[:2]
    anew, moved = first.items[:2]
    changed = late.with_item(first, anew.problem_id, update=anew.update | {"score": 0.125})
    archive.replace(late.with_item(changed, moved.problem_id, payload=b"[ ]", updated_at=late.INVALIDATED_AT))
    archive.replace(replace(second, is_included=False))
    for module, name in STEPS:
        original = getattr(module, name)

        def dying(*arguments: Any, original: Callable[..., Any] = original, **named: Any) -> None:
            original(*arguments, **named)
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(module, name, dying)
            with pytest.raises(Killed):
                look_again(context)
    for _ in range(2):
        look_again(context)
        # A judgement and an object are new, and a run does not count.
        new = Counter(late.counts(context)) - Counter(before)
        assert new == {"evidence": 2, "verdicts": 2, "payloads": 1, "tombstones": 1}
