"""The walk over a live server: everything is found once, and each thing that is missing says why."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from service.domain.trajectory import ExecutionKind, Judgement
from service.replay.faults import Fault
from service.replay.recorded import LEGACY, derived_id
from service.replay.server import Replay, replaying
from service.source.answers import Fetched, FetchTarget, Refused, Unchanged
from service.source.http.budget import Unthrottled
from service.source.http.calls import SourceRefused, open_client
from service.source.oro.listing import RunItems
from service.source.oro.source import OroSource
from service.source.refusals import Refusal
from tests.replay.recording import LEGACY_SUITE, problem_id
from tests.source.conftest import all_items, target_of

EPISODE = {"item_id": "TF8-1", "status": "completed", "episode_result_id": "00000000-0000-5000-8000-000000000001"}


def harvest(source: OroSource) -> tuple[Counter[str], list[bytes]]:
    counts: Counter[str] = Counter()
    payloads: list[bytes] = []
    for item in all_items(source):
        answer = source.fetch(target_of(item))
        counts["fetched" if isinstance(answer, Fetched) else answer.reason] += 1
        if isinstance(answer, Fetched):
            payloads.append(answer.payload)
    return counts, payloads


def test_every_object_of_the_generated_races_is_found_once(source: OroSource) -> None:
    counts, payloads = harvest(source)
    # Two legacy races of 2 x 8 items, one running: 2 x 5 withheld. brittle lost one envelope in the other. 4 episodes.
    assert counts == {"fetched": 25, Refusal.RACE_IN_FLIGHT: 10, Refusal.NO_OBJECT: 1}
    assert payloads.count(b"[]") == 2
    assert sum(b"NaN" in payload for payload in payloads) == 1
    assert source.oddities.counts() == {}


@pytest.mark.shared
def test_every_object_of_the_recorded_runs_is_found_once(shared_data: Path) -> None:
    with replaying(shared_data / "runs") as replay, open_client() as client:
        counts, payloads = harvest(OroSource(replay.url, Unthrottled(), client))
    assert counts == {"fetched": 1228, Refusal.NO_OBJECT: 17}
    assert payloads.count(b"[]") == 93
    assert sum(b"NaN" in payload for payload in payloads) == 7


def test_races_come_once_with_the_running_one_first(source: OroSource, replay: Replay) -> None:
    races = list(source.races())
    assert [race.status for race in races] == ["RACE_RUNNING", "RACE_COMPLETE", "RACE_COMPLETE"]
    assert [len(race.agents) for race in races] == [2, 1, 2]
    done = {race.race_id for race in races[1:]}
    replay.faults.requests.clear()
    assert [race.status for race in source.races(skip=done)] == ["RACE_RUNNING"]
    assert replay.faults.requests == ["/v1/public/races/current", "/v1/public/races/history"]


def test_a_run_is_complete_when_nothing_is_withheld_and_all_is_there(source: OroSource, replay: Replay) -> None:
    runs = {run.eval_run_id: run for agent in source.agents() for run in source.runs(agent.agent_version_id)}
    listed = {eval_run_id: source.items(run) for eval_run_id, run in runs.items()}
    [running] = [race.race_id for race in source.races() if not race.is_complete]
    withheld = {eval_run_id for eval_run_id, run in runs.items() if run.race_id == running}
    assert {eval_run_id for eval_run_id, items in listed.items() if not items.complete} == withheld
    assert withheld

    episodes = next(run for run in runs.values() if run.kind is ExecutionKind.ENVPACK and run.race_id)
    race = replay.archive.races[episodes.race_id or ""]
    replay.archive.races[race.race_id] = replace(race, status="RACE_RUNNING")
    assert source.items(episodes) == RunItems([], complete=False)


@pytest.mark.parametrize(
    ("details", "complete"),
    [
        (None, False),
        ({"detail_released": True, "persisted_item_count": 1, "expected_item_count": 2, "items": [EPISODE]}, False),
        ({"detail_released": True, "persisted_item_count": 1, "expected_item_count": 1, "items": [EPISODE]}, True),
        # A row that cannot be read is there all the same: asking again would show no more.
        ({"detail_released": True, "persisted_item_count": 2, "expected_item_count": 2, "items": [EPISODE, {}]}, True),
        ({"detail_released": True, "persisted_item_count": 0, "expected_item_count": 0, "items": []}, True),
        ({"detail_released": False, "persisted_item_count": 0, "expected_item_count": 0, "items": []}, False),
    ],
)
def test_items_still_to_come_leave_a_run_incomplete(
    source: OroSource, replay: Replay, details: object, complete: bool
) -> None:
    run = next(
        run
        for agent in source.agents()
        for run in source.runs(agent.agent_version_id)
        if run.kind is ExecutionKind.ENVPACK
    )
    answer = json.dumps({"eval_run_id": run.eval_run_id, "items": details}).encode()
    replay.faults.add(Fault("/evaluation-runs/", status=200, body=answer))
    assert source.items(run).complete is complete


def test_a_walk_asks_for_nothing_twice(source: OroSource, replay: Replay) -> None:
    """One validator's run becomes three, as in a race that three validators ran."""
    agent = next(run.agent_version_id for run in replay.archive.runs.values() if run.execution_kind == LEGACY)
    for run in list(replay.archive.runs_of[agent]):
        for number in range(2):
            replay.archive.add(replace(run, eval_run_id=derived_id(run.eval_run_id, str(number))))
    replay.faults.requests.clear()
    problems, agents = list(source.problems()), list(source.agents())
    assert problems
    assert agent in {listed.agent_version_id for listed in agents}
    runs = source.runs(agent)
    assert len(runs) == 6
    for run in runs:
        assert source.items(run).complete
    asked = Counter(path.rsplit("/", 1)[-1] for path in replay.faults.requests if "suites/" not in path)
    # Two phases, each asked for once whatever the number of validators.
    assert asked["suites"] == 1
    assert asked["problems"] == 2
    source.runs(agent)
    source.items(runs[0])
    assert replay.faults.requests[-1].endswith("/problems"), "what was kept must not outlive the runs it is about"


