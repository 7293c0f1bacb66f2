"""The chain, followed over a fake node under the real library: headers, metagraphs, drops, and every way to fail."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import bittensor
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.config import Settings
from service.domain.sn15.metagraph import Neuron
from service.errors import ErrorCode, SluiceError
from service.source.chain import node as chain_module
from service.source.chain.answers import MAX_NEURONS, ChainRefusal, ChainRefused
from service.source.chain.node import Chain, check, open_chain
from tests.source.fake_chain import (
    BLOCK_SECONDS,
    MINER,
    NEWCOMER,
    VALIDATOR,
    FakeNode,
    following,
    hash_of,
    time_of,
    to,
    wait_until,
)

HALF = round(0.5 * 65535) / 65535
"""The chain keeps shares as sixteen bits."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Short pauses, and the library's cache away from the home folder."""
    monkeypatch.setenv("BTCLI_TOKEN_SYMBOLS_CACHE", str(tmp_path / "symbols.json"))
    monkeypatch.setattr(chain_module, "FIRST_BACKOFF_SECONDS", 0.02)


def test_headers_are_followed_and_the_newest_is_kept() -> None:
    node = FakeNode(head=1000)
    with following(node) as chain:
        assert chain.head is not None
        assert chain.head.block == 1000
        node.head = 1003
        wait_until(lambda: chain.head is not None and chain.head.block == 1003)
        assert chain.connections == 1
    assert node.closed == 1


def test_a_metagraph_is_read_at_a_block() -> None:
    with following(FakeNode()) as chain:
        reading = chain.metagraph(899)
    assert (reading.netuid, reading.block, reading.block_hash, reading.at) == (15, 899, hash_of(899), time_of(899))
    assert reading.neurons == (Neuron(0, VALIDATOR, True, 899.0, 0.0), Neuron(1, MINER, False, 0.0, HALF))


def test_the_newest_metagraph_is_that_of_the_head_whose_hash_no_block_tells_yet() -> None:
    with following(FakeNode(head=1000)) as chain:
        reading = chain.metagraph()
    assert (reading.block, reading.block_hash, reading.at) == (1000, None, time_of(1000))
    assert [neuron.hotkey for neuron in reading.neurons] == [VALIDATOR, MINER, NEWCOMER]


def test_the_block_of_a_moment_is_the_first_one_not_before_it() -> None:
    """Against a count from the first block on, on both sides of the hours for which the chain stood still."""
    times = [time_of(block) for block in range(1001)]
    with following(FakeNode(head=1000)) as chain:

        @settings(max_examples=60, deadline=None)
        @given(st.integers(min_value=1, max_value=int((times[-1] - times[0]).total_seconds())))
        def agrees(seconds: int) -> None:
            moment = times[0] + timedelta(seconds=seconds)
            assert chain.block_at(moment) == next(block for block, at in enumerate(times) if at >= moment)

        agrees()
        assert chain.block_at(times[-1]) == 1000
        assert chain.block_at(datetime(1970, 1, 2, tzinfo=UTC)) <= 1
        with pytest.raises(ChainRefused) as ahead:
            chain.block_at(times[-1] + timedelta(seconds=1))
    assert ahead.value.reason is ChainRefusal.AHEAD


def test_a_node_without_the_state_says_so() -> None:
    with following(FakeNode(head=1000, kept_blocks=10)) as chain:
        assert chain.metagraph(995).block == 995
        for question in (lambda: chain.metagraph(500), lambda: chain.block_at(time_of(500))):
            with pytest.raises(ChainRefused) as refused:
                question()
            assert refused.value.reason is ChainRefusal.STATE_DISCARDED


def test_a_dropped_connection_is_made_anew() -> None:
    node = FakeNode(head=1000)
    with following(node) as chain:
        for fault in (bittensor.RpcConnectionError("gone"), ValueError("no header"), OSError("reset")):
            node.fault, before = fault, chain.connections
            wait_until(lambda before=before: chain.connections > before)  # type: ignore[misc]
            node.fault = None
            node.head += 1
            wait_until(lambda: chain.head is not None and chain.head.block == node.head)
        assert chain.metagraph().block == 1003
        assert chain.refusal is ChainRefusal.UNREACHABLE


