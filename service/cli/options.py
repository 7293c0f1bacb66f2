"""Options that several commands share, and the settings they make: environment and options meet here."""

from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from service.config import Settings
from service.errors import ErrorCode, SluiceError

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Folder of everything Sluice keeps.", show_default="$SLUICE_DATA_DIR, sluice-data"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Once = Annotated[bool, typer.Option("--once", help="Stop when the source has nothing more to give.")]
Port = Annotated[int | None, typer.Option("--port", min=0, max=65535, help="Port of the service; 0 takes a free one.")]


def settings(**options: Any) -> Settings:
    """The environment's settings, with the options that were given in their place.

    Raises:
        SluiceError: BAD_INPUT for a value that cannot be used.
    """
    given = {name: value for name, value in options.items() if value is not None}
    try:
        made = Settings(**given)
    except ValidationError as error:
        fault = error.errors()[0]
        name = "_".join(str(part) for part in fault["loc"])
        raise SluiceError(ErrorCode.BAD_INPUT, f"{name} cannot be used: {fault['msg']}", setting=name) from error
    return made.model_copy(update={"data_dir": made.data_dir.absolute()})
