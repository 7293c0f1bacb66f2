"""The command line put together, and how its faults end: one sentence on stderr and exit 2."""

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from service.cli import demo, doctor, pull, replay, snapshot, stats, up
from service.errors import SluiceError

app = typer.Typer(
    name="sluice",
    help="Harvest, judge, de-leak and serve the trajectories of Bittensor SN15 (ORO) races.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for name, module in {"up": up, "demo": demo, "replay": replay, "stats": stats, "pull": pull, "doctor": doctor}.items():
    app.command(name)(module.command)
app.add_typer(snapshot.app, name="snapshot")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version("sluice-sn15"))
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Entry point of the console script."""
    try:
        app()
    except SluiceError as error:
        typer.echo(f"sluice: {error.message}", err=True)
        sys.exit(2)
