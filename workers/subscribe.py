"""Subscribe: walk over the source's races and note every item that can be harvested. Fetches no item."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.orm import Session

from service.errors import SluiceError
from service.source.calls import SourceRefused
from service.source.listing import RaceListing, RunListing
from service.source.refusals import Refusal
from service.store import ledger, listings, walks
from service.store.engine import is_about_values, transaction
from service.store.models import Base
from workers import listed
from workers.context import Context

UNSTORABLE = "unstorable"
"""Counted beside the source's oddities: rows that the database does not take."""

Listed = TypeVar("Listed", bound=Base)

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Walk:
    """What one walk has seen so far."""

    runs: int = 0
    items: int = 0
    """Items that were new to the ledger."""
    complete_races: set[str] = field(default_factory=set)
    """Races that are over, with every agent's runs seen in this walk."""
    refusals: Counter[str] = field(default_factory=Counter)
    """What could not be listed or stored, by why not."""


def walk(context: Context) -> None:
    """Walk once over all races the source lists; what is known to be complete is not asked for again.

    Raises:
        SluiceError: the source did not answer, or the process is asked to stop.
        SQLAlchemyError: the database did not answer. In all cases the walk is noted as broken off, and what it saw is
            kept.
    """
    with transaction(context.engine) as session:
        walk_id = walks.begin(session)
    seen = Walk()
    odd_before = _oddities(context)
    try:
        races = _walk_source(context, seen)
    except (SluiceError, SQLAlchemyError) as error:
        reason = str(error) if isinstance(error, SluiceError) else f"the database refused it ({type(error).__name__})"
        with transaction(context.engine) as session:
            walks.break_off(session, walk_id, reason)
        raise
    with transaction(context.engine) as session:
        listings.mark_races_walked(session, seen.complete_races, context.now())
        walks.finish(
            session,
            walk_id,
            races=len(races),
            runs=seen.runs,
            items=seen.items,
            oddities=_oddities(context) - odd_before + seen.refusals,
        )


def _oddities(context: Context) -> Counter[str]:
    return Counter({oddity.value: count for oddity, count in context.source.oddities.counts().items()})


def _walk_source(context: Context, seen: Walk) -> list[RaceListing]:
    """Problems, races, then the runs of every agent. Races come first: an agent's runs lead into several of them."""
    with transaction(context.engine) as session:
        walked = listings.walked_races(session)
        settled = listings.settled_agents(session)
    _save([listed.problem(problem) for problem in context.source.problems()], listings.save_problems, context, seen)
    races = list(context.source.races(skip=walked))
    racing = {agent.agent_version_id: agent for race in races for agent in race.agents}
    others = (agent for agent in context.source.agents() if agent.agent_version_id not in settled)
    agents = {agent.agent_version_id: agent for agent in others} | racing
    _save([listed.race(race) for race in races], listings.save_races, context, seen)
    _save([listed.agent(agent) for agent in agents.values()], listings.save_agents, context, seen)
    walked_agents = {agent for agent in agents if _try_agent(agent, context, seen)}
    for race in races:
        if race.is_complete and walked_agents.issuperset(agent.agent_version_id for agent in race.agents):
            seen.complete_races.add(race.race_id)
    return races


def _save(
    rows: Sequence[Listed], save: Callable[[Session, Sequence[Listed]], None], context: Context, seen: Walk
) -> None:
    """Save rows that strangers wrote; one that the database does not take holds up no other."""
    try:
        with transaction(context.engine) as session:
            save(session, rows)
    except DBAPIError as fault:
        if not is_about_values(fault):
            raise
        if len(rows) == 1:
            log.warning("a row cannot be stored: %s", type(fault.orig).__name__)
            seen.refusals[UNSTORABLE] += 1
            return
        for row in rows:
            _save([row], save, context, seen)


def _try_agent(agent_version_id: str, context: Context, seen: Walk) -> bool:
    """Walk one agent version; False when the source refused it and may give it yet. That holds up no other."""
    try:
        _walk_agent(agent_version_id, context, seen)
    except SourceRefused as refused:
        if refused.reason.is_about_source and refused.reason is not Refusal.UPSTREAM_ERROR:
            raise
        log.warning("agent version %.60r cannot be listed: %s", agent_version_id, refused.reason)
        seen.refusals[refused.reason.value] += 1
        return refused.reason.terminal
    except DBAPIError as fault:
        if not is_about_values(fault):
            raise
        log.warning("agent version %.60r cannot be stored: %s", agent_version_id, type(fault.orig).__name__)
        seen.refusals[UNSTORABLE] += 1
        return False
    return True


def _walk_agent(agent_version_id: str, context: Context, seen: Walk) -> None:
    """List the runs of one agent version, and the items of each that counts and has been released."""
    runs = context.source.runs(agent_version_id)
    with transaction(context.engine) as session:
        races = {(run.race_id, run.suite_id) for run in runs if run.race_id is not None}
        complete = listings.save_unlisted_races(session, races)
        listings.save_runs(session, [listed.run(run) for run in runs])
        done = listings.listed_runs(session, agent_version_id)
    seen.runs += len(runs)
    for run in runs:
        released = run.race_id is None or run.race_id in complete
        if run.counts and released and run.eval_run_id not in done:
            _list_items(run, context, seen)


def _list_items(run: RunListing, context: Context, seen: Walk) -> None:
    """Put the items of a run that are released into the ledger."""
    given = context.source.items(run)
    released = [item for item in given.items if item.released]
    with transaction(context.engine) as session:
        listings.save_problems(session, [listed.item_problem(item, run.suite_id) for item in released])
        seen.items += ledger.expect(session, [listed.expected_item(item) for item in released], context.now())
        if given.complete:
            listings.mark_run_listed(session, run.eval_run_id, context.now())