def test_a_suite_nobody_lists_is_looked_for_once(source: OroSource, replay: Replay) -> None:
    agent = next(iter(replay.archive.runs_of))
    row = {"eval_run_id": "r", "agent_version_id": agent, "suite_id": 77, "status": "SUCCESS"}
    replay.faults.add(Fault("/runs$", status=200, body=json.dumps([row] * 5).encode()))
    replay.faults.requests.clear()
    assert source.runs(agent) == []
    assert [path for path in replay.faults.requests if path.endswith("/suites")] == ["/v1/public/suites"]


def test_a_judgement_is_what_the_domain_reads(source: OroSource) -> None:
    judged = [msgspec.convert(item.judgement, Judgement) for item in all_items(source)]
    # Of 2 x 8 released-or-not legacy items per race brittle fails three; of the four episodes every other passed.
    assert Counter(judgement.success for judgement in judged) == {True: 2 * 13 + 2, False: 2 * 3 + 2}
    assert all(judgement.reasoning_score is None for judgement in judged)


def test_gold_is_listed_for_the_public_suite_and_the_world_names_an_episode(source: OroSource) -> None:
    legacy = [problem for problem in source.problems() if problem.suite_id == LEGACY_SUITE]
    assert {problem.problem_id for problem in legacy} == {problem_id(number) for number in range(3)}
    assert all(isinstance(problem.reward, list) and problem.query for problem in legacy)
    tasks = [problem for problem in source.problems() if problem.kind is ExecutionKind.ENVPACK]
    assert {task.problem_id for task in tasks} == {"market-1/TF8-composed-Q0", "market-1/TF8-composed-Q1"}
    episodes = {item.problem_id for item in all_items(source) if item.kind is ExecutionKind.ENVPACK}
    assert {task.problem_id for task in tasks} < episodes


def test_released_code_is_fetched_and_hidden_code_is_not(source: OroSource) -> None:
    answers = [source.agent_code(agent.agent_version_id) for agent in source.agents()]
    assert sum(isinstance(answer, Fetched) and b"def agent_main" in answer.payload for answer in answers) == 1
    reasons = Counter(answer.reason for answer in answers if isinstance(answer, Refused))
    assert reasons == {Refusal.NO_OBJECT: 2, Refusal.NOT_RELEASED: 2}


def test_names_nobody_knows_are_refused_by_name(source: OroSource, target: FetchTarget) -> None:
    stranger = "00000000-0000-5000-8000-000000000000"

    def reason(**changes: str) -> Refusal:
        answer = source.fetch(
            FetchTarget(**{name: getattr(target, name) for name in FetchTarget.__dataclass_fields__} | changes)
        )
        assert isinstance(answer, Refused)
        assert answer.terminal == (answer.retry_at is None)
        return answer.reason

    assert reason(agent_version_id=stranger) is Refusal.AGENT_NOT_FOUND
    assert reason(eval_run_id=stranger) is Refusal.RUN_NOT_FOUND
    assert reason(problem_id=stranger) is Refusal.NO_OBJECT
    assert reason(problem_id="no uuid") is Refusal.BAD_REQUEST
    assert reason(kind=ExecutionKind.ENVPACK) is Refusal.FEEDBACK_ABSENT
    assert reason(kind=ExecutionKind.ENVPACK, episode_result_id=stranger) is Refusal.FEEDBACK_ABSENT
    with pytest.raises(SourceRefused, match="agent_not_found"):
        source.runs(stranger)


def test_no_server_is_a_refusal_too(target: FetchTarget) -> None:
    with open_client() as client:
        source = OroSource("http://127.0.0.1:9", Unthrottled(), client, backoff_seconds=0.0)
        answer = source.fetch(target)
        with pytest.raises(SourceRefused, match="unreachable"):
            source.suites()
    assert isinstance(answer, Refused)
    assert answer.reason is Refusal.UNREACHABLE


@pytest.mark.parametrize("kind", [ExecutionKind.LEGACY, ExecutionKind.ENVPACK])
def test_bytes_that_are_there_already_are_not_sent_again(
    replay: Replay, source: OroSource, kind: ExecutionKind
) -> None:
    target = next(
        target
        for target in map(target_of, all_items(source))
        if target.kind is kind and isinstance(source.fetch(target), Fetched)
    )
    fetched = source.fetch(target)
    assert isinstance(fetched, Fetched)
    assert fetched.etag is not None
    assert source.fetch(replace(target, etag=fetched.etag)) == Unchanged()
    for other in ('"other"', "no tag", '"\r\nX-Evil: 1"'):
        assert source.fetch(replace(target, etag=other)) == fetched
