"""The command line put together, and how its faults end: one sentence on stderr and exit 2."""

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from service.errors import SluiceError

NAMES = (
    "up",
    "demo",
    "replay",
    "stats",
    "coverage",
    "plan",
    "explain",
    "rules",
    "judge",
    "pull",
    "doctor",
    "snapshot",
    "benchmark",
    "pools",
    "audit",
    "redact",
    "import",
)
"""Commands in the order of the help; each is the module of its name, apart from those below."""
MODULES = {"import": "importing"}
"""Commands whose name no module can have."""


class _Commands(Mapping[str, Any]):
    """Each command is imported when it is asked for: what `up` serves with takes seconds, and `pull` needs none."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in NAMES:
            raise KeyError(name)
        if name not in self._loaded:
            self._loaded[name] = _load(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


def _load(name: str) -> Any:
    module = import_module(f"service.cli.{MODULES.get(name, name)}")
    if not hasattr(module, "app"):
        alone = typer.Typer(add_completion=False)
        alone.command(name)(module.command)
        return get_command(alone)
    group = get_command(module.app)
    group.name = name
    return group


class _Group(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()  # type: ignore[assignment]


app = typer.Typer(
    cls=_Group,
    name="sluice",
    help="Harvest, judge, de-leak and serve the trajectories of Bittensor SN15 (ORO) races.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


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
