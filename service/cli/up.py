"""`sluice up`: start everything, harvest, serve; stop everything. The workers are processes of their own."""

import threading
import time
from typing import Annotated

import typer
from sqlalchemy.exc import OperationalError

from service.api import create_app
from service.cli.checks import check_source, check_validator_side, make_folder
from service.cli.fleet import Fleet, fleet
from service.cli.joined import Joined, joined
from service.cli.options import AsJson, DataDir, Once, Port, settings
from service.cli.output import note, print_summary
from service.cli.serving import serving
from service.cli.stalling import Patience
from service.cli.stopping import stop_on_signals
from service.cli.watching import LINE_SECONDS, Look, look, view
from service.config import Settings
from service.domain.policy import DEFAULT_POLICIES
from service.errors import ErrorCode, SluiceError
from service.source.chain import node as chain
from service.store import origin
from service.store.engine import reading, transaction
from service.store.figures.summary import Summary, summarise
from service.store.harvest import walks
from service.store.release import snapshots
from service.store.release.files import FileStore

TEND_SECONDS = 0.5
"""Pause between two looks at the workers' processes; with `--once` also between two looks at the work."""
LOOK_SECONDS = LINE_SECONDS
"""Pause between two looks at the work of a service that stays."""
LOOK_SHARE = 20.0
"""Looks rest at least so many times as long as they took, so that a large corpus is not counted without end."""
DATABASE_AWAY_SECONDS = 180.0
"""Longer than Postgres takes to recover from a crash. Then `up` ends, so that whoever keeps it running sees it."""
BROKEN_WALKS = 3
"""After so many broken walks in one run, `--once` gives up."""

SourceUrl = Annotated[
    str | None, typer.Option("--source-url", help="ORO's public API, or a replay of it.", show_default="the live API")
]
Rate = Annotated[
    int | None,
    typer.Option(
        "--rate", min=0, help="Requests per minute; 0: unthrottled.", show_default="50; 0 for loopback sources"
    ),
]


def command(
    data_dir: DataDir = None,
    source_url: SourceUrl = None,
    port: Port = None,
    rate: Rate = None,
    once: Once = False,
    as_json: AsJson = False,
) -> None:
    """Harvest the source and serve the corpus, with everything that this needs."""
    chosen = settings(data_dir=data_dir, source_url=source_url, port=port, rate_per_minute=rate)
    if once and port is None:
        chosen = chosen.model_copy(update={"port": 0})
    with stop_on_signals() as stopping:
        status = run(chosen, stopping, once=once, as_json=as_json)
    raise typer.Exit(status)


def run(chosen: Settings, stopping: threading.Event, *, once: bool, as_json: bool) -> int:
    """Start everything, work until done (`once`) or told to stop, stop everything.

    Returns:
        Exit status: 0, or with `once` 1 when there is no snapshot of the present corpus and 130 when stopped early.
    """
    if once:
        # There is one snapshot to wait for: that of everything the source has.
        chosen = chosen.model_copy(update={"release_interval_seconds": 0.0})
    chain.check(chosen)
    check_validator_side(chosen)
    check_source(chosen.source_url, must_answer=once)
    make_folder(chosen.data_dir)
    with joined(chosen, migrating=True) as at:
        with transaction(at.engine) as session:
            origin.require(session, at.settings.origin)
            begun = walks.last_begun(session)
            released = {snapshot.snapshot_id for snapshot in snapshots.listing(session)}
        for lost in sorted(released - set(FileStore(chosen.snapshot_dir).ids())):
            note(f"the files of snapshot {lost} are not in {chosen.snapshot_dir}; it cannot be served")
        app = create_app(at.engine, at.settings)
        with serving(app, at.settings.host, at.settings.port) as url, fleet(at.settings) as workers:
            note(f"serving on {url} (data in {chosen.data_dir})")
            done = _watch(at, workers, stopping, begun, once=once)
        if not done:
            return 130 if once else 0
        summary = _summary(at)
    print_summary(summary, as_json)
    return 0 if summary.snapshot is not None else 1


def _watch(at: Joined, workers: Fleet, stopping: threading.Event, begun: int, *, once: bool) -> bool:
    """Tend the workers and show progress; True once all is done, False when told to stop."""
    patience = Patience()
    look_at = answered_at = time.monotonic()
    with view() as shown:
        while not stopping.wait(TEND_SECONDS):
            workers.tend()
            started = time.monotonic()
            if started < look_at:
                continue
            seen = _try_look(at, begun)
            ended = time.monotonic()
            look_at = ended + max(TEND_SECONDS if once else LOOK_SECONDS, LOOK_SHARE * (ended - started))
            if seen is None:
                if started - answered_at > DATABASE_AWAY_SECONDS:
                    away = f"the database has not answered for {DATABASE_AWAY_SECONDS:.0f} s"
                    raise SluiceError(ErrorCode.SERVICE_UNAVAILABLE, away)
                continue
            answered_at = started
            shown.show(seen)
            if once and seen.is_done:
                return True
            if once:
                _require_hope(seen, patience)
    return False


def _require_hope(seen: Look, patience: Patience) -> None:
    """Go on waiting only while something may still come of it.

    Raises:
        SluiceError: SERVICE_UNAVAILABLE when the source cannot be walked, or nothing moves any more.
    """
    if not seen.walked and len(seen.errors) >= BROKEN_WALKS:
        raise SluiceError(ErrorCode.SERVICE_UNAVAILABLE, f"the source cannot be walked: {seen.errors[-1]}")
    stuck = patience.ends(seen, time.monotonic())
    if stuck is not None:
        raise SluiceError(ErrorCode.SERVICE_UNAVAILABLE, stuck)


def _try_look(at: Joined, begun: int) -> Look | None:
    """A look; None while the database is away, which the workers and the servers' own supervisor get over."""
    try:
        return look(at.engine, begun)
    except OperationalError:
        return None


def _summary(at: Joined) -> Summary:
    with reading(at.engine) as session:
        return summarise(session, DEFAULT_POLICIES.rules.digest)
