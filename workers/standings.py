"""Standings: store what the source says of suites, races and leaderboards, and ask for seed commitments.

It harvests nothing and judges nothing: whether a commitment holds is said when it is read.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy.orm import Session

from service.source.http.calls import SourceRefused
from service.source.oro.listing import AgentListing, RaceListing, SuiteListing
from service.source.oro.publications import Standing, board_standing, race_standing
from service.store.engine import reading, transaction
from service.store.harvest import standings
from service.store.models import LeaderboardEntry, RaceEntry, Suite
from workers.context import Context

COMMITMENTS_AT_ONCE = 20
"""Races one walk asks about: one request each."""

SaveRows = Callable[[Sequence[Any], Callable[[Session, Sequence[Any]], None]], None]
"""Saves rows with a function of the store; a row that the database does not take holds up no other."""

log = logging.getLogger(__name__)


def mirror(races: Sequence[RaceListing], board: Sequence[Standing], context: Context, save: SaveRows) -> None:
    """Store the suites and standings that a walk has listed, then ask how commitments stand.

    Args:
        races: with their agents; both are stored already.
        board: of all suites; its agents are stored already.
        context: of the worker.
        save: how rows are saved.
    """
    save([_suite(suite) for suite in context.source.known_suites()], standings.save_suites)
    save([_race_entry(race, agent) for race in races for agent in race.agents], standings.save_race_entries)
    save([_leaderboard_entry(standing) for standing in board], standings.save_leaderboard)
    ask_commitments(context)


def ask_commitments(context: Context) -> None:
    """Ask for the commitments of some races that may have more to say.

    Raises:
        SluiceError: STOPPING.
    """
    with reading(context.engine) as session:
        race_ids = standings.races_to_ask(session, COMMITMENTS_AT_ONCE)
    for race_id in race_ids:
        try:
            record = context.source.seed_commitment(race_id)
        except SourceRefused as refused:
            log.warning("the seed commitment of race %.60r cannot be had: %s", race_id, refused.reason)
            if refused.reason.is_about_source:
                return
            continue
        with transaction(context.engine) as session:
            source = None if record is None else record.raw
            is_revealed = record is not None and record.is_revealed
            if standings.add_commitment(session, race_id, source, is_revealed=is_revealed) and record is not None:
                log.info("race %.60r has published its seed commitment (revealed: %s)", race_id, is_revealed)


def _suite(listed: SuiteListing) -> Suite:
    return Suite(suite_id=listed.suite_id, kind=listed.kind, world=listed.world, source=listed.raw)


def _race_entry(race: RaceListing, agent: AgentListing) -> RaceEntry:
    standing = asdict(race_standing(agent))
    return RaceEntry(race_id=race.race_id, agent_version_id=agent.agent_version_id, source=agent.raw, **standing)


def _leaderboard_entry(listed: Standing) -> LeaderboardEntry:
    agent, standing = listed.agent, asdict(board_standing(listed.agent))
    return LeaderboardEntry(
        suite_id=listed.suite_id, agent_version_id=agent.agent_version_id, source=agent.raw, **standing
    )
