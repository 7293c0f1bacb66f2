"""A signal sets the flag and is answered at once."""

import signal

import pytest

from service.cli.stopping import stop_on_signals


def test_a_signal_is_answered_once(capfd: pytest.CaptureFixture[str]):
    with stop_on_signals() as stopping:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        assert stopping.wait(5)
    assert capfd.readouterr().err == "stopping\n"
