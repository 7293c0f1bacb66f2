"""A small archive behind a server with faults, and one harvest of it in this process."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from sqlalchemy import func, update

from service.config import Settings
from service.errors import SluiceError
from service.replay.archive import read_archive
from service.replay.faults import Fault, Faults
from service.replay.recorded import Archive
from service.replay.server import Replay, replaying
from service.source.budget import Unthrottled
from service.source.calls import open_client
from service.source.oro import OroSource
from service.store import ledger
from service.store.engine import reading, transaction
from service.store.models import EvaluationRun, LedgerItem
from service.world.demo import DemoSize, write_demo
from tests.faults.released import Items, exactly_released, harvested
from tests.workers import late
from workers.context import Context, open_context
from workers.stages import ingest
from workers.subscribe import walk

TINY = DemoSize(families=60, race_problems=2, repeated=1, qualifying_problems=2, episodes=2)
EVER = 1_000_000
"""More times than anything happens in a test."""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two legacy races and an envpack race, tiny."""
    made = tmp_path_factory.mktemp("archive")
    write_demo(made, size=TINY)
    return made


@pytest.fixture
def replay(folder: Path) -> Iterator[Replay]:
    with replaying(read_archive(folder), faults=Faults()) as server:
        yield server


@dataclass(frozen=True, slots=True)
class Harvest:
    """One harvest, and the source that it is from."""

    context: Context
    replay: Replay

    @property
    def archive(self) -> Archive:
        return self.replay.archive

    @property
    def faults(self) -> Faults:
        assert self.replay.faults is not None
        return self.replay.faults

    def add(self, *faults: Fault) -> None:
        for fault in faults:
            self.faults.add(fault)

    def walk(self) -> None:
        """Walk as far as the source lets one. A walk that is refused is what a worker waits out."""
        with suppress(SluiceError):
            walk(self.context)

    def attempt(self) -> None:
        """Walk and fetch as far as the source lets one."""
        self.walk()
        self.fetch()

    def fetch(self) -> None:
        """Ask once for everything that is due."""
        with reading(self.context.engine) as session:
            due = list(ledger.due(session, self.context.now(), 10_000))
        ingest.run(due, self.context, "message")

    def let_time_pass(self, *, days: bool = False) -> None:
        """Let every wait end; `days`: the waits until what is complete is read again too."""
        with transaction(self.context.engine) as session:
            session.execute(update(LedgerItem).values(next_try_at=func.now(), claimed_by=None))
            waiting = EvaluationRun.next_listing_at.is_not(None)
            session.execute(update(EvaluationRun).where(waiting).values(next_listing_at=func.now()))
        if days:
            late.much_later(self.context, items=True)

    def clean_pass(self, *, days: bool = False) -> Items:
        """One pass over a source that behaves, and what is there after it."""
        self.faults.clear()
        self.let_time_pass(days=days)
        walk(self.context)
        self.fetch()
        return harvested(self.context)

    def ends_well(self, *, days: bool = False) -> None:
        """One clean pass, and exactly the released items are there, once each."""
        assert self.faults.happened, "no fault has happened"
        assert self.clean_pass(days=days) == exactly_released(self.archive)


@pytest.fixture
def harvest(database_url: str, redis_url: str, replay: Replay, tmp_path: Path) -> Iterator[Harvest]:
    """A harvest that is in a hurry: backoffs of milliseconds, a second of patience."""
    context = open_context(Settings(source_url=replay.url, data_dir=tmp_path), database_url, redis_url)
    with open_client(timeout_seconds=0.5) as client:
        source = OroSource(replay.url, Unthrottled(context.stopping), client, backoff_seconds=0.002)
        yield Harvest(replace(context, source=source), replay)
    context.engine.dispose()
