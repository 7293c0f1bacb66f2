"""Which agent versions and races are to be listed, for what they may still bring or to see whether they stand.

Queries and marks alone: how long to wait is decided in `domain.rereading`, and a walk does the reading.
"""

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import exists, func, or_, select, update
from sqlalchemy.orm import Session

from service.domain.harvest.rereading import Reading
from service.store.models import AgentVersion, EvaluationRun, Race

_OF_AGENT = EvaluationRun.agent_version_id == AgentVersion.agent_version_id
_OPEN_RACE = ~Race.is_complete & ~Race.is_cancelled
_IN_OPEN_RACE = exists().where(Race.race_id == EvaluationRun.race_id, _OPEN_RACE)
_UNRELEASED = exists().where(Race.race_id == EvaluationRun.race_id, ~Race.is_complete)
_MAY_BRING_MORE = ~EvaluationRun.is_over | (EvaluationRun.counts & EvaluationRun.listed_at.is_(None))
"""A run that is still going on, or that counts and is not wholly in the ledger."""


def wanted_agents(session: Session, now: datetime, in_motion_since: datetime) -> set[str]:
    """Agent versions that have not been read, or that may bring more by now.

    Args:
        session: open transaction.
        now: present time; items that are put off until later do not count.
        in_motion_since: agents with runs that go on, or with none, are wanted when they were last read before.
    """
    brings = exists().where(
        _OF_AGENT,
        EvaluationRun.counts & EvaluationRun.listed_at.is_(None),
        EvaluationRun.next_listing_at.is_(None) | (EvaluationRun.next_listing_at <= now),
        ~_UNRELEASED,
    )
    moves = exists().where(_OF_AGENT, ~EvaluationRun.is_over, EvaluationRun.race_id.is_(None) | _IN_OPEN_RACE)
    is_new = ~exists().where(_OF_AGENT)
    stale = AgentVersion.read_at <= in_motion_since
    wanted = or_(AgentVersion.read_at.is_(None), brings, stale & (moves | is_new))
    return set(session.scalars(select(AgentVersion.agent_version_id).where(wanted)))


def agent_readings(session: Session) -> list[Reading]:
    """When each agent version that was ever read was read last, and when its newest run was complete."""
    rows = session.execute(
        select(AgentVersion.agent_version_id, AgentVersion.read_at, func.max(EvaluationRun.completed_at))
        .join(EvaluationRun, _OF_AGENT, isouter=True)
        .where(AgentVersion.read_at.is_not(None))
        .group_by(AgentVersion.agent_version_id)
    )
    return [Reading(*row) for row in rows]


def race_readings(session: Session) -> list[Reading]:
    """When each race that is known to its end was read last, and when it was complete."""
    last = func.coalesce(Race.read_at, Race.walked_at)
    rows = session.execute(select(Race.race_id, last, Race.completed_at).where(Race.walked_at.is_not(None)))
    return [Reading(*row) for row in rows]


def unread_since_completion(session: Session, agents_by_race: Mapping[str, Collection[str]]) -> dict[str, set[str]]:
    """Of each complete race that is not known to its end, its agents that have not been read since it is complete."""
    since = {
        race_id: at
        for race_id, at in session.execute(
            select(Race.race_id, Race.complete_since).where(
                Race.race_id.in_(agents_by_race), Race.is_complete, Race.walked_at.is_(None)
            )
        )
    }
    everyone = {agent for race_id in since for agent in agents_by_race[race_id]}
    rows = select(AgentVersion.agent_version_id, AgentVersion.read_at).where(
        AgentVersion.agent_version_id.in_(everyone), AgentVersion.read_at.is_not(None)
    )
    read_at = {agent: at for agent, at in session.execute(rows) if at is not None}
    return {
        race_id: {agent for agent in agents_by_race[race_id] if agent not in read_at or (at and read_at[agent] < at)}
        for race_id, at in since.items()
    }


def stored_agents(session: Session, agent_version_ids: Collection[str]) -> set[str]:
    """Those of the agent versions that there is a row of."""
    number = AgentVersion.agent_version_id
    return set(session.scalars(select(number).where(number.in_(agent_version_ids))))


def runs_of_agents(session: Session, agent_version_ids: Collection[str]) -> list[str]:
    """Every run of some agent versions."""
    of_agents = EvaluationRun.agent_version_id.in_(agent_version_ids)
    return list(session.scalars(select(EvaluationRun.eval_run_id).where(of_agents)))


def runs_of_races(session: Session, race_ids: Collection[str]) -> list[str]:
    """Every run of some races."""
    return list(session.scalars(select(EvaluationRun.eval_run_id).where(EvaluationRun.race_id.in_(race_ids))))


def mark_agent_read(session: Session, agent_version_id: str, at: datetime) -> None:
    """Note that the runs of an agent version have been listed."""
    session.execute(update(AgentVersion).where(AgentVersion.agent_version_id == agent_version_id).values(read_at=at))


def mark_races_walked(session: Session, race_ids: Collection[str], at: datetime) -> None:
    """Note of races that every run has been listed, unless one of their runs may bring more.

    A race that was called off brings nothing more, whatever its runs say.
    """
    may_bring_more = exists().where(EvaluationRun.race_id == Race.race_id, _MAY_BRING_MORE)
    over = Race.is_cancelled | (Race.race_id.in_(race_ids) & ~may_bring_more)
    session.execute(update(Race).where(Race.walked_at.is_(None), over).values(walked_at=at))


def mark_races_read(session: Session, race_ids: Collection[str], at: datetime) -> None:
    """Note that races that were known to their end have been listed again."""
    session.execute(update(Race).where(Race.race_id.in_(race_ids), Race.walked_at.is_not(None)).values(read_at=at))
