"""The README says what is there: every setting, command, option and path, and no others."""

import re
from pathlib import Path

import pytest
import typer.main

from service.cli.app import app
from service.config import Settings
from tests.api.test_openapi import document

README = (Path(__file__).parents[1] / "README.md").read_text()
COMMANDS = dict(re.findall(r"^\| `sluice ([a-z]+(?: [a-z]+)?)(?= |`)([^`]*)` \|", README, re.MULTILINE))


def options() -> dict[str, set[str]]:
    """Options of every command by its full name."""
    found: dict[str, set[str]] = {}
    waiting = [("", typer.main.get_command(app))]
    while waiting:
        name, command = waiting.pop()
        below = getattr(command, "commands", {})
        waiting += [(f"{name} {word}".strip(), each) for word, each in below.items()]
        if not below:
            found[name] = {option for each in command.params for option in each.opts if option.startswith("--")}
    return found


def test_every_setting_is_documented_with_its_default():
    rows = dict(re.findall(r"^\| `SLUICE_([A-Z_]+)` \| ([^|]+) \|", README, re.MULTILINE))
    assert {name.lower() for name in rows} == set(Settings.model_fields)
    for name, told in rows.items():
        default = Settings.model_fields[name.lower()].default
        if default is not None and default != ():
            assert str(default).lower().removesuffix(".0") == told.strip("` ").lower(), name


def test_every_command_is_documented_with_its_options():
    assert {name: set(re.findall(r"--[a-z-]+", told)) for name, told in COMMANDS.items()} == options()


def test_every_path_is_documented():
    section = README.split("## REST")[1].split("## Settings")[0]
    rows = re.findall(r"^\| (`/[^|]+) \|", section, re.MULTILINE)
    assert {path for row in rows for path in re.findall(r"`([^`]+)`", row)} == set(document()["paths"])


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#:]+)\)", README))
def test_links_lead_somewhere(link: str):
    assert (Path(__file__).parents[1] / link).exists()
