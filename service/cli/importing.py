"""`sluice import`: rows of files into the corpus, with an account of every one. `intake` reads and stores them."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from service.cli.intake import Account, as_plain, check, take_in
from service.cli.joined import joined
from service.cli.options import AsJson, DataDir, settings
from service.cli.output import note, print_json, print_table, visible
from service.cli.stopping import stop_on_signals
from service.domain.imports.formats import Format, RowFault
from service.domain.imports.identity import MAX_NAME_CHARACTERS, Naming
from service.errors import ErrorCode, SluiceError
from service.store import origin
from service.store.engine import transaction

INTERRUPTED = 130

Files = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="Files of rows; .gz and .zst are seen by content.")
]
Wanted = Annotated[Format | None, typer.Option("--format", help="Format of the files.", show_default="as rows show")]
Agent = Annotated[str | None, typer.Option("--agent", help="Agent that made the rows.", show_default="as rows say")]
Family = Annotated[str | None, typer.Option("--family", help="Family of that agent; a miner's hotkey if it is one's.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Read everything and store nothing; needs no database.")]


def command(
    files: Files,
    wanted: Wanted = None,
    agent: Agent = None,
    family: Family = None,
    dry_run: DryRun = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Import trajectories; exit 1 when rows were refused, 2 when none could be used."""
    naming = Naming(_name("--agent", agent), _name("--family", family))
    made = settings(data_dir=data_dir)
    _require_files(files, made.validator_logs)
    with stop_on_signals() as stopping:
        accounts: list[Account] = []
        if dry_run:
            accounts += (check(path, wanted, naming, stopping) for path in files if not stopping.is_set())
        else:
            with joined(made, migrating=True) as at:
                with transaction(at.engine) as session:
                    origin.bind(session, made.origin)
                for path in files:
                    if not stopping.is_set():
                        accounts.append(take_in(at.engine, path, wanted, naming, stopping))
        is_interrupted = stopping.is_set()
    _print(accounts, dry_run=dry_run, as_json=as_json)
    if is_interrupted:
        note("interrupted; the same command goes on where this one stopped")
        raise typer.Exit(INTERRUPTED)
    if not any(account.usable for account in accounts):
        raise typer.Exit(2)
    if not all(account.is_clean for account in accounts):
        raise typer.Exit(1)


def _name(option: str, given: str | None) -> str | None:
    if given is None:
        return None
    name = given.strip()
    if not name.isprintable() or not 0 < len(name) <= MAX_NAME_CHARACTERS:
        raise SluiceError(ErrorCode.BAD_INPUT, f"{option} must be 1 to {MAX_NAME_CHARACTERS} printable characters")
    return name


def _require_files(files: Sequence[Path], validator_logs: Path | None) -> None:
    for path in files:
        if validator_logs is not None and path.resolve().is_relative_to(validator_logs.resolve()):
            message = f"{visible(str(path))} is of the validator's own logs, which only grade released items"
            raise SluiceError(ErrorCode.BAD_INPUT, message)
        if not path.exists():
            raise SluiceError(ErrorCode.BAD_INPUT, f"there is no file {visible(str(path))}")
        if path.is_dir():
            raise SluiceError(ErrorCode.BAD_INPUT, f"{visible(str(path))} is a folder; name the files in it")


def _print(accounts: Sequence[Account], *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        print_json({"dry_run": dry_run, "files": [as_plain(account) for account in accounts]})
        return
    for account in accounts:
        for error in account.errors:
            note(f"{visible(account.name)}:{error.line}: {error.fault}: {error.excerpt}")
        untold = account.refused.total() - len(account.errors)
        if untold:
            note(f"{visible(account.name)}: {untold} more rows were refused")
        for version, rows in sorted(account.newer_versions.items()):
            note(f"{visible(account.name)}: {rows} rows of {visible(version)}, which is newer than this Sluice knows")
        if account.fault is not None:
            note(f"{visible(account.name)} was not read to its end: {account.fault}")
    stored = "could be stored" if dry_run else "stored"
    print_table(
        "Import",
        ("file", "format", stored, "already there", "refused"),
        [(one.name, one.format or "-", one.stored, one.present, one.refused.total()) for one in accounts],
    )
    reasons = sum((account.refused for account in accounts), Counter[RowFault]())
    if reasons:
        print_table("Refused rows", ("reason", "rows"), sorted(reasons.items()))
