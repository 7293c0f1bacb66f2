"""The unmodified oro-sdk client against a live replay server: every answer is read by the SDK's own models."""

import gzip
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from oro_sdk.api.public import (
    get_agent_version,
    get_agent_version_problems,
    get_agent_version_runs,
    get_agent_version_status,
    get_artifact_download_url,
    get_current_race,
    get_current_suite,
    get_episode_feedback,
    get_evaluation_run,
    get_leaderboard,
    get_race_detail,
    get_race_history,
    get_race_seed_commitment,
    get_suite_problems,
    get_trajectory_history,
    health_check,
    list_suites,
)
from oro_sdk.client import Client
from oro_sdk.models import (
    ArtifactDownloadRequest,
    ArtifactNotFoundError,
    ArtifactNotReleasedError,
    ArtifactType,
    EvalRunNotFoundError,
    MissingParameterError,
    RaceInFlightError,
    RaceNotFoundError,
)

from service.replay.archive import read_archive
from service.replay.recorded import Archive, Race
from service.replay.server import Replay, replaying


class Walker:
    """Asks as the SDK asks and counts what it was told."""

    def __init__(self, url: str) -> None:
        self.client = Client(base_url=url, raise_on_unexpected_status=True)
        self.objects = httpx.Client()
        self.counts: Counter[str] = Counter()
        self.payloads: list[bytes] = []

    def ask(self, call: ModuleType, *args: Any, **kwargs: Any) -> Any:
        response = call.sync_detailed(*args, client=self.client, **kwargs)
        assert response.status_code == HTTPStatus.OK, response.content
        assert response.parsed is not None
        return response.parsed

    def walk(self) -> Counter[str]:
        current = self.ask(get_current_race)
        self.counts["running"] = int(current.race is not None)
        history = self.ask(get_race_history, limit=1)
        races = list(history.races)
        agents: set[UUID] = set()
        while len(races) < history.total:
            races += self.ask(get_race_history, limit=1, offset=len(races)).races
        for race in races:
            assert race.status == "RACE_COMPLETE"
            detail = self.ask(get_race_detail, race.race_id)
            assert all(qualifier.race_score is not None for qualifier in detail.qualifiers)
            self.counts["qualifiers"] += len(detail.qualifiers)
            agents |= {qualifier.agent_version_id for qualifier in detail.qualifiers}
            self.commitment(race.race_id)
        self.counts["races"] = len(races)
        for suite in self.ask(list_suites):
            board = self.ask(get_leaderboard, suite_id=suite.suite_id)
            agents |= {entry.agent_version_id for entry in board.entries}
            listed = self.ask(get_suite_problems, suite.suite_id)
            assert all(problem.metadata["reward"] for problem in listed.problems)
            self.counts["problems"] += len(listed.problems)
            self.counts["tasks"] += len(listed.qualifying_tasks)
        for agent_version_id in agents:
            self.agent(agent_version_id)
        self.ask(get_current_suite)
        self.counts["history"] = self.ask(get_trajectory_history).total
        self.ask(health_check)
        return self.counts

    def commitment(self, race_id: UUID) -> None:
        answer = get_race_seed_commitment.sync(race_id, client=self.client)
        if not isinstance(answer, RaceNotFoundError):
            assert answer.revealed
            assert answer.race_id == race_id
            assert [attempt.attempt for attempt in answer.rejected_attempts] == list(
                range(len(answer.rejected_attempts))
            )
            self.counts["commitments"] += 1

    def agent(self, agent_version_id: UUID) -> None:
        self.counts["agents"] += 1
        status = self.ask(get_agent_version_status, agent_version_id)
        version = get_agent_version.sync(agent_version_id, client=self.client)
        if status.release_state == "RELEASED":
            assert status.code_available_at
            self.code(agent_version_id)
        else:
            assert isinstance(version, ArtifactNotReleasedError)
        for run in self.ask(get_agent_version_runs, agent_version_id):
            detail = self.ask(get_evaluation_run, run.eval_run_id)
            race_id = {"race_id": run.race_id} if run.race_id else {}
            progress = self.ask(get_agent_version_problems, agent_version_id, phase=run.phase, **race_id)
            if detail.execution_kind == "envpack":
                assert len(progress.generated_results) == 1
                self.episodes(detail)
            for entry in progress.problems:
                self.problem(agent_version_id, entry)

    def episodes(self, detail: Any) -> None:
        assert detail.environment.catalog_epoch
        for item in detail.items.items:
            feedback = self.ask(get_episode_feedback, item.episode_result_id)
            assert feedback.task_id == item.item_id
            self.counts["episodes"] += 1

    def problem(self, agent_version_id: UUID, entry: Any) -> None:
        assert not {"query", "reward"} & set(entry.additional_properties)
        [result] = entry.validator_results
        request = ArtifactDownloadRequest(
            ArtifactType.EVAL_PROBLEM_LOGS, agent_version_id, result.eval_run_id, entry.problem_id
        )
        answer = get_artifact_download_url.sync(body=request, client=self.client)
        self.counts[type(answer).__name__] += 1
        if not isinstance(answer, ArtifactNotFoundError | RaceInFlightError):
            response = self.objects.get(answer.download_url)
            assert response.headers["content-type"] == "application/gzip"
            assert "content-encoding" not in response.headers
            self.payloads.append(gzip.decompress(response.content))

    def code(self, agent_version_id: UUID) -> None:
        request = ArtifactDownloadRequest(ArtifactType.AGENT_CODE, agent_version_id)
        answer = get_artifact_download_url.sync(body=request, client=self.client)
        if not isinstance(answer, ArtifactNotFoundError):
            assert b"def agent_main" in self.objects.get(answer.download_url).content
            self.counts["code"] += 1


