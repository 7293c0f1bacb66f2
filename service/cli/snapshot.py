"""`sluice snapshot create|list|audit`. Workers make snapshots; `create` only asks them and waits."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from service.cli import asking, difference, naming, spec_file
from service.cli.joined import Joined, joined
from service.cli.marks import marks_in_words, marks_of
from service.cli.options import AsJson, DataDir, settings
from service.cli.output import note, print_json, print_table
from service.cli.reaudit import reaudit
from service.domain.policy import DEFAULT_POLICIES
from service.domain.rows.spec import Options
from service.store.engine import reading, transaction
from service.store.figures.summary import figures, summarise
from service.store.release import requests, snapshots
from service.store.release.files import FileStore

SpecFile = Annotated[
    Path | None,
    typer.Option("--spec", help="TOML or JSON file of what the snapshot is to hold.", show_default="standing"),
]
PrintSpec = Annotated[bool, typer.Option("--print-spec", help="Print such a file to start from, and stop.")]
Rows = Annotated[int, typer.Option("--rows", min=0, help="Rows that differ to name; all are counted.")]
SnapshotId = Annotated[
    str, typer.Argument(metavar="ID", help="Id of a published snapshot, or its first 8 digits or more.")
]

app = typer.Typer(help="Make, list and audit snapshots.", no_args_is_help=True, add_completion=False)


@app.command()
def create(
    spec: SpecFile = None, print_spec: PrintSpec = False, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Have the running workers release the corpus as it is now; exit 1 when nothing is released, 2 with no worker."""
    if print_spec:
        typer.echo(spec_file.TEMPLATE, nl=False)
        return
    if spec is not None:
        _create_by(spec_file.read(spec), data_dir, as_json)
        return
    with joined(settings(data_dir=data_dir)) as at:
        before = _released(at)
        stuck = asking.release(at)
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


def _create_by(options: Options, data_dir: Path | None, as_json: bool) -> None:
    """Ask for a snapshot with options of the user's own, and say what became of it."""
    with joined(settings(data_dir=data_dir)) as at:
        with transaction(at.engine) as session:
            request_id = requests.add(session, msgspec.to_builtins(options))
        stuck = asking.release(at, lambda session: requests.answer_to(session, request_id) is not None)
        with reading(at.engine) as session:
            answer = requests.answer_to(session, request_id)
            made = answer and answer.snapshot_id and snapshots.get(session, answer.snapshot_id)
    if made:
        if as_json:
            print_json(asdict(figures(made)))
        else:
            typer.echo(made.snapshot_id)
        return
    if answer is not None:
        told = answer.refusal or {}
        note(f"no snapshot: {told.get('code')}: {told.get('message')}")
    else:
        left = f"still to be done are {', '.join(stuck)}" if stuck else "there are no pools yet"
        note(f"no snapshot so far: {left}; request {request_id} stands and is answered when there can be one")
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


@app.command("diff")
def diff(
    before: SnapshotId, after: SnapshotId, rows: Rows = 20, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Show what two published snapshots were made by, which rows are in one alone, and why."""
    with joined(settings(data_dir=data_dir)) as at:
        files = FileStore(at.settings.snapshot_dir)
        one, other = (naming.find(given, files.ids()) for given in (before, after))
        found = difference.compare(at, files, one, other, rows)
    difference.show(one, other, found, as_json)


def _released(at: Joined) -> str | None:
    """Id of the snapshot that the newest release decision made."""
    with reading(at.engine) as session:
        decided = snapshots.latest_release(session)
        return decided.snapshot_id if decided is not None else None
