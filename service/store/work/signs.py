"""Signs that work goes on: the newest row each stage has written, and who holds a lease. Judges nothing.

They serve to tell a long piece of work from one that is tried in vain again and again: work that goes on either writes
or holds one and the same lease, while each new try takes a new one.
"""

from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.store.models import Clustering, Lease, PoolAssignment, Release, Verdict


class Standing(NamedTuple):
    """The signs at one moment."""

    newest: tuple[int, ...]
    """Numbers of the newest verdict, clustering, assignment and release."""
    leases: frozenset[tuple[str, int]]
    """Name and fencing token of every lease that is held."""


def standing(session: Session) -> Standing:
    """Look for the signs."""
    numbers = (Verdict.verdict_id, Clustering.clustering_id, PoolAssignment.assignment_id, Release.release_id)
    held = session.execute(select(Lease.name, Lease.token).where(Lease.expires_at > func.now()))
    return Standing(
        newest=tuple(session.scalar(select(func.max(number))) or 0 for number in numbers),
        leases=frozenset((name, token) for name, token in held),
    )