def test_the_sdk_walks_the_generated_races(replay: Replay) -> None:
    walker = Walker(replay.url)
    assert walker.walk() == {
        "running": 1,
        "races": 2,
        "commitments": 1,  # monday has none, tuesday's race is not over
        "qualifiers": 3,  # two in monday, one in market; tuesday is not over
        "agents": 5,
        "problems": 3,
        "tasks": 2,
        "episodes": 4,
        "code": 1,
        # monday 15 objects and one missing; tuesday shows 2 x 3 qualifying ones and withholds 2 x 5.
        "ArtifactDownloadResponse": 21,
        "ArtifactNotFoundError": 1,
        "RaceInFlightError": 10,
        "history": 36,
    }
    assert walker.payloads.count(b"[]") == 2


@pytest.mark.shared
def test_the_sdk_walks_the_recorded_runs(shared_data: Path) -> None:
    with replaying(shared_data / "runs") as replay:
        walker = Walker(replay.url)
        counts = walker.walk()
    assert counts["ArtifactDownloadResponse"] == len(walker.payloads) == 1228
    assert counts["ArtifactNotFoundError"] == 17
    assert (counts["running"], counts["races"], counts["qualifiers"], counts["agents"]) == (0, 1, 13, 15)
    assert counts["code"] == 9
    assert counts["problems"] == 30
    assert walker.payloads.count(b"[]") == 93
    assert sum(b"NaN" in payload for payload in walker.payloads) == 7


def test_a_race_that_completes_releases_its_objects(recording_archive: Archive) -> None:
    with replaying(recording_archive) as replay:
        before = Walker(replay.url).walk()
        for race_id, race in replay.archive.races.items():
            replay.archive.races[race_id] = _completed(race)
        after = Walker(replay.url).walk()
    assert (before["RaceInFlightError"], after["RaceInFlightError"]) == (10, 0)
    # tuesday's ten race problems: nine objects more, one more without an envelope.
    assert after["ArtifactDownloadResponse"] - before["ArtifactDownloadResponse"] == 9
    assert after["ArtifactNotFoundError"] == 2


