"""Inspect: ask once a day whether everything published still holds, and say so in the log. Mends nothing."""

import logging
import time

from service.store.engine import reading
from service.store.release import invariants
from workers.context import Context

EVERY_SECONDS = 24 * 3600.0
FIRST_SECONDS = 600.0
"""After a worker has started: it has other things to do then."""

log = logging.getLogger(__name__)


class Inspector:
    """Looks when its time has come. Each worker that holds the lease keeps its own time."""

    def __init__(self) -> None:
        self._due_at = time.monotonic() + FIRST_SECONDS

    def __call__(self, context: Context) -> bool:
        """Inspect if it is time; whether it was."""
        if time.monotonic() < self._due_at:
            return False
        self._due_at = time.monotonic() + EVERY_SECONDS
        inspect(context)
        return True


def inspect(context: Context) -> bool:
    """Ask every question now; whether all is well."""
    with reading(context.engine) as session:
        found = invariants.checks(session, context.files, bytes_too=True)
    for check in found:
        if not check.ok:
            log.error("invariant %s: %d faults, such as %s", check.name, check.count, "; ".join(check.examples))
    log.info("inspected what was published: %d checks", len(found))
    return all(check.ok for check in found)
