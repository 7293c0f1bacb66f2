"""What the source publishes around its runs: standings, seed commitments and code releases, well and badly answered."""

from collections import Counter
from datetime import UTC, datetime

import orjson
import pytest

from service.domain.trajectory import ExecutionKind
from service.replay.faults import Fault
from service.replay.server import Replay
from service.source.answers import Fetched
from service.source.http.calls import SourceRefused
from service.source.oro.publications import board_standing, race_standing
from service.source.oro.source import OroSource
from service.source.refusals import Refusal
from tests.replay.recording import EPISODES
from tests.source.conftest import target_of

LATER = datetime(2030, 1, 1, tzinfo=UTC)


def race_named(replay: Replay, slug: str) -> str:
    return next(race_id for race_id, race in replay.archive.races.items() if race.slug == slug)


def test_a_race_without_a_commitment_has_none(source: OroSource, replay: Replay) -> None:
    assert source.seed_commitment(race_named(replay, "monday")) is None
    running = source.seed_commitment(race_named(replay, "tuesday"))
    assert running is not None
    assert not running.is_revealed
    over = source.seed_commitment(race_named(replay, "market"))
    assert over is not None
    assert over.is_revealed
    assert over.raw["rejected_attempts"][0]["reason"] == "too easy"


@pytest.mark.parametrize(
    "answer", [b"[]", b"{}", b'{"race_id": "another", "secret_sha256": "00"}', b'{"secret_sha256": 1}', b"<html>"]
)
def test_an_answer_that_is_no_record_of_the_race_is_no_absence(
    source: OroSource, replay: Replay, answer: bytes
) -> None:
    assert replay.faults is not None
    race_id = race_named(replay, "market")
    replay.faults.add(Fault("/seed-commitment", status=200, body=answer))
    with pytest.raises(SourceRefused) as refused:
        source.seed_commitment(race_id)
    assert refused.value.reason is Refusal.UNREADABLE_ANSWER
    assert source.seed_commitment(race_id) is not None


def test_a_404_of_another_kind_is_no_absence(source: OroSource, replay: Replay) -> None:
    assert replay.faults is not None
    replay.faults.add(Fault("/seed-commitment", status=404, body=b"not here"))
    with pytest.raises(SourceRefused):
        source.seed_commitment(race_named(replay, "market"))


def test_fields_nobody_knows_are_kept_and_counted(source: OroSource, replay: Replay) -> None:
    assert replay.faults is not None
    race_id = race_named(replay, "market")
    record = {"race_id": race_id, "secret_sha256": "00", "revealed": "yes", "beacon_quorum": 9}
    replay.faults.add(Fault("/seed-commitment", status=200, body=orjson.dumps(record)))
    listed = source.seed_commitment(race_id)
    assert listed is not None
    assert listed.raw == record
    assert not listed.is_revealed
    assert source.oddities.counts()["unknown_field"] == 1


def test_a_version_says_when_its_code_is_out(source: OroSource, replay: Replay) -> None:
    assert replay.faults is not None
    agent_version_id = next(iter(replay.archive.agents))
    assert source.code_release(agent_version_id).is_released
    body = orjson.dumps({"release_state": "HIDDEN", "code_available_at": "2030-01-01T00:00:00"})  # no offset: UTC
    replay.faults.add(Fault("/status", status=200, body=body))
    hidden = source.code_release(agent_version_id)
    assert (hidden.is_released, hidden.available_at) == (False, LATER)
    replay.faults.add(Fault("/status", status=200, body=b'{"release_state": 7, "code_available_at": "soon"}'))
    odd = source.code_release(agent_version_id)
    assert (odd.is_released, odd.available_at) == (False, None)


def test_standings_are_read_by_suite_and_each_agent_once(source: OroSource, replay: Replay) -> None:
    standings = list(source.leaderboards())
    assert Counter(standing.suite_id for standing in standings) == {4: 4, 9: 1}
    assert [agent.agent_version_id for agent in source.agents()] == [one.agent.agent_version_id for one in standings]
    first = board_standing(standings[0].agent)
    assert (first.rank, first.is_current_top, first.eliminated_at) == (1, True, None)
    assert {suite.suite_id for suite in source.known_suites()} == {4, 9}


def test_an_embargoed_race_has_no_scores_yet(source: OroSource, replay: Replay) -> None:
    races = {race.race_id: race for race in source.races()}
    running = [race_standing(agent) for agent in races[race_named(replay, "tuesday")].agents]
    over = [race_standing(agent) for agent in races[race_named(replay, "monday")].agents]
    assert {(one.race_score, one.race_rank) for one in running} == {(None, None)}
    assert sorted(one.race_rank or 0 for one in over) == [1, 2]


def test_an_odd_standing_reads_as_not_said(source: OroSource) -> None:
    standing = next(iter(source.leaderboards()))
    standing.agent.raw.update(rank="first", final_score=float("inf"), is_discarded="no", eliminated_at="2030-01-01")
    told = board_standing(standing.agent)
    assert (told.rank, told.final_score, told.is_discarded) == (None, None, False)
    assert told.eliminated_at == LATER


def test_episodes_of_qualifying_are_listed_and_given_at_once(source: OroSource) -> None:
    runs = [run for agent in source.agents() for run in source.runs(agent.agent_version_id)]
    (run,) = [run for run in runs if run.kind is ExecutionKind.ENVPACK and run.race_id is None]
    assert run.counts
    assert run.phase == "QUALIFYING"
    given = source.items(run)
    assert given.complete
    assert len(given.items) == EPISODES
    assert all(item.released and isinstance(source.fetch(target_of(item)), Fetched) for item in given.items)
    tasks = {
        problem.problem_id: problem.query for problem in source.problems() if problem.kind is ExecutionKind.ENVPACK
    }
    assert {item.problem_id for item in given.items} == tasks.keys()
    assert all(tasks.values())
