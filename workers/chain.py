"""Follow the subnet's chain: store the metagraph at each race's close, once, and keep the newest. Judges nothing.

Every write may be repeated or made beside another worker's: a race's metagraph is written once, the newest only grows.
"""

import logging
from datetime import datetime

from service.domain.sn15.metagraph import BLOCK_SECONDS, REFRESH_BLOCKS, MetagraphReading, blocks_between
from service.source.chain.answers import ChainRefusal, ChainRefused
from service.source.chain.node import Chain, open_chain
from service.store.engine import reading, transaction
from service.store.harvest import chain as stored
from service.store.harvest.chain import ClosedRace
from workers.context import Context

FIRST_LOOK_SECONDS = 1.0
"""Pause between looks until the first header has come; then they come a block's time apart."""

log = logging.getLogger(__name__)


def follow(context: Context) -> None:
    """Follow the chain that the settings name until the process is asked to stop.

    Raises:
        SluiceError: PREREQUISITE_MISSING or BAD_INPUT; never for what a node does.
        SQLAlchemyError: the database did not answer.
    """
    with open_chain(context.settings) as chain:
        follower = Follower(context, chain)
        while not context.stopping.wait(BLOCK_SECONDS if chain.head else FIRST_LOOK_SECONDS):
            if chain.head or chain.refusal:
                follower.look()


class Follower:
    """Looks at the chain and at the races that are over, and stores what is missing."""

    def __init__(self, context: Context, chain: Chain) -> None:
        self._context = context
        self._chain = chain
        self._newest: MetagraphReading | None = None
        self._complaint: str | None = None

    def look(self) -> None:
        """Look once. What the chain refuses is put off to the next look."""
        try:
            self._keep_newest()
            self._record_closes()
        except ChainRefused as refused:
            self._complain(refused.reason)
            return
        self._complain("silent" if self._chain.is_silent(self._context.now()) else None)

    def _keep_newest(self) -> None:
        head = self._chain.head
        if head and self._newest and head.block < self._newest.block + REFRESH_BLOCKS:
            return
        present = self._chain.metagraph()
        with transaction(self._context.engine) as session:
            stored.save_newest(session, present)
        self._newest = present

    def _record_closes(self) -> None:
        with reading(self._context.engine) as session:
            closed = stored.races_without(session)
        for race in closed:
            if self._context.stopping.is_set():
                return
            try:
                self._record_close(race)
            except ChainRefused as refused:
                if refused.reason.is_about_node:
                    raise
                if refused.reason is not ChainRefusal.AHEAD:
                    log.info("no metagraph of race %.60r yet: %s", race.race_id, refused.reason)

    def _record_close(self, race: ClosedRace) -> None:
        try:
            taken, is_late = self._chain.metagraph(self._chain.block_at(race.completed_at)), False
        except ChainRefused as refused:
            if refused.reason is not ChainRefusal.STATE_DISCARDED:
                raise
            taken, is_late = self._after(race.completed_at), True
        lag_blocks = blocks_between(race.completed_at, taken.at) if is_late else 0
        with transaction(self._context.engine) as session:
            stored.save_of_race(session, race.race_id, taken, lag_blocks, is_late=is_late)
        _log_close(race, taken, lag_blocks)

    def _after(self, moment: datetime) -> MetagraphReading:
        """A reading of the present, which is after any close whose state is discarded; one serves many races."""
        if self._newest is not None and self._newest.at >= moment:
            return self._newest
        return self._chain.metagraph()

    def _complain(self, complaint: str | None) -> None:
        """Say a thing once, not every twelve seconds."""
        if complaint != self._complaint:
            if complaint is None:
                log.info("the chain is followed again")
            else:
                log.warning("the chain gives nothing now (%s); what was read of it grows stale", complaint)
        self._complaint = complaint


def _log_close(race: ClosedRace, taken: MetagraphReading, lag_blocks: int) -> None:
    late = f", {lag_blocks} blocks late" if lag_blocks else ""
    log.info("race %.60r: %d neurons at block %d%s", race.race_id, len(taken.neurons), taken.block, late)
