"""How much is left to do, over all stages: what the sweep sends by, and how `--once` knows that it is done."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.domain.policy import Policies
from service.store import backlog, ledger, walks
from service.store.models import LedgerItem, LedgerState

SOON = timedelta(seconds=90)
"""An item that failed and is due again within this time is still being worked on."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What each stage has left. Counts, and booleans for the stages that work on the whole corpus."""

    walking: bool
    """The newest walk over the source has not been completed."""
    items_pending: int
    """Items that are expected, fail and are tried again soon, whose embargo has passed, or that are being fetched."""
    unjudged: bool
    clustering_due: bool
    assignment_due: bool
    release_due: bool

    @property
    def harvested(self) -> bool:
        """Whether the source has nothing more to give for now, and everything it gave has been judged."""
        return not (self.walking or self.items_pending or self.unjudged)

    @property
    def idle(self) -> bool:
        """Whether no stage has anything to do."""
        return self.harvested and not (self.clustering_due or self.assignment_due or self.release_due)


def progress(session: Session, policies: Policies, now: datetime) -> Progress:
    """Look at every stage's backlog."""
    state, due_at = LedgerItem.state, LedgerItem.next_try_at
    pending = select(func.count()).where(
        (state == LedgerState.EXPECTED)
        | ((state == LedgerState.FAILED) & (due_at <= now + SOON))
        | ((state == LedgerState.EMBARGOED) & (due_at <= now))
        | (state.in_(ledger.OPEN_STATES) & LedgerItem.claimed_by.is_not(None))
    )
    return Progress(
        walking=walks.incomplete(session),
        items_pending=session.scalar(pending) or 0,
        unjudged=bool(backlog.trajectories_unjudged(session, policies.rules.digest, 1)),
        clustering_due=backlog.clustering_due(session, policies.leaks.digest, policies.rules.digest),
        assignment_due=backlog.assignment_due(session, policies.pools.digest),
        release_due=backlog.release_due(session, policies.spec.digest),
    )
