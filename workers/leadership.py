"""One at a time: do long work while holding a lease that is renewed beside it. Knows nothing of the work."""

import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from service.store.engine import transaction
from service.store.work import leases
from service.store.work.leases import LeaseName

LEASE_SECONDS = 15.0
"""A dead holder blocks the work for so long at most."""
RENEWALS = 3
"""Tries to renew within one lease."""

log = logging.getLogger(__name__)


def holder_name() -> str:
    """Name of this thread among all workers on all machines."""
    return f"{socket.gethostname()}/{os.getpid()}/{threading.get_ident()}"


@contextmanager
def held(engine: Engine, name: LeaseName) -> Iterator[int | None]:
    """Hold a lease while the block runs.

    Yields:
        The fencing token to give to `leases.require` in the transaction that writes the result, or None while
        another worker holds the lease.
    """
    with transaction(engine) as session:
        token = leases.acquire(session, name, holder_name(), LEASE_SECONDS)
    if token is None:
        yield None
        return
    done = threading.Event()
    keeper = threading.Thread(target=_keep, args=(engine, name, token, done), name=f"lease-{name}", daemon=True)
    keeper.start()
    try:
        yield token
    finally:
        done.set()
        keeper.join()
        with transaction(engine) as session:
            leases.let_go(session, name, token)


def _keep(engine: Engine, name: LeaseName, token: int, done: threading.Event) -> None:
    while not done.wait(LEASE_SECONDS / RENEWALS):
        try:
            with transaction(engine) as session:
                if not leases.renew(session, name, token, LEASE_SECONDS):
                    log.warning("the lease %s has passed to another worker", name)
                    return
        except SQLAlchemyError as error:
            # The database being away for a moment is not the end of the work: `require` decides at its end.
            log.warning("the lease %s could not be renewed: %s", name, type(error).__name__)
