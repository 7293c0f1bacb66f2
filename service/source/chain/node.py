"""One subnet of the Bittensor chain, followed header by header and asked for metagraphs. It stores nothing.

With `chain_answers` the only module that knows the names of `bittensor`, which is imported when a chain is opened and
never before. Whatever that library raises leaves here as a `ChainRefused`, without its text: it may name the node's
URL, which may be secret.
"""

import asyncio
import logging
import random
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import TimeoutError as NoAnswer
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from service.config import Settings
from service.domain.sn15.metagraph import BLOCK_SECONDS, SILENT_BLOCKS, MetagraphReading, is_silent
from service.errors import ErrorCode, SluiceError
from service.source.chain.answers import (
    ChainRefusal,
    ChainRefused,
    hash_of,
    neurons_of,
    refusal_of,
)

ANSWER_SECONDS = 60.0
"""A node that has not answered a question for so long will not; finding a block takes some forty short answers."""
CLOSING_SECONDS = 5.0
FIRST_BACKOFF_SECONDS = 1.0
LONGEST_BACKOFF_SECONDS = 60.0
_HASHES = ("System", "BlockHash")

Connect = Callable[[], AbstractAsyncContextManager[Any]]
"""Makes a connection, not yet open; inside its block it is a `bittensor` client."""
Answer = TypeVar("Answer")


class Head(NamedTuple):
    """The newest finalized block known."""

    block: int
    seen_at: datetime


def check(settings: Settings) -> None:
    """See whether what a chain takes is installed, where the settings name one.

    Raises:
        SluiceError: PREREQUISITE_MISSING.
    """
    if settings.subtensor and find_spec("bittensor") is None:
        needs = "SLUICE_SUBTENSOR is set, which needs the extra `chain`: pip install 'sluice-sn15[chain]'"
        raise SluiceError(ErrorCode.PREREQUISITE_MISSING, needs)


