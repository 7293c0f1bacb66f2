"""Specs as files: the printed one says what stands, and faults name file and key."""

from pathlib import Path

import pytest

from service.cli import spec_file
from service.cli.spec_file import TEMPLATE
from service.domain.rows.spec import STANDING, Choice, Options, read_options
from service.domain.rows.wanted import Wanted
from service.errors import SluiceError


def test_the_printed_file_says_what_stands_and_names_every_key() -> None:
    assert read_options(TEMPLATE.encode(), is_json=False) == STANDING
    keys = [*Options.__struct_fields__, *Wanted.__struct_fields__, *Choice.__struct_fields__]
    named = {line.removeprefix("# ").split(" = ")[0].strip("[] ").split("]")[0] for line in TEMPLATE.splitlines()}
    assert set(keys) <= named


def test_a_file_is_json_by_its_name_and_else_toml(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text('{"splits": ["eval"]}')
    (tmp_path / "spec.toml").write_text('splits = ["eval"]')
    assert spec_file.read(tmp_path / "spec.json") == spec_file.read(tmp_path / "spec.toml") != STANDING


def test_faults_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    with pytest.raises(SluiceError, match=r"spec.toml: No such file"):
        spec_file.read(path)
    path.write_text("rows = 1")
    with pytest.raises(SluiceError, match=r"spec.toml: the spec cannot be used: .*`rows`"):
        spec_file.read(path)
    path.write_bytes(b"#" * (1 << 21))
    with pytest.raises(SluiceError, match=r"spec.toml: the spec is too long"):
        spec_file.read(path)