def test_a_commitment_is_published_before_its_race_is_over_and_revealed_after(recording_archive: Archive) -> None:
    [(race_id, race)] = [(key, race) for key, race in recording_archive.races.items() if race.in_flight]
    with replaying(recording_archive) as replay:
        client = Client(base_url=replay.url)
        before: Any = get_race_seed_commitment.sync(UUID(race_id), client=client)
        replay.archive.races[race_id] = _completed(race)
        after: Any = get_race_seed_commitment.sync(UUID(race_id), client=client)
        assert isinstance(get_race_seed_commitment.sync(uuid4(), client=client), RaceNotFoundError)
    assert (before.revealed, before.secret, before.world_seed, before.world_pack_sha256) == (False, None, None, None)
    assert before.rejected_attempts is None
    assert (after.revealed, after.secret_sha256) == (True, before.secret_sha256)
    assert after.secret == "02" * 32


def test_a_hidden_version_says_when_its_code_is_out(recording_archive: Archive) -> None:
    [(key, agent)] = [(key, agent) for key, agent in recording_archive.agents.items() if agent.code]
    announced = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    with replaying(recording_archive) as replay:
        client = Client(base_url=replay.url)
        request = ArtifactDownloadRequest(ArtifactType.AGENT_CODE, UUID(key))
        replay.archive.agents[key] = replace(agent, code_available_at=announced)
        status: Any = get_agent_version_status.sync(UUID(key), client=client)
        assert (status.release_state, status.code_available_at) == ("HIDDEN", announced)
        assert isinstance(get_artifact_download_url.sync(body=request, client=client), ArtifactNotReleasedError)
        replay.archive.agents[key] = replace(agent, code_available_at=announced - timedelta(hours=2))
        status = get_agent_version_status.sync(UUID(key), client=client)
        assert status.release_state == "RELEASED"
        assert not isinstance(get_artifact_download_url.sync(body=request, client=client), ArtifactNotReleasedError)


def test_denials_are_the_documented_ones(replay: Replay) -> None:
    client = Client(base_url=replay.url)
    [(run_id, name), *_] = replay.archive.legacy
    agent = UUID(replay.archive.runs[run_id].agent_version_id)
    stranger = uuid4()
    assert isinstance(get_race_detail.sync(stranger, client=client), RaceNotFoundError)

    def asked(**named: UUID) -> Any:
        request = ArtifactDownloadRequest(ArtifactType.EVAL_PROBLEM_LOGS, agent, **named)
        return get_artifact_download_url.sync(body=request, client=client)

    assert isinstance(asked(eval_run_id=UUID(run_id)), MissingParameterError)
    assert asked(eval_run_id=stranger, problem_id=UUID(name)).error_code == "EVAL_RUN_NOT_FOUND"
    assert asked(eval_run_id=UUID(run_id), problem_id=stranger).error_code == "ARTIFACT_NOT_FOUND"
    assert isinstance(get_evaluation_run.sync(stranger, client=client), EvalRunNotFoundError)
    assert httpx.get(f"{replay.url}/v1/public/races/not-a-uuid").status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert httpx.get(f"{replay.url}/v1/public/races/history?limit=101").status_code == HTTPStatus.UNPROCESSABLE_ENTITY


def test_an_object_url_is_refused_once_expired_or_forged(recording: Path) -> None:
    with replaying(recording, url_lifetime_seconds=0) as replay:
        [(run_id, name), *_] = replay.archive.legacy
        request = ArtifactDownloadRequest(
            ArtifactType.EVAL_PROBLEM_LOGS,
            UUID(replay.archive.runs[run_id].agent_version_id),
            UUID(run_id),
            UUID(name),
        )
        answer: Any = get_artifact_download_url.sync(body=request, client=Client(base_url=replay.url))
        expired = httpx.get(answer.download_url)
        forged = httpx.get(answer.download_url.replace("X-Amz-Expires=0", "X-Amz-Expires=900"))
    for refused in (expired, forged):
        assert refused.status_code == HTTPStatus.FORBIDDEN
        assert refused.headers["content-type"] == "application/xml"


def _completed(race: Race) -> Race:
    return replace(race, status="RACE_COMPLETE", completed_at=race.started_at)


@pytest.fixture
def recording_archive(recording: Path) -> Archive:
    return read_archive(recording)
