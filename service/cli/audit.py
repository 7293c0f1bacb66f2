"""`sluice audit`: whether all that was ever published still holds what it promised. Mends nothing."""

from typing import Annotated

import typer

from service.cli.joined import joined
from service.cli.options import AsJson, DataDir, settings
from service.cli.output import print_json, print_table
from service.store.engine import reading
from service.store.release import invariants
from service.store.release.files import FileStore

Bytes = Annotated[bool, typer.Option("--bytes", help="Read every published file too, and compare its sha256.")]


def command(bytes_too: Bytes = False, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Check pools and publications of all time against each other; exit 1 when something does not hold."""
    with joined(settings(data_dir=data_dir)) as at, reading(at.engine) as session:
        found = invariants.checks(session, FileStore(at.settings.snapshot_dir), bytes_too=bytes_too)
    ok = all(check.ok for check in found)
    if as_json:
        checks = [
            {"name": each.name, "ok": each.ok, "count": each.count, "examples": list(each.examples)} for each in found
        ]
        print_json({"ok": ok, "checks": checks})
    else:
        rows = [(each.name, "ok" if each.ok else "FAILED", each.count, "; ".join(each.examples)) for each in found]
        print_table("Invariants", ("check", "outcome", "faults", "examples"), rows)
    if not ok:
        raise typer.Exit(1)
