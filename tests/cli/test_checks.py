"""Settings that cannot work are one sentence before anything starts."""

from http import HTTPStatus
from pathlib import Path

import pytest

from service.cli import checks
from service.config import Settings
from service.errors import ErrorCode, SluiceError
from service.replay.faults import Fault, Faults
from service.replay.server import replaying
from tests.replay.recording import write_recording


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    told: list[str] = []
    monkeypatch.setattr(checks, "note", told.append)
    return told


def test_a_source_that_is_the_api_is_fine(tmp_path: Path, noted: list[str]) -> None:
    with replaying(write_recording(tmp_path / "recording")) as server:
        checks.check_source(server.url, must_answer=True)
        with pytest.raises(SluiceError, match=r"is no public API of ORO's: it answers /v1/public/suites with HTTP 404"):
            checks.check_source(f"{server.url}/nope", must_answer=True)
        checks.check_source(f"{server.url}/nope", must_answer=False)
    assert len(noted) == 1
    assert "the workers keep trying" in noted[0]


def test_a_source_in_trouble_may_come_back(tmp_path: Path, noted: list[str]) -> None:
    with replaying(write_recording(tmp_path / "recording"), faults=Faults()) as server:
        server.faults.add(Fault("/suites$", status=HTTPStatus.SERVICE_UNAVAILABLE))
        checks.check_source(server.url, must_answer=True)
    assert noted == []


def test_a_source_that_is_not_there_says_why(noted: list[str]) -> None:
    with pytest.raises(SluiceError, match=r"does not answer \(connection refused\)"):
        checks.check_source("http://127.0.0.1:9", must_answer=True)


@pytest.mark.parametrize("place", ["/proc/nothing/here", __file__])
def test_a_folder_that_cannot_be_made_is_bad_input(place: str) -> None:
    with pytest.raises(SluiceError, match="cannot be made") as refusal:
        checks.make_folder(Path(place))
    assert refusal.value.code is ErrorCode.BAD_INPUT


def test_the_validators_side_is_looked_at(tmp_path: Path, noted: list[str]) -> None:
    checks.check_validator_side(Settings(validator_logs=tmp_path, proxy_log=None))
    assert noted == []
    checks.check_validator_side(Settings(validator_logs=tmp_path / "nope"))
    assert noted == [
        f"SLUICE_VALIDATOR_LOGS names {tmp_path / 'nope'}, which is not there; nothing of it is read until it is"
    ]
    with pytest.raises(SluiceError, match=r"\$msec"):
        checks.check_validator_side(
            Settings(proxy_log=tmp_path / "access.log", proxy_log_format="$remote_addr $status")
        )
