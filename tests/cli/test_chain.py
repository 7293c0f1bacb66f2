"""`sluice up` with a chain named and the package for it missing."""

import sys
import threading
from pathlib import Path

import pytest

from service.cli.up import run
from service.config import Settings
from service.errors import ErrorCode, SluiceError


def test_up_refuses_before_it_starts_anything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "bittensor", None)
    chosen = Settings(subtensor="finney", data_dir=tmp_path / "data")
    with pytest.raises(SluiceError, match="extra `chain`") as missing:
        run(chosen, threading.Event(), once=True, as_json=False)
    assert missing.value.code is ErrorCode.PREREQUISITE_MISSING
    assert not chosen.data_dir.exists()
