"""`sluice snapshot create|list|audit`. Workers make snapshots; `create` only asks them and waits."""

import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer
from dramatiq.brokers.redis import RedisBroker
from sqlalchemy.orm import Session

from service.cli import naming
from service.cli.joined import Joined, joined
from service.cli.marks import marks_in_words, marks_of
from service.cli.options import AsJson, DataDir, settings
from service.cli.output import note, print_json, print_table
from service.cli.reaudit import reaudit
from service.domain.policy import DEFAULT_POLICIES
from service.errors import ErrorCode, SluiceError
from service.queue.broker import open_broker, outstanding, send, unfetched
from service.queue.messages import Message, Stage
from service.store.engine import reading
from service.store.figures.summary import figures, summarise
from service.store.release import pools, snapshots
from service.store.release.files import FileStore
from service.store.work.progress import progress

GLOBAL_STAGES = (Stage.CLUSTER, Stage.ASSIGN, Stage.SNAPSHOT)
UNFETCHED_SECONDS = 10.0
"""With no worker fetching the request for so long, there is none."""
POLL_SECONDS = 0.2
TRIES = 20
PAUSE_SECONDS = 1.0
"""All tries together last longer than the lease of a worker that died."""

SnapshotId = Annotated[
    str, typer.Argument(metavar="ID", help="Id of a published snapshot, or its first 8 digits or more.")
]

app = typer.Typer(help="Make, list and audit snapshots.", no_args_is_help=True, add_completion=False)


@app.command()
def create(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Have the running workers release the corpus as it is now; exit 1 when nothing is released, 2 with no worker."""
    with joined(settings(data_dir=data_dir)) as at:
        before = _released(at)
        stuck = _release(at)
        is_unchanged = before is not None and before == _released(at)
        with reading(at.engine) as session:
            summary = summarise(session, DEFAULT_POLICIES.rules.digest)
    if stuck:
        note(f"no snapshot: still to be done are {', '.join(stuck)}; the workers' logs say why")
        raise typer.Exit(1)
    if summary.snapshot is not None:
        if is_unchanged:
            note("unchanged: this snapshot holds the present corpus already")
        if as_json:
            print_json(asdict(summary.snapshot) | {"unchanged": is_unchanged})
        else:
            typer.echo(summary.snapshot.id)
        return
    reason = f"{summary.refusal.code}: {summary.refusal.message}" if summary.refusal else "nothing has been judged yet"
    note(f"no snapshot: {reason}")
    raise typer.Exit(1)


@app.command("list")
def listing(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the published snapshots, newest first."""
    with joined(settings(data_dir=data_dir)) as at, reading(at.engine) as session:
        files = FileStore(at.settings.snapshot_dir)
        rows = [
            asdict(figures(each)) | {"published_at": each.published_at, "marks": marks_of(files, each.snapshot_id)}
            for each in snapshots.listing(session)
        ]
    if as_json:
        print_json({"snapshots": [row | {"published_at": row["published_at"].isoformat()} for row in rows]})
        return
    shown = [
        (
            *(row["id"], row["rows"]["train"], row["rows"]["eval"], row["audit"]["ok"]),
            *(f"{row['published_at']:%F %T %Z}", marks_in_words(row["marks"]) or "none"),
        )
        for row in rows
    ]
    print_table("Snapshots", ("id", "train", "eval", "audit ok", "published", "marks"), shown)


@app.command("audit")
def audit(snapshot_id: SnapshotId, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Audit a published snapshot again, from its files; exit 1 when it fails."""
    with joined(settings(data_dir=data_dir)) as at:
        files = FileStore(at.settings.snapshot_dir)
        snapshot_id = naming.find(snapshot_id, files.ids())
        report = reaudit(at.engine, files, snapshot_id)
        marks = marks_of(files, snapshot_id)
    if marks:
        note(f"marked since it was published: {marks_in_words(marks)}; see its status")
    if as_json:
        print_json({"snapshot_id": snapshot_id, "marks": marks} | report.to_json())
    else:
        rows = [
            (each.name, "ok" if each.ok else "FAILED", each.count, " ".join(each.examples)) for each in report.checks
        ]
        print_table(f"Audit of {snapshot_id}", ("check", "outcome", "faults", "examples"), rows)
    if not report.ok:
        raise typer.Exit(1)


def _released(at: Joined) -> str | None:
    """Id of the snapshot that the newest release decision made."""
    with reading(at.engine) as session:
        decided = snapshots.latest_release(session)
        return decided.snapshot_id if decided is not None else None


def _release(at: Joined) -> list[str]:
    """Have the workers release the corpus as it is now; returns what they left undone, nothing when it is released.

    One that handles a request while another holds its lease does nothing, so the request is repeated for a while. What
    the harvest brings meanwhile makes the stages due again, and is not waited for.

    Raises:
        SluiceError: SERVICE_UNAVAILABLE when no worker takes the request up.
    """
    assert at.settings.redis_url is not None
    broker = open_broker(at.settings.redis_url)
    with reading(at.engine) as session:
        newest = pools.latest(session)
    due: list[str] = []
    for attempt in range(TRIES):
        if attempt:
            time.sleep(PAUSE_SECONDS)
        _ask_and_wait(broker)
        with reading(at.engine) as session:
            due = _due(session)
            decided = snapshots.latest_release(session)
        if not due or (decided is not None and decided.assignment_id > (newest.assignment_id if newest else 0)):
            return []
    return due


def _due(session: Session) -> list[str]:
    """Names of the global stages that have something to do."""
    left = progress(session, DEFAULT_POLICIES, datetime.now(UTC))
    stages = {"clustering": left.clustering_due, "pools": left.assignment_due, "the release": left.release_due}
    return [name for name, is_due in stages.items() if is_due]


def _ask_and_wait(broker: RedisBroker) -> None:
    """Wake the global stages, and wait until they have nothing left to handle.

    A stage sends the next one's message before its own is done, so the queues are empty only at the end.

    Raises:
        SluiceError: SERVICE_UNAVAILABLE when no worker takes the request up.
    """
    send(broker, Message(Stage.CLUSTER))
    asked_at = time.monotonic()
    while any(outstanding(broker, stage) for stage in GLOBAL_STAGES):
        if unfetched(broker, Stage.CLUSTER) and time.monotonic() - asked_at > UNFETCHED_SECONDS:
            raise SluiceError(
                ErrorCode.SERVICE_UNAVAILABLE,
                f"no worker has taken the request up in {UNFETCHED_SECONDS:g} s; start one with `sluice up`",
            )
        time.sleep(POLL_SECONDS)
