"""A small recorded folder, and a live replay server of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.replay.faults import Faults
from service.replay.server import Replay, replaying
from tests.replay.recording import write_recording


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return write_recording(tmp_path / "recording")


@pytest.fixture
def replay(recording: Path) -> Iterator[Replay]:
    with replaying(recording, faults=Faults()) as running:
        yield running
