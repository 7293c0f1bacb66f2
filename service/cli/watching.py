"""How far the work has come, looked up and shown: bars on a terminal, plain lines elsewhere. Always on stderr."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from rich import progress as bars
from sqlalchemy import Engine

from service.cli.output import note, notes
from service.domain.policy import DEFAULT_POLICIES
from service.store.engine import reading
from service.store.harvest import ledger, walks
from service.store.models import LedgerState
from service.store.work.progress import Progress, progress
from service.store.work.signs import Standing, standing

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
    reasons: dict[str, int]
    """Items that are still to come and were not given, by reason."""
    backlog: Progress
    """What each stage has left."""
    signs: Standing
    """Whether anything moves."""

    @property
    def is_done(self) -> bool:
        """Whether the source has nothing more to give and no stage has anything to do."""
        return self.walked and self.backlog.idle

    @property
    def doing(self) -> str:
        """What is being worked on."""
        stages = {
            "walking the source": not self.walked or self.backlog.walking,
            "harvesting": bool(self.backlog.items_pending),
            "reading released code": self.backlog.code_due,
            "judging": self.backlog.unjudged,
            "clustering": self.backlog.clustering_due,
            "drawing pools": self.backlog.assignment_due,
            "releasing": self.backlog.release_due,
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
        reasons: dict[str, int] = {}
        for count in counts:
            if count.state not in SETTLED and count.reason is not None:
                reasons[count.reason] = reasons.get(count.reason, 0) + count.items
        return Look(
            items=sum(count.items for count in counts),
            settled=sum(count.items for count in counts if count.state in SETTLED),
            walked=walks.completed_after(session, begun),
            errors=walks.errors_after(session, begun),
            reasons=reasons,
            backlog=progress(session, DEFAULT_POLICIES, datetime.now(UTC)),
            signs=standing(session),
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

    def __init__(self, shown: bars.Progress) -> None:
        self._shown = shown
        self._task = shown.add_task("starting", total=None)

    def show(self, seen: Look) -> None:
        self._shown.update(
            self._task, description=seen.doing, completed=seen.settled, total=seen.items or None, refresh=True
        )


@contextmanager
def view() -> Iterator[View]:
    """Bars on a terminal, lines elsewhere."""
    if not notes.is_terminal:
        yield _Lines()
        return
    columns = (
        bars.SpinnerColumn(),
        bars.TextColumn("{task.description:<18}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TextColumn("items"),
    )
    with bars.Progress(*columns, console=notes, transient=True) as shown:
        yield _Bars(shown)