def test_what_was_read_is_stale_once_the_chain_is_silent() -> None:
    node = FakeNode(head=1000)
    with following(node, block_seconds=0.02) as chain:
        assert chain.head is not None
        seen_at = chain.head.seen_at
        # Ten block times of 0.02 s without a header.
        assert not chain.is_silent(seen_at + timedelta(seconds=0.2))
        assert chain.is_silent(seen_at + timedelta(seconds=0.21))
        wait_until(lambda: chain.connections > 1)
        assert chain.refusal is ChainRefusal.NO_ANSWER
        node.head = 1001
        wait_until(lambda: chain.head is not None and chain.head.block == 1001)
        assert not chain.is_silent(chain.head.seen_at)


def test_a_node_that_nobody_reaches_is_a_refusal_that_tells_no_url() -> None:
    node = FakeNode()
    node.refuses = True
    with Chain(to(node), 15) as chain:
        wait_until(lambda: chain.connections > 2)
        with pytest.raises(ChainRefused) as refused:
            chain.metagraph()
        assert refused.value.reason is ChainRefusal.UNREACHABLE
        assert "secret" not in str(refused.value)
        assert chain.is_silent(datetime.now(UTC))


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (bittensor.RpcPolicyError("slow down", status_code=429), ChainRefusal.NO_ACCESS),
        (bittensor.RpcConnectionError("gone"), ChainRefusal.UNREACHABLE),
        (bittensor.ChainError("bad origin"), ChainRefusal.REFUSED),
        (TimeoutError(), ChainRefusal.UNREACHABLE),
        (KeyError("tempo"), ChainRefusal.UNREADABLE),
        (MemoryError(), ChainRefusal.UNREADABLE),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_whatever_the_library_raises_is_a_named_refusal(fault: Exception, reason: ChainRefusal) -> None:
    node = FakeNode()

    def broken(block: int) -> list[tuple[str, bool, float, float]]:
        raise fault

    node.neurons = broken
    with following(node) as chain:
        with pytest.raises(ChainRefused) as refused:
            chain.metagraph()
        assert refused.value.reason is reason
        node.neurons = lambda block: []
        assert chain.metagraph().neurons == ()


@pytest.mark.parametrize(
    "neurons",
    [
        [(VALIDATOR, True, 1.0, 0.0), (VALIDATOR, False, 1.0, 0.0)],
        [("5Nul\x00", True, 1.0, 0.0)],
        [("5" * 65, True, 1.0, 0.0)],
        [("", True, 1.0, 0.0)],
        [(VALIDATOR, True, -1.0, 0.0)],
        [(f"5Hot{number}", True, 1.0, 0.0) for number in range(MAX_NEURONS + 1)],
    ],
    ids=["twice", "nul", "long", "empty", "negative", "many"],
)
def test_a_metagraph_that_makes_no_sense_is_refused_whole(neurons: list[tuple[str, bool, float, float]]) -> None:
    node = FakeNode()
    node.neurons = lambda block: neurons
    with following(node) as chain, pytest.raises(ChainRefused) as refused:
        chain.metagraph()
    assert refused.value.reason is ChainRefusal.UNREADABLE


def test_a_subnet_that_does_not_exist() -> None:
    node = FakeNode()
    node.subnet_exists = False
    with following(node) as chain, pytest.raises(ChainRefused) as refused:
        chain.metagraph()
    assert refused.value.reason is ChainRefusal.NO_SUBNET


def test_without_the_package_one_sentence_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bittensor", None)
    check(Settings())
    check(Settings(subtensor=""))
    for attempt in (check, open_chain):
        with pytest.raises(SluiceError, match=r"sluice-sn15\[chain\]") as missing:
            attempt(Settings(subtensor="finney"))
        assert missing.value.code is ErrorCode.PREREQUISITE_MISSING


def test_a_name_that_is_no_network_is_refused() -> None:
    with pytest.raises(SluiceError) as refused:
        open_chain(Settings(subtensor="https://user:secret@node.example"))
    assert refused.value.code is ErrorCode.BAD_INPUT
    assert "secret" not in str(refused.value)


def test_no_node_at_the_url() -> None:
    with Chain(chain_module.connecting(Settings(subtensor="ws://127.0.0.1:9")), 15, BLOCK_SECONDS) as chain:
        wait_until(lambda: chain.refusal is not None, seconds=20)
        assert chain.refusal in (ChainRefusal.UNREACHABLE, ChainRefusal.NO_ANSWER)
