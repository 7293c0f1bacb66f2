"""`sluice demo`: `up` against generated races that the replay server plays. Needs no network."""

import shutil
from pathlib import Path

import typer

from service.cli import up
from service.cli.options import AsJson, DataDir, Once, Port, settings
from service.cli.output import note
from service.cli.stopping import stop_on_signals
from service.replay.server import replaying
from service.world.demo import write_demo

DATA_DIR = Path("demo-data")
ARCHIVE = "demo-archive"


def command(data_dir: DataDir = DATA_DIR, port: Port = None, once: Once = False, as_json: AsJson = False) -> None:
    """Harvest generated races and serve the result."""
    chosen = settings(data_dir=data_dir, port=0 if once and port is None else port)
    with stop_on_signals() as stopping, replaying(archive(chosen.data_dir)) as replay:
        here = {
            "source_url": replay.url,
            "source_name": "demo",
            "rate_per_minute": 0,
            "release_interval_seconds": 0.0,
        }
        status = up.run(chosen.model_copy(update=here), stopping, once=once, as_json=as_json)
    raise typer.Exit(status)


def archive(data_dir: Path) -> Path:
    """The generated races, made if they are not there; never left half made."""
    folder = data_dir / ARCHIVE
    if not folder.is_dir():
        note("generating the demo races")
        unfinished = data_dir / f".{ARCHIVE}"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        write_demo(unfinished)
        unfinished.rename(folder)
    return folder
