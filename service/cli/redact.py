"""`sluice redact`: take trajectories down, here and in every snapshot whose files are here. Decides nothing."""

from typing import Annotated

import typer
from sqlalchemy.orm import Session

from service.cli.joined import Joined, joined
from service.cli.options import AsJson, DataDir, settings
from service.cli.output import print_json
from service.domain.rows.manifest import STATUS_NAME
from service.domain.rows.records import split_key
from service.domain.sn15.tombstones import Subject
from service.errors import ErrorCode, SluiceError
from service.store.corpus import takedowns
from service.store.engine import transaction
from service.store.release import marks, takedown
from service.store.release.files import FileStore

Keys = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY]...", help="Keys of trajectories: RUN/PROBLEM, as rows have them.")
]
Runs = Annotated[list[str] | None, typer.Option("--run", help="Everything of this evaluation run.")]
Hotkeys = Annotated[list[str] | None, typer.Option("--hotkey", help="Everything that this miner has entered.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept with the takedown. Nobody's name is.")]


def command(
    reason: Reason,
    keys: Keys = None,
    runs: Runs = None,
    hotkeys: Hotkeys = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Take trajectories down for good: their content is served no more, and is in no snapshot, old or new."""
    if not reason.strip():
        raise SluiceError(ErrorCode.BAD_INPUT, "--reason must say something")
    with joined(settings(data_dir=data_dir)) as at:
        with transaction(at.engine) as session:
            subjects = _subjects(session, keys or [], runs or [], hotkeys or [])
            if not subjects:
                raise SluiceError(ErrorCode.BAD_INPUT, "nothing is named: give keys, --run or --hotkey")
            number = takedowns.take_down(session, subjects, reason.strip())
        snapshots = _rewrite(at)
    if as_json:
        print_json({"redacted": number, "snapshots": snapshots})
    else:
        typer.echo(f"{number} trajectories are redacted by now; rewritten: {len(snapshots)} snapshots")


def _subjects(session: Session, keys: list[str], runs: list[str], hotkeys: list[str]) -> list[tuple[Subject, str]]:
    """What is named, all of it or nothing.

    Raises:
        SluiceError: NOT_FOUND for a name that nothing has.
    """
    found: list[tuple[Subject, str]] = []
    for key in keys:
        found.append((Subject.ITEM, _known("trajectory", key, takedowns.trajectory(session, *split_key(key)))))
    for eval_run_id in runs:
        found.append((Subject.RUN, _known("run", eval_run_id, takedowns.run(session, eval_run_id))))
    for hotkey in hotkeys:
        versions = takedowns.agent_versions(session, hotkey)
        _known("agent of miner", hotkey, versions[0] if versions else None)
        found += ((Subject.AGENT_VERSION, version) for version in versions)
    return found


def _known(what: str, name: str, subject: str | None) -> str:
    if subject is None:
        raise SluiceError(ErrorCode.NOT_FOUND, f"there is no {what} {name!r}")
    return subject


def _rewrite(at: Joined) -> list[str]:
    """Redact the files of every snapshot on this machine; workers elsewhere do the same with theirs."""
    files = FileStore(at.settings.snapshot_dir)
    rewritten = []
    for snapshot_id in files.ids():
        with transaction(at.engine) as session:
            marks.lock(session, snapshot_id)
            present = files.document(snapshot_id, STATUS_NAME)
            changed = takedown.status_of(session, files, snapshot_id, present)
            if changed:
                files.set_status(snapshot_id, present | changed)
                rewritten.append(snapshot_id)
    return rewritten
