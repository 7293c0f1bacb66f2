"""`sluice snapshot create|list|audit`. Workers make snapshots; `create` only asks them and waits."""

import time
from dataclasses import asdict
from typing import Annotated

import typer
from dramatiq.brokers.redis import RedisBroker

from service.cli.joined import joined
from service.cli.options import AsJson, DataDir, settings
from service.cli.output import note, print_json, print_table
from service.cli.reaudit import reaudit
from service.domain.policy import DEFAULT_POLICIES
from service.errors import ErrorCode, SluiceError
from service.queue.broker import open_broker, outstanding, send, unfetched
from service.queue.messages import Message, Stage
from service.store import snapshots
from service.store.engine import reading
from service.store.files import FileStore
from service.store.summary import figures, summarise

GLOBAL_STAGES = (Stage.CLUSTER, Stage.ASSIGN, Stage.SNAPSHOT)
UNFETCHED_SECONDS = 10.0
"""With no worker fetching the request for so long, there is none."""
POLL_SECONDS = 0.2

SnapshotId = Annotated[str, typer.Argument(metavar="ID", help="Id of a published snapshot.")]

app = typer.Typer(help="Make, list and audit snapshots.", no_args_is_help=True)


@app.command()
def create(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Have the running workers release the corpus as it is now; exit 1 when they refuse."""
    with joined(settings(data_dir=data_dir)) as at:
        assert at.settings.redis_url is not None
        _ask_and_wait(open_broker(at.settings.redis_url))
        with reading(at.engine) as session:
            summary = summarise(session, DEFAULT_POLICIES.rules.digest)
    if summary.snapshot is not None:
        if as_json:
            print_json(asdict(summary.snapshot))
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
        rows = [asdict(figures(each)) | {"published_at": each.published_at} for each in snapshots.listing(session)]
    if as_json:
        print_json({"snapshots": [row | {"published_at": row["published_at"].isoformat()} for row in rows]})
        return
    shown = [
        (row["id"], row["rows"]["train"], row["rows"]["eval"], row["audit"]["ok"], f"{row['published_at']:%F %T %Z}")
        for row in rows
    ]
    print_table("Snapshots", ("id", "train", "eval", "audit ok", "published"), shown)


@app.command("audit")
def audit(snapshot_id: SnapshotId, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Audit a published snapshot again, from its files; exit 1 when it fails."""
    with joined(settings(data_dir=data_dir)) as at:
        report = reaudit(at.engine, FileStore(at.settings.snapshot_dir), snapshot_id)
    if as_json:
        print_json({"snapshot_id": snapshot_id} | report.to_json())
    else:
        rows = [
            (each.name, "ok" if each.ok else "FAILED", each.count, " ".join(each.examples)) for each in report.checks
        ]
        print_table(f"Audit of {snapshot_id}", ("check", "outcome", "faults", "examples"), rows)
    if not report.ok:
        raise typer.Exit(1)


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
