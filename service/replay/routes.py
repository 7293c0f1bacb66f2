"""The listings of ORO's public API. Every answer comes from memory; what an embargo hides is in shapes.py.

Routes are `async` because none of them waits for anything.
"""

from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import Response

from service.replay import history, shapes
from service.replay.answers import Denial, Denied, json_answer
from service.replay.lookups import (
    Recorded,
    agent_named,
    code_available_at,
    race_named,
    released_at,
    run_named,
    suite_named,
)
from service.replay.recorded import ENVPACK, LegacyItem

router = APIRouter(prefix="/v1/public")
Limit = Annotated[int, Query(ge=1, le=100)]
Offset = Annotated[int, Query(ge=0)]


@router.get("/races/current")
async def current_race(archive: Recorded) -> Response:
    """The race that is open or running, if any."""
    running = next((race for race in archive.races.values() if race.in_flight), None)
    if running is None:
        return json_answer({"race": None, "qualifiers": []})
    return json_answer({"race": shapes.race(archive, running), "qualifiers": shapes.qualifiers(archive, running)})


@router.get("/races/history")
async def race_history(
    archive: Recorded, limit: Limit = 20, offset: Offset = 0, suite_id: int | None = None
) -> Response:
    """Races that are over, most recent first."""
    over = [race for race in archive.races.values() if not race.in_flight and suite_id in (None, race.suite_id)]
    over.sort(key=lambda race: (race.completed_at or race.created_at, race.race_id), reverse=True)
    page = [shapes.race(archive, race) for race in over[offset : offset + limit]]
    return json_answer({"total": len(over), "limit": limit, "offset": offset, "races": page})


@router.get("/races/{race_id}")
async def race_detail(archive: Recorded, race_id: UUID) -> Response:
    """One race with its qualifiers."""
    race = race_named(archive, race_id)
    return json_answer({"race": shapes.race(archive, race), "qualifiers": shapes.qualifiers(archive, race)})


@router.get("/races/{race_id}/seed-commitment")
async def seed_commitment(archive: Recorded, race_id: UUID) -> Response:
    """The record of a race's world seed; a race without one answers as a race that is not there."""
    record = shapes.seed_commitment(race_named(archive, race_id))
    if record is None:
        raise Denied(Denial.RACE_NOT_FOUND)
    return json_answer(record)


@router.get("/agent-versions/{agent_version_id}")
async def agent_version(archive: Recorded, agent_version_id: UUID) -> Response:
    """A released agent version."""
    agent = agent_named(archive, agent_version_id)
    release = released_at(archive, agent)
    if release is None:
        raise Denied(Denial.ARTIFACT_NOT_RELEASED)
    return json_answer(shapes.agent_version(archive, agent, release))


@router.get("/agent-versions/{agent_version_id}/status")
async def agent_version_status(archive: Recorded, agent_version_id: UUID) -> Response:
    """Where an agent version stands; never withheld."""
    agent = agent_named(archive, agent_version_id)
    release = released_at(archive, agent)
    return json_answer(shapes.agent_status(archive, agent, release, code_available_at(archive, agent)))


@router.get("/agent-versions/{agent_version_id}/runs")
async def agent_version_runs(archive: Recorded, agent_version_id: UUID) -> Response:
    """Every run of an agent version, unpaged."""
    agent = agent_named(archive, agent_version_id)
    return json_answer([shapes.run(archive, run) for run in archive.runs_of.get(agent.agent_version_id, [])])


@router.get("/agent-versions/{agent_version_id}/problems")
async def agent_version_problems(
    archive: Recorded, agent_version_id: UUID, phase: str | None = None, race_id: UUID | None = None
) -> Response:
    """Per problem, what each validator reported."""
    agent = agent_named(archive, agent_version_id)
    runs = [
        run
        for run in archive.runs_of.get(agent.agent_version_id, [])
        if phase in (None, run.phase) and (race_id is None or run.race_id == str(race_id))
    ]
    suite = archive.suites[agent.suite_id]
    problems = [
        shapes.problem_progress(run, item) for run in runs for item in run.items if isinstance(item, LegacyItem)
    ]
    generated = [shapes.generated_result(archive, run) for run in runs if run.execution_kind == ENVPACK]
    return json_answer(
        {
            "agent_version_id": agent.agent_version_id,
            "suite_id": agent.suite_id,
            "problems": problems,
            "generated_results": generated,
            "qualifying_tasks": list(suite.tasks.values()),
        }
    )


@router.get("/evaluation-runs/{eval_run_id}")
async def evaluation_run(archive: Recorded, eval_run_id: UUID) -> Response:
    """One run with its items."""
    return json_answer(shapes.run_detail(archive, run_named(archive, eval_run_id)))


@router.get("/suites")
async def suites(archive: Recorded) -> Response:
    """All suites, newest first."""
    newest_first = sorted(archive.suites.values(), key=lambda suite: suite.suite_id, reverse=True)
    return json_answer([shapes.suite(suite) for suite in newest_first])


@router.get("/suites/current")
async def current_suite(archive: Recorded) -> Response:
    """The active suite."""
    return json_answer(shapes.suite(suite_named(archive, None)))


@router.get("/suites/{suite_id}/problems")
async def suite_problems(archive: Recorded, suite_id: int) -> Response:
    """The public problems of a suite."""
    return json_answer(shapes.suite_with_problems(suite_named(archive, suite_id)))


@router.get("/leaderboard")
async def leaderboard(
    archive: Recorded, suite_id: int | None = None, limit: Limit = 100, offset: Offset = 0
) -> Response:
    """Agent versions by qualifying score."""
    return json_answer(history.leaderboard(archive, suite_named(archive, suite_id), limit, offset))


@router.get("/trajectories/history")
async def trajectories_history(archive: Recorded) -> Response:
    """Distinct trajectories by day."""
    return json_answer(history.trajectories(archive, datetime.now(UTC)))
