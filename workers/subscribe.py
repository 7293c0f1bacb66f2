"""Subscribe: walk over the source's races and note every item that can be harvested. Fetches no item.

What is complete is listed again from time to time, within an allowance of requests: what has changed since becomes
tombstones, new evidence, and items to be asked for again. `domain.rereading` decides when.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TypeVar

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.orm import Session

from service.domain.harvest.rereading import IN_MOTION, ITEMS, allowance, due
from service.domain.sn15.tombstones import Subject
from service.domain.trajectory import ExecutionKind
from service.errors import SluiceError
from service.source.http.calls import SourceRefused
from service.source.oro.listing import VOLATILE_RUN_FIELDS, AgentListing, RaceListing, RunListing
from service.source.oro.publications import agents_of
from service.source.refusals import Refusal
from service.store.corpus import tombstones
from service.store.engine import is_about_values, transaction
from service.store.harvest import ledger, listings, relisting, rereading, resting, walks
from service.store.models import Base
from workers import listed, standings
from workers.context import Context
from workers.retries import listing_due

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
    spare_requests: int = 0
    """Requests that may still be spent on what is complete."""
    problems: dict[str, int] = field(default_factory=dict)
    """Hash of what was last saved of each problem that items name: every run of a race names the same ones."""
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
    seen = Walk(spare_requests=allowance(context.settings.requests_per_minute, context.settings.poll_seconds))
    odd_before = _oddities(context)
    try:
        races = _walk_source(context, seen)
    except (SluiceError, SQLAlchemyError) as error:
        reason = str(error) if isinstance(error, SluiceError) else f"the database refused it ({type(error).__name__})"
        with transaction(context.engine) as session:
            walks.break_off(session, walk_id, reason)
        raise
    with transaction(context.engine) as session:
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
        walked = rereading.race_readings(session)
        read = {reading.name for reading in rereading.agent_readings(session)}
    again = set(due(walked, context.now())[: seen.spare_requests])
    seen.spare_requests -= len(again)
    _save([listed.problem(problem) for problem in context.source.problems()], listings.save_problems, context, seen)
    races = list(context.source.races(skip={reading.name for reading in walked} - again))
    standing = list(context.source.leaderboards())
    board = agents_of(standing)
    racing = {agent.agent_version_id: agent for race in races for agent in race.agents}
    agents = {agent.agent_version_id: agent for agent in board if agent.agent_version_id not in read} | racing
    at = context.now()
    _save([listed.race(race, at) for race in races], listings.save_races, context, seen)
    _save([listed.agent(agent) for agent in agents.values()], listings.save_agents, context, seen)
    standings.mirror(races, standing, context, partial(_save, context=context, seen=seen))
    _take_words(board, races, again, context)
    _walk_agents(races, context, seen)
    with transaction(context.engine) as session:
        unread = _unread(session, races)
        complete = [race_id for race_id, agents in unread.items() if not agents]
        rereading.mark_races_walked(session, complete, context.now())
        rereading.mark_races_read(session, again, context.now())
    return races


def _take_words(
    board: Sequence[AgentListing], races: Sequence[RaceListing], again: Collection[str], context: Context
) -> None:
    """Note which agent versions SN15 has thrown out or taken back, and which races it has called off."""
    spoken = {listed.LEADERBOARD: board} | {race.race_id: race.agents for race in races}
    for listing, agents in spoken.items():
        with transaction(context.engine) as session:
            known = rereading.stored_agents(session, [agent.agent_version_id for agent in agents])
            words = [listed.word_on_agent(agent, listing) for agent in agents if agent.agent_version_id in known]
            changed = tombstones.settle(session, Subject.AGENT_VERSION, [word for word in words if word is not None])
        with transaction(context.engine) as session:
            resting.follow(session, rereading.runs_of_agents(session, changed), context.now())
    off = {race.race_id for race in races if race.is_cancelled}
    with transaction(context.engine) as session:
        resting.follow(session, rereading.runs_of_races(session, off | set(again)), context.now())


def _unread(session: Session, races: Sequence[RaceListing]) -> dict[str, set[str]]:
    agents = {race.race_id: [agent.agent_version_id for agent in race.agents] for race in races}
    return rereading.unread_since_completion(session, agents)


def _walk_agents(races: Sequence[RaceListing], context: Context, seen: Walk) -> None:
    """List the runs of every agent that may bring something new, then of those not looked at for the longest time."""
    with transaction(context.engine) as session:
        unread = [agent for agents in _unread(session, races).values() for agent in sorted(agents)]
        wanted = rereading.wanted_agents(session, context.now(), context.now() - IN_MOTION)
    first = dict.fromkeys([*unread, *sorted(wanted)])
    for agent_version_id in first:
        _try_agent(agent_version_id, context, seen)
    with transaction(context.engine) as session:
        stale = [name for name in due(rereading.agent_readings(session), context.now()) if name not in first]
    for agent_version_id in stale:
        if seen.spare_requests <= 0:
            break
        seen.spare_requests -= 1
        if not _try_agent(agent_version_id, context, seen):
            with transaction(context.engine) as session:
                # It has its turn again; else a few that fail for ever would keep all others from being read.
                rereading.mark_agent_read(session, agent_version_id, context.now())


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
    at = context.now()
    try:
        _walk_agent(agent_version_id, context, seen)
    except SourceRefused as refused:
        if refused.reason.is_about_source and refused.reason is not Refusal.UPSTREAM_ERROR:
            raise
        log.warning("agent version %.60r cannot be listed: %s", agent_version_id, refused.reason)
        seen.refusals[refused.reason.value] += 1
        if not refused.reason.terminal:
            return False
    except DBAPIError as fault:
        if not is_about_values(fault):
            raise
        log.warning("agent version %.60r cannot be stored: %s", agent_version_id, type(fault.orig).__name__)
        seen.refusals[UNSTORABLE] += 1
        return False
    with transaction(context.engine) as session:
        rereading.mark_agent_read(session, agent_version_id, at)
    return True


def _walk_agent(agent_version_id: str, context: Context, seen: Walk) -> None:
    """List the runs of one agent version, and the items of each that counts and has been released."""
    runs = context.source.runs(agent_version_id)
    with transaction(context.engine) as session:
        races = {(run.race_id, run.suite_id) for run in runs if run.race_id is not None}
        complete = listings.save_unlisted_races(session, races)
        before = listings.listed_runs(session, agent_version_id)
        listings.save_runs(session, [listed.run(run) for run in runs], VOLATILE_RUN_FIELDS)
        known = ledger.known_runs(session, [run.eval_run_id for run in runs])
        tombstones.settle(session, Subject.RUN, [listed.word_on_run(run) for run in runs if run.eval_run_id in known])
    with transaction(context.engine) as session:
        resting.follow(session, known, context.now())
        listed_at = listings.listed_runs(session, agent_version_id)
        waiting = listings.waiting_runs(session, agent_version_id, context.now())
    seen.runs += len(runs)
    for run in runs:
        released = run.race_id is None or run.race_id in complete
        if not (run.counts and released) or run.eval_run_id in waiting:
            continue
        if run.eval_run_id in listed_at and not _is_stale(run, listed_at[run.eval_run_id], context, seen):
            continue
        if run.eval_run_id in before:
            seen.spare_requests -= 1 if run.kind is ExecutionKind.ENVPACK else 2
        _try_items(run, context, seen)


def _try_items(run: RunListing, context: Context, seen: Walk) -> None:
    """List the items of one run; one that cannot be listed is put off as if it were withheld, and holds up no other."""
    try:
        _list_items(run, context, seen)
        return
    except SourceRefused as refused:
        if refused.reason.is_about_source and refused.reason is not Refusal.UPSTREAM_ERROR:
            raise
        reason = refused.reason.value
    except DBAPIError as fault:
        if not is_about_values(fault):
            raise
        reason = UNSTORABLE
    log.warning("the items of run %.60r cannot be listed: %s", run.eval_run_id, reason)
    seen.refusals[reason] += 1
    with transaction(context.engine) as session:
        attempts = listings.listing_attempts(session, run.eval_run_id)
        until = listing_due(withheld=True, attempts=attempts, now=context.now())
        listings.put_off_listing(session, run.eval_run_id, until)


def _is_stale(run: RunListing, listed_at: datetime, context: Context, seen: Walk) -> bool:
    """Whether to list again items of which nothing says that they have changed, as far as the allowance goes."""
    return seen.spare_requests > 0 and ITEMS.is_due(listed_at, run.completed_at, context.now())


def _list_items(run: RunListing, context: Context, seen: Walk) -> None:
    """Put the items of a run that are released into the ledger, or what they are listed as now."""
    given = context.source.items(run)
    released = [item for item in given.items if item.released]
    expected = [listed.expected_item(item) for item in released]
    told = {item.problem_id: hash((item.kind, item.category, item.query, run.suite_id)) for item in released}
    new = [item for item in released if seen.problems.get(item.problem_id) != told[item.problem_id]]
    now = context.now()
    with transaction(context.engine) as session:
        listings.save_problems(session, [listed.item_problem(item, run.suite_id) for item in new])
        seen.items += ledger.expect(session, expected, now)
        relisting.relist(session, expected, now)
        if given.complete:
            relisting.ask_for_unlisted(session, run.eval_run_id, [item.item_key for item in released], now)
            listings.mark_run_listed(session, run.eval_run_id, now)
        else:
            attempts = listings.listing_attempts(session, run.eval_run_id)
            until = listing_due(withheld=given.withheld, attempts=attempts, now=now)
            listings.put_off_listing(session, run.eval_run_id, until)
        resting.follow(session, [run.eval_run_id], now)
    seen.problems |= told
