"""What in the source's answers was not as known: counted and logged, never fatal. Keeps no rows."""

import logging
import threading
from collections import Counter
from enum import StrEnum

log = logging.getLogger(__name__)


class Oddity(StrEnum):
    """One way in which an answer differs from what this code was written against."""

    MALFORMED_ROW = "malformed_row"
    """A row without a field it is worthless without; it was skipped."""
    DEAD_LINK = "dead_link"
    """A race, suite or leaderboard that is listed and, when asked for, is not there; it was skipped."""
    DUPLICATE_ROW = "duplicate_row"
    """A row whose id an earlier one of the same listing has; it was skipped."""
    ENDLESS_LISTING = "endless_listing"
    """A paged listing that has more pages than anything real; the rest was not asked for."""
    UNKNOWN_EXECUTION_KIND = "unknown_execution_kind"
    """A run or suite whose wire format nobody here can read; it was skipped."""
    UNKNOWN_STATUS = "unknown_status"
    """A status outside the known ones; kept as it is."""
    UNKNOWN_FIELD = "unknown_field"
    """A field outside the known ones; kept where its row is stored as it came."""


class Oddities:
    """Counts by (kind, where), shared by the threads of one process. The first of each is logged."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[Oddity, str]] = Counter()
        self._lock = threading.Lock()

    def note(self, oddity: Oddity, where: str) -> None:
        """Count one; `where` names a shape and a field or value, never a whole row."""
        where = where[:200]
        with self._lock:
            self._counts[oddity, where] += 1
            first = self._counts[oddity, where] == 1
        if first:
            log.warning("the source answered oddly: %s: %r", oddity.value, where)

    def counts(self) -> dict[Oddity, int]:
        """How often each kind was met."""
        totals: Counter[Oddity] = Counter()
        with self._lock:
            for (oddity, _), count in self._counts.items():
                totals[oddity] += count
        return dict(totals)