def connecting(settings: Settings) -> Connect:
    """How to connect to the node that the settings name; opens nothing.

    Raises:
        SluiceError: PREREQUISITE_MISSING; BAD_INPUT for a name that is no network.
    """
    check(settings)
    make = import_module("bittensor").Subtensor
    for name in ("bittensor", "websockets"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # they name the node's URL
    try:
        make(settings.subtensor)
    except ValueError:
        known = "SLUICE_SUBTENSOR must be finney, test, local or the ws:// or wss:// URL of a node"
        raise SluiceError(ErrorCode.BAD_INPUT, known) from None
    return lambda: make(settings.subtensor)


def open_chain(settings: Settings) -> "Chain":
    """The chain the settings name, to be entered.

    Raises:
        SluiceError: PREREQUISITE_MISSING, BAD_INPUT.
    """
    return Chain(connecting(settings), settings.netuid)


class Chain:
    """Follows finalized headers on a thread of its own while its block lasts; asked from any other thread.

    Of the headers only the newest is kept. A connection that breaks, or is silent for `SILENT_BLOCKS` block times, is
    made anew after a growing, jittered pause.
    """

    def __init__(self, connect: Connect, netuid: int, block_seconds: float = BLOCK_SECONDS) -> None:
        self._connect = connect
        self._netuid = netuid
        self._block_seconds = block_seconds
        self._client: Any = None
        self._head: Head | None = None
        self._refusal: ChainRefusal | None = None
        self._connections = 0
        self._loop = asyncio.new_event_loop()
        self._ending = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="chain", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join()

    @property
    def head(self) -> Head | None:
        """The newest header; None before the first."""
        return self._head

    @property
    def refusal(self) -> ChainRefusal | None:
        """Why the last connection ended; None while the first one holds."""
        return self._refusal

    @property
    def connections(self) -> int:
        """Connections begun so far."""
        return self._connections

    def is_silent(self, now: datetime) -> bool:
        """Whether what was read is not to be taken for the present any more."""
        return is_silent(self._head.seen_at if self._head else None, now, self._block_seconds)

    def metagraph(self, block: int | None = None) -> MetagraphReading:
        """The subnet's neurons at a block, or at the newest one.

        Raises:
            ChainRefused: STATE_DISCARDED where the node keeps no state so old; or any other cause.
        """
        return self._ask(lambda client: self._read(client, block))

    def block_at(self, moment: datetime) -> int:
        """The first block whose time is not before a moment.

        Raises:
            ChainRefused: AHEAD while there is none; STATE_DISCARDED; or any other cause.
        """
        return self._ask(lambda client: self._find(client, moment))

    def _ask(self, question: Callable[[Any], Awaitable[Answer]]) -> Answer:
        client = self._client
        if client is None or self._head is None:
            raise ChainRefused(self._refusal or ChainRefusal.UNREACHABLE)
        asked = asyncio.run_coroutine_threadsafe(_within(ANSWER_SECONDS, question(client)), self._loop)
        try:
            return asked.result(ANSWER_SECONDS + CLOSING_SECONDS)
        except NoAnswer:
            asked.cancel()
            raise ChainRefused(ChainRefusal.NO_ANSWER) from None

    async def _read(self, client: Any, block: int | None) -> MetagraphReading:
        newest = self._newest()
        number = newest if block is None else block
        graph = await client.subnets.metagraph(self._netuid, block=number, commitments=False)
        if graph is None:
            raise ChainRefused(ChainRefusal.NO_SUBNET)
        return MetagraphReading(
            netuid=self._netuid,
            block=number,
            block_hash=hash_of(await client.query(_HASHES, [number], block=number + 1)) if number < newest else None,
            at=await client.timestamp(block=number),
            neurons=neurons_of(graph),
        )

    async def _find(self, client: Any, moment: datetime) -> int:
        """Guess by the time between blocks, widen until the moment is inside, then halve."""
        after = self._newest()
        behind = (await client.timestamp(block=after) - moment).total_seconds()
        if behind < 0:
            raise ChainRefused(ChainRefusal.AHEAD)
        width = 1
        before = after - int(behind / self._block_seconds) - 1
        while before > 0 and await client.timestamp(block=before) >= moment:
            after, before, width = before, before - width, width * 2
        before, width = max(before, 0), 1
        while before + width < after and await client.timestamp(block=before + width) < moment:
            before, width = before + width, width * 2
        after = min(after, before + width)
        while after - before > 1:
            middle = (before + after) // 2
            if await client.timestamp(block=middle) < moment:
                before = middle
            else:
                after = middle
        return after

    def _newest(self) -> int:
        assert self._head is not None
        return self._head.block

    def _run(self) -> None:
        self._loop.run_until_complete(self._keep_following())
        self._loop.close()

    async def _keep_following(self) -> None:
        backoff_seconds = FIRST_BACKOFF_SECONDS
        ending = asyncio.ensure_future(self._ending.wait())
        while not self._ending.is_set():
            head_before = self._head
            following = asyncio.ensure_future(self._follow())
            await asyncio.wait({following, ending}, return_when=asyncio.FIRST_COMPLETED)
            following.cancel()
            await asyncio.wait({following}, timeout=CLOSING_SECONDS)
            if following.done() and not following.cancelled():
                self._refusal = refusal_of(following.exception())
            backoff_seconds = FIRST_BACKOFF_SECONDS if self._head != head_before else backoff_seconds * 2
            backoff_seconds = min(backoff_seconds, LONGEST_BACKOFF_SECONDS)
            await asyncio.wait({ending}, timeout=backoff_seconds * random.uniform(0.5, 1.0))

    async def _follow(self) -> None:
        """One connection, to its end."""
        patience_seconds = SILENT_BLOCKS * self._block_seconds
        self._connections += 1
        async with AsyncExitStack() as stack:
            client = await _within(patience_seconds, stack.enter_async_context(self._connect()))
            headers = client.blocks(finalized=True)
            stack.push_async_callback(headers.aclose)
            self._client = client
            stack.callback(setattr, self, "_client", None)
            while True:
                header = await _within(patience_seconds, anext(headers))
                if self._head is None or header.number > self._head.block:
                    self._head = Head(header.number, datetime.now(UTC))


async def _within(seconds: float, work: Awaitable[Answer]) -> Answer:
    """Wait for the library; whatever it raises, and that it does not come back, is a refusal."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        in_time = task.done()
        task.cancel()
        await asyncio.wait({task}, timeout=CLOSING_SECONDS)
    if not in_time or task.cancelled():
        raise ChainRefused(ChainRefusal.NO_ANSWER)
    fault = task.exception()
    if fault is not None:
        raise ChainRefused(refusal_of(fault)) from None
    return task.result()
