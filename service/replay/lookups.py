"""Find what a request names in the archive, or deny it with the documented code. Holds no route."""

from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request

from service.replay.answers import Denial, Denied
from service.replay.recorded import AgentVersion, Archive, Race, Run, Suite


def archive_of(request: Request) -> Archive:
    """The archive this server serves."""
    archive: Archive = request.app.state.archive
    return archive


Recorded = Annotated[Archive, Depends(archive_of)]
"""The same, as a route asks for it."""


def race_named(archive: Archive, race_id: UUID) -> Race:
    """The race, or RACE_NOT_FOUND."""
    race = archive.races.get(str(race_id))
    if race is None:
        raise Denied(Denial.RACE_NOT_FOUND)
    return race


def agent_named(archive: Archive, agent_version_id: UUID) -> AgentVersion:
    """The agent version, or AGENT_VERSION_NOT_FOUND."""
    agent = archive.agents.get(str(agent_version_id))
    if agent is None:
        raise Denied(Denial.AGENT_VERSION_NOT_FOUND)
    return agent


def run_named(archive: Archive, eval_run_id: UUID) -> Run:
    """The run, or EVAL_RUN_NOT_FOUND."""
    run = archive.runs.get(str(eval_run_id))
    if run is None:
        raise Denied(Denial.EVAL_RUN_NOT_FOUND)
    return run


def suite_named(archive: Archive, suite_id: int | None) -> Suite:
    """The suite (None: the active one), or SUITE_NOT_FOUND."""
    active = next((suite for suite in archive.suites.values() if suite.is_active), None)
    suite = active if suite_id is None else archive.suites.get(suite_id)
    if suite is None:
        raise Denied(Denial.SUITE_NOT_FOUND)
    return suite


def code_available_at(archive: Archive, agent: AgentVersion) -> datetime | None:
    """When the version's code becomes public, which may lie ahead: None while a race of it is in flight."""
    runs = archive.runs_of.get(agent.agent_version_id, [])
    if any(archive.withheld(run) for run in runs):
        return None
    if agent.code_available_at is not None:
        return agent.code_available_at
    ends = (archive.races[run.race_id].completed_at for run in runs if run.race_id)
    return max((end for end in ends if end), default=agent.submitted_at)


def released_at(archive: Archive, agent: AgentVersion) -> datetime | None:
    """When the version's code became public: None while it is not."""
    available = code_available_at(archive, agent)
    return available if available is not None and available <= datetime.now(UTC) else None
