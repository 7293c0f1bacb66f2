"""A small archive behind a server with faults, and one harvest of it in this process."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree

import pytest
from sqlalchemy import func, update

from service.config import Settings
from service.errors import SluiceError
from service.queue.broker import open_broker
from service.replay.archive import read_archive
from service.replay.faults import Fault, Faults
from service.replay.recorded import Archive, LegacyItem
from service.replay.server import Replay, replaying
from service.source.http.budget import Unthrottled
from service.source.http.calls import open_client
from service.source.oro.source import OroSource
from service.store.engine import open_engine, reading, transaction
from service.store.harvest import ledger
from service.store.models import EvaluationRun, LedgerItem
from service.store.release.files import FileStore
from service.world.demo import DemoSize, write_demo
from tests.faults.released import Items, exactly_released, harvested
from tests.workers import late
from workers.context import Context
from workers.stages import ingest
from workers.subscribe import walk

TINY = DemoSize(families=60, race_problems=3, repeated=1, qualifying_problems=3, episodes=2)
AGENTS = ("aster", "briar", "juniper", "dogwood", "kelp", "nettle")
"""Some raced twice, some were run by two validators, some qualified: enough to go wrong in every way."""
EVER = 1_000_000
"""More times than anything happens in a test."""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two legacy races and an envpack race, tiny."""
    made = tmp_path_factory.mktemp("archive")
    write_demo(made, size=TINY)
    for agent in made.glob("*/*"):
        if agent.is_dir() and agent.name.partition(".")[0] not in AGENTS:
            rmtree(agent)
    return made


def recorded(folder: Path) -> Archive:
    """The archive, of which two problems have no object."""
    archive = read_archive(folder)
    legacy = [run for run in archive.runs.values() if isinstance(run.items[0], LegacyItem)]
    for run in (legacy[0], legacy[-1]):
        archive.replace(replace(run, items=(replace(run.items[0], packed=None), *run.items[1:])))
    return archive


@pytest.fixture
def replay(folder: Path) -> Iterator[Replay]:
    with replaying(recorded(folder), faults=Faults()) as server:
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

    @contextmanager
    def impatient(self, seconds: float) -> Iterator["Harvest"]:
        """The same harvest, with a client that waits no longer than this."""
        with hurried(self.replay, seconds) as source:
            yield replace(self, context=replace(self.context, source=source))

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


@contextmanager
def hurried(replay: Replay, timeout_seconds: float = 20.0) -> Iterator[OroSource]:
    """A client with backoffs of milliseconds."""
    with open_client(timeout_seconds) as client:
        yield OroSource(replay.url, Unthrottled(), client, backoff_seconds=0.002)


@pytest.fixture
def harvest(database_url: str, redis_url: str, replay: Replay, tmp_path: Path) -> Iterator[Harvest]:
    settings, engine = Settings(source_url=replay.url, data_dir=tmp_path), open_engine(database_url)
    with hurried(replay) as source:
        broker, files = open_broker(redis_url), FileStore(settings.snapshot_dir)
        yield Harvest(Context(settings, engine, broker, source, files, count_tokens=len), replay)
    engine.dispose()
