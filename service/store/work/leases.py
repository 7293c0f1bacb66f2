"""Leases for long work: one holder at a time, with a token that fences off the one before. Holds no lock."""

from enum import StrEnum

from sqlalchemy import func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from service.errors import ErrorCode, SluiceError
from service.store.models import Lease


class LeaseName(StrEnum):
    """What only one worker does at a time."""

    SUBSCRIBE = "subscribe"
    SWEEP = "sweep"
    CHAIN = "chain"
    WATCH = "watch"
    SCAN = "scan"
    INSPECT = "inspect"
    CLUSTER = "cluster"
    PUBLICATION = "publication"
    """Assign and snapshot, which must not run beside each other: pools follow from what was published."""


def acquire(session: Session, name: LeaseName, holder: str, seconds: float) -> int | None:
    """Take the lease if it is free, expired or ours already.

    Returns:
        The fencing token to give to `require`, or None while someone else holds the lease.
    """
    expires = func.now() + text(f"interval '{float(seconds)} seconds'")
    statement = insert(Lease).values(name=name, holder=holder, token=1, expires_at=expires)
    return session.scalar(
        statement.on_conflict_do_update(
            index_elements=["name"],
            set_={"holder": holder, "token": Lease.token + 1, "expires_at": expires},
            where=(Lease.expires_at < func.now()) | (Lease.holder == holder),
        ).returning(Lease.token)
    )


def renew(session: Session, name: LeaseName, token: int, seconds: float) -> bool:
    """Extend a lease we hold; False when it has passed to someone else."""
    expires = func.now() + text(f"interval '{float(seconds)} seconds'")
    statement = update(Lease).where(Lease.name == name, Lease.token == token).values(expires_at=expires)
    return session.scalar(statement.returning(Lease.token)) is not None


def require(session: Session, name: LeaseName, token: int) -> None:
    """Hold the lease row to the end of this transaction, so that its writes cannot follow a newer holder's.

    Raises:
        SluiceError: LEASE_LOST when the lease has passed on.
    """
    held = session.scalar(select(Lease.token).where(Lease.name == name).with_for_update())
    if held != token:
        raise SluiceError(ErrorCode.LEASE_LOST, f"the lease {name.value!r} has passed to another worker", name=name)


def let_go(session: Session, name: LeaseName, token: int) -> None:
    """Let go of a lease at once; of no effect when it has passed on."""
    session.execute(update(Lease).where(Lease.name == name, Lease.token == token).values(expires_at=func.now()))
