"""What a node answers, as values: neurons, hashes, and why there is no answer. Asks nothing."""

import math
from enum import StrEnum
from typing import Any

from service.domain.sn15.metagraph import Neuron
from service.errors import ErrorCode, SluiceError

MAX_NEURONS = 4096
"""A subnet has 256 places; an answer with more than this is none."""
MAX_HOTKEY_CHARACTERS = 64
HASH_CHARACTERS = 66


class ChainRefusal(StrEnum):
    """Why the chain gave nothing."""

    UNREACHABLE = "unreachable"
    NO_ANSWER = "no_answer"
    """Connected, and silent for too long."""
    NO_ACCESS = "no_access"
    """The node keeps us out, or slows us down."""
    STATE_DISCARDED = "state_discarded"
    """The node keeps no state so old, and knows no archive that does."""
    AHEAD = "ahead"
    """There is no such block yet."""
    NO_SUBNET = "no_subnet"
    REFUSED = "refused"
    """The node answered with a fault of its own."""
    UNREADABLE = "unreadable"
    """What came, or what became of it in the library, makes no sense."""

    @property
    def is_about_node(self) -> bool:
        """Whether every question would be refused alike."""
        return self in (ChainRefusal.UNREACHABLE, ChainRefusal.NO_ANSWER, ChainRefusal.NO_ACCESS)


class ChainRefused(SluiceError):
    """The chain gave nothing. `reason` says why."""

    def __init__(self, reason: ChainRefusal) -> None:
        super().__init__(ErrorCode.SERVICE_UNAVAILABLE, f"the chain gave nothing: {reason}", reason=reason.value)
        self.reason = reason


_BY_NAME = {
    "RpcPolicyError": ChainRefusal.NO_ACCESS,
    "RpcConnectionError": ChainRefusal.UNREACHABLE,
    "ConnectionNotReady": ChainRefusal.UNREACHABLE,
    "TimeoutError": ChainRefusal.UNREACHABLE,
    "OSError": ChainRefusal.UNREACHABLE,
    "WebSocketException": ChainRefusal.UNREACHABLE,
    "StopAsyncIteration": ChainRefusal.UNREACHABLE,
    "ChainError": ChainRefusal.REFUSED,
    "SubstrateRequestException": ChainRefusal.REFUSED,
}
"""By the name of an exception's class, or of a class above it: naming them so needs no import."""
_BY_CAUSE = {"StateDiscardedError": ChainRefusal.STATE_DISCARDED, "BlockNotFound": ChainRefusal.AHEAD}
"""By the name of the exception's own class, or of what caused it: the library wraps these in a `ChainError`."""


def refusal_of(fault: BaseException | None) -> ChainRefusal:
    """The refusal an exception stands for."""
    if isinstance(fault, ChainRefused):
        return fault.reason
    within = fault
    while within is not None:
        if type(within).__name__ in _BY_CAUSE:
            return _BY_CAUSE[type(within).__name__]
        within = within.__cause__
    names = (above.__name__ for above in type(fault).__mro__)
    return next((_BY_NAME[name] for name in names if name in _BY_NAME), ChainRefusal.UNREADABLE)


def neurons_of(graph: Any) -> tuple[Neuron, ...]:
    """The neurons of the library's metagraph.

    Raises:
        ChainRefused: UNREADABLE for one that cannot be stored, or a hotkey that is there twice.
    """
    given = list(graph.neurons)
    neurons = tuple(
        Neuron(
            uid=int(neuron.uid),
            hotkey=str(neuron.hotkey),
            has_permit=bool(neuron.validator_permit),
            stake=float(neuron.total_stake.amount),
            incentive=float(neuron.incentive),
        )
        for neuron in given[: MAX_NEURONS + 1]
    )
    distinct = len({neuron.hotkey for neuron in neurons}) == len({neuron.uid for neuron in neurons}) == len(neurons)
    if len(given) > MAX_NEURONS or not distinct or not all(map(_is_sound, neurons)):
        raise ChainRefused(ChainRefusal.UNREADABLE)
    return neurons


def _is_sound(neuron: Neuron) -> bool:
    named = neuron.hotkey.isascii() and neuron.hotkey.isalnum() and len(neuron.hotkey) <= MAX_HOTKEY_CHARACTERS
    finite = math.isfinite(neuron.stake) and math.isfinite(neuron.incentive)
    return named and finite and 0 <= neuron.uid < 2**31 and neuron.stake >= 0 and neuron.incentive >= 0


def hash_of(answer: Any) -> str | None:
    """A block's hash in hex; None where the answer is none."""
    if isinstance(answer, str) and len(answer) == HASH_CHARACTERS and answer.startswith("0x"):
        return answer
    return None
