"""How much is left to do, over all stages: what the sweep sends by, and how `--once` knows that it is done."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from service.domain.policy import Policies
from service.store.harvest import ledger, walks
from service.store.work import backlog


@dataclass(frozen=True, slots=True)
class Progress:
    """What each stage has left. Counts, and booleans for the stages that work on the whole corpus."""

    walking: bool
    """The newest walk over the source has not been completed."""
    items_pending: int
    """See `ledger.pending`."""
    unjudged: bool
    clustering_due: bool
    assignment_due: bool
    release_due: bool
    requests_due: bool = False
    """Somebody asked for a snapshot and has no answer."""
    code_due: bool = False
    """Released code has not been scanned, or has not become evidence of every trajectory it is about."""

    @property
    def harvested(self) -> bool:
        """Whether the source has nothing more to give for now, and everything it gave has been judged."""
        return not (self.walking or self.items_pending or self.code_due or self.unjudged)

    @property
    def idle(self) -> bool:
        """Whether no stage has anything to do."""
        return self.harvested and not (
            self.clustering_due or self.assignment_due or self.release_due or self.requests_due
        )


def progress(session: Session, policies: Policies, now: datetime) -> Progress:
    """Look at every stage's backlog."""
    return Progress(
        walking=walks.incomplete(session),
        items_pending=ledger.pending(session, now),
        unjudged=bool(backlog.trajectories_unjudged(session, policies.rules.digest, 1)),
        clustering_due=backlog.clustering_due(session, policies.leaks.digest, policies.rules.digest),
        assignment_due=backlog.assignment_due(session, policies.pools.digest),
        release_due=backlog.release_due(session, policies),
        requests_due=backlog.requests_due(session),
        code_due=backlog.code_due(session, policies.leaks.families.digest),
    )
