"""The command line as a whole: quick where nothing is served, and a fault is one sentence."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from service.cli.app import NAMES, app
from service.errors import SluiceError


@pytest.mark.parametrize("arguments", [["--version"], ["stats", "--help"], ["pull", "--help"], ["snapshot", "--help"]])
def test_commands_that_serve_nothing_load_no_server(arguments: list[str]):
    code = (
        "import sys\nfrom service.cli.app import app\n"
        f"app({arguments!r}, standalone_mode=False)\n"
        "sys.exit('loaded' if {'fastapi', 'uvicorn'} & set(sys.modules) else 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_help_names_every_command():
    told = CliRunner().invoke(app, ["--help"]).stdout
    assert [name for name in NAMES if f" {name} " not in told] == []
    assert "release" in CliRunner().invoke(app, ["snapshot", "create", "--help"]).stdout


def test_an_unknown_command_is_a_fault():
    ran = CliRunner().invoke(app, ["nothing"])
    assert ran.exit_code == 2
    assert "No such command 'nothing'" in ran.stderr


def test_a_folder_without_races_is_refused_before_it_is_said_to_be_played(tmp_path: Path):
    ran = CliRunner().invoke(app, ["replay", str(tmp_path)])
    assert isinstance(ran.exception, SluiceError)
    assert "replaying" not in ran.stderr
