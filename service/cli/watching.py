"""How far the work has come, looked up and shown: bars on a terminal, plain lines elsewhere. Always on stderr."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from sqlalchemy import Engine

from service.cli.output import note, notes
from service.domain.policy import DEFAULT_POLICIES
from service.store import ledger, walks
from service.store import progress as left
from service.store.engine import reading
from service.store.models import LedgerState

SETTLED = frozenset({LedgerState.FETCHED, LedgerState.GONE})
LINE_SECONDS = 5.0
"""Plain lines come no faster than this."""


class Look(NamedTuple):
    """One look at the work."""

    items: int
    """Items the source has announced."""
    settled: int
    """Those that are fetched, or known not to exist."""
    walked: bool
    """Whether a walk begun since the start has been completed."""
    errors: list[str]
    """Why walks begun since the start were broken off."""
    left: left.Progress

    @property
    def is_done(self) -> bool:
        """Whether the source has nothing more to give and no stage has anything to do."""
        return self.walked and self.left.idle

    @property
    def doing(self) -> str:
        """What is being worked on."""
        stages = {
            "walking the source": not self.walked or self.left.walking,
            "harvesting": bool(self.left.items_pending),
            "judging": self.left.unjudged,
            "clustering": self.left.clustering_due,
            "drawing pools": self.left.assignment_due,
            "releasing": self.left.release_due,
        }
        return next((name for name, is_due in stages.items() if is_due), "up to date")


def look(engine: Engine, begun: int) -> Look:
    """Look once.

    Args:
        engine: the database.
        begun: number of the last walk that began before the start.
    """
    with reading(engine) as session:
        counts = ledger.counts(session)
        return Look(
            items=sum(count.items for count in counts),
            settled=sum(count.items for count in counts if count.state in SETTLED),
            walked=walks.completed_after(session, begun),
            errors=walks.errors_after(session, begun),
            left=left.progress(session, DEFAULT_POLICIES, datetime.now(UTC)),
        )


class View(Protocol):
    """Where looks are shown."""

    def show(self, seen: Look) -> None: ...  # noqa: D102


class _Lines:
    """A line when something has changed."""

    def __init__(self) -> None:
        self._last = ""
        self._shown_at = -LINE_SECONDS

    def show(self, seen: Look) -> None:
        line = f"{seen.doing}: {seen.settled:,} of {seen.items:,} items settled"
        if line != self._last and time.monotonic() - self._shown_at >= LINE_SECONDS:
            self._last, self._shown_at = line, time.monotonic()
            note(line)


class _Bars:
    """One bar that renews itself."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task = bars.add_task("starting", total=None)

    def show(self, seen: Look) -> None:
        self._bars.update(
            self._task, description=seen.doing, completed=seen.settled, total=seen.items or None, refresh=True
        )


@contextmanager
def view() -> Iterator[View]:
    """Bars on a terminal, lines elsewhere."""
    if not notes.is_terminal:
        yield _Lines()
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description:<18}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("items"),
    )
    with Progress(*columns, console=notes, transient=True) as bars:
        yield _Bars(bars)
