"""A Bittensor node in this process: what `bittensor` asks of one, answered from a few numbers. No network."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import bittensor
from bittensor._transport.errors import StateDiscardedError
from bittensor.result import chain_error_from_substrate_request

from service.source.chain.node import Chain, Connect

GENESIS = datetime(2026, 1, 1, tzinfo=UTC)
HALT_AT = 700
HALT = timedelta(hours=3)
"""The fake chain stands still so long before block HALT_AT: block numbers and time do not keep step."""
BLOCK_SECONDS = 12.0
RAO = 10**9
U16 = 65535
VALIDATOR, MINER, NEWCOMER = "5Validator", "5Miner", "5Newcomer"


def time_of(block: int) -> datetime:
    return GENESIS + timedelta(seconds=BLOCK_SECONDS * block) + (HALT if block >= HALT_AT else timedelta())


class FakeNode:
    """The protocol `bittensor._substrate.Substrate`, as far as it is used. Settable from any thread."""

    def __init__(self, head: int = 1000, kept_blocks: int = 10**6) -> None:
        self.head = head
        self.kept_blocks = kept_blocks
        self.token_symbols: dict[int, str] = {}
        self.fault: BaseException | None = None
        """Raised by everything that is asked, and by the stream of headers."""
        self.refuses = False
        """Nobody can connect."""
        self.subnet_exists = True
        self.neurons: Callable[[int], list[tuple[str, bool, float, float]]] = default_neurons
        self.metagraphs = 0
        self.closed = 0

    async def connect(self) -> None:
        if self.refuses:
            raise bittensor.RpcConnectionError("wss://node.example/?key=secret does not answer")

    async def close(self) -> None:
        self.closed += 1

    async def block_number(self) -> int:
        return self.head

    async def block_hash(self, block: int | None = None) -> str:
        return hash_of(self.head if block is None else block)

    async def blocks(self, *, finalized: bool = False) -> AsyncIterator[dict[str, Any]]:
        assert finalized
        shown = 0
        while True:
            if self.fault is not None:
                raise self.fault
            if self.head > shown:
                shown = self.head
                yield {"header": {"number": shown, "parentHash": hash_of(shown - 1)}}
            await asyncio.sleep(0.005)

    async def query(
        self, module: str, storage: str, params: list[Any] | None = None, block_hash: str | None = None
    ) -> Any:
        block = self._state(block_hash)
        if (module, storage) == ("Timestamp", "Now"):
            return int(time_of(block).timestamp() * 1000)
        assert (module, storage) == ("System", "BlockHash")
        assert params == [block - 1]
        return hash_of(block - 1)

    async def query_map(self, module: str, storage: str, params: Any = None, block_hash: Any = None) -> list[Any]:
        return []

    async def runtime_call(self, api: str, method: str, params: list[Any], block_hash: str | None = None) -> Any:
        assert (api, method, params) == ("SubnetInfoRuntimeApi", "get_metagraph", [15])
        block = self._state(block_hash)
        self.metagraphs += 1
        return record(block, self.neurons(block)) if self.subnet_exists else None

    def _state(self, block_hash: str | None) -> int:
        if self.fault is not None:
            raise self.fault
        block = self.head if block_hash is None else int(block_hash, 16)
        assert block <= self.head
        if block <= self.head - self.kept_blocks:
            discarded = StateDiscardedError(hash_of(block))
            raise chain_error_from_substrate_request(discarded) from discarded
        return block


def default_neurons(block: int) -> list[tuple[str, bool, float, float]]:
    """A validator, a miner, and from block 900 a newcomer; the validator's stake is the block's number."""
    neurons = [(VALIDATOR, True, float(block), 0.0), (MINER, False, 0.0, 0.5)]
    return neurons + ([(NEWCOMER, False, 2.0, 0.0)] if block >= 900 else [])


def hash_of(block: int) -> str:
    return f"0x{block:064x}"


def record(block: int, neurons: list[tuple[str, bool, float, float]]) -> dict[str, Any]:
    """The runtime's own record of a metagraph."""
    return {
        "netuid": 15,
        "block": block,
        "tempo": 360,
        "last_step": block,
        "blocks_since_last_step": 0,
        "owner_hotkey": VALIDATOR,
        "owner_coldkey": VALIDATOR,
        "network_registered_at": 0,
        "hotkeys": [hotkey for hotkey, _, _, _ in neurons],
        "validator_permit": [permit for _, permit, _, _ in neurons],
        "total_stake": [int(stake * RAO) for _, _, stake, _ in neurons],
        "incentives": [round(incentive * U16) for _, _, _, incentive in neurons],
    }


def to(node: FakeNode) -> Connect:
    return lambda: bittensor.Subtensor("local", substrate=node)


@contextmanager
def following(node: FakeNode, block_seconds: float = BLOCK_SECONDS) -> Iterator[Chain]:
    """A chain that follows the node and has seen its first header."""
    with Chain(to(node), 15, block_seconds) as chain:
        wait_until(lambda: chain.head is not None)
        yield chain


def wait_until(is_so: Callable[[], bool], seconds: float = 10.0) -> None:
    async def wait() -> None:
        async with asyncio.timeout(seconds):
            while not is_so():
                await asyncio.sleep(0.01)

    asyncio.run(wait())
