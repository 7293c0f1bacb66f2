"""`sluice replay`: speak ORO's public API from a folder of recorded races."""

from pathlib import Path
from typing import Annotated

import typer

from service.cli.output import note
from service.cli.stopping import stop_on_signals
from service.replay.server import replaying

PORT = 8716

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of recorded races.")]


def command(
    directory: Folder,
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port on the loopback interface.")] = PORT,
) -> None:
    """Serve recorded races as ORO's public API does, until Ctrl-C."""
    with stop_on_signals() as stopping, replaying(directory, port=port) as replay:
        note(f"replaying {directory} on {replay.url}")
        stopping.wait()
