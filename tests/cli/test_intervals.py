"""`--once` and `demo` wait for one snapshot, so none is put off; a service that stays keeps its interval."""

import threading
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from service.cli import up
from service.cli.app import app
from service.config import Settings


class Seen(Exception):
    """Ends a command at the point where its settings are known."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.settings = settings


@pytest.fixture(autouse=True)
def stop_early(monkeypatch: pytest.MonkeyPatch) -> None:
    def joined(settings: Settings, *, migrating: bool) -> None:
        raise Seen(settings)

    monkeypatch.setattr(up, "joined", joined)
    monkeypatch.setattr(up, "check_source", lambda url, *, must_answer: None)


@pytest.mark.parametrize(("once", "seconds"), [(True, 0.0), (False, 21_600.0)])
def test_up(tmp_path: Path, once: bool, seconds: float):
    with pytest.raises(Seen) as caught:
        up.run(Settings(data_dir=tmp_path), threading.Event(), once=once, as_json=False)
    assert caught.value.settings.release_interval_seconds == seconds


def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("service.cli.demo.archive", lambda data_dir: data_dir)
    monkeypatch.setattr("service.cli.demo.replaying", lambda folder: nullcontext(SimpleNamespace(url="http://x")))
    ran = CliRunner().invoke(app, ["demo", "--data-dir", str(tmp_path)])
    assert isinstance(ran.exception, Seen)
    assert ran.exception.settings.release_interval_seconds == 0.0
