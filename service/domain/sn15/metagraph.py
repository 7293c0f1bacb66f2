"""Who is registered on the subnet at one block, and how that is read: bands, lateness, staleness. Asks no chain.

Bands are decades, not quantiles: stake runs over many powers of ten and most incentives are nought, so that quartiles
of one race would fall together, and would mean something else in every race.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

BLOCK_SECONDS = 12.0
"""Time between two blocks."""
TEMPO_BLOCKS = 360
"""Blocks between two settlements of a subnet's incentives."""
SILENT_BLOCKS = 10
"""A chain that has shown no header for so many block times is silent: what it said last is stale."""
REFRESH_BLOCKS = 25
"""The newest metagraph is read again after so many blocks."""
STALE_AFTER = timedelta(seconds=(REFRESH_BLOCKS + SILENT_BLOCKS) * BLOCK_SECONDS)
"""A newest metagraph older than this is stale: it should have been read again, and the chain is not merely slow."""


@dataclass(frozen=True, slots=True)
class Neuron:
    """One registered hotkey."""

    uid: int
    hotkey: str
    has_permit: bool
    """It may set weights: a validator's permit."""
    stake: float
    """Total stake, in the subnet's own unit."""
    incentive: float
    """Share of the miners' emission, 0 to 1."""


@dataclass(frozen=True, slots=True)
class MetagraphReading:
    """A subnet's neurons at one block."""

    netuid: int
    block: int
    block_hash: str | None
    at: datetime
    """The block's own time."""
    neurons: tuple[Neuron, ...]


class Band(NamedTuple):
    """Values from `least` up to the next band."""

    name: str
    least: float


NOUGHT = "0"
UNREGISTERED = "unregistered"
"""Stands for the band of a hotkey that is not in the metagraph."""
STAKE_BANDS = (Band("above 0", 0.0), *(Band(f"from {10**power}", float(10**power)) for power in range(8)))
INCENTIVE_BANDS = (
    Band("above 0", 0.0),
    Band("from 0.001", 0.001),
    Band("from 0.01", 0.01),
    Band("from 0.1", 0.1),
)


def band_of(value: float, bands: tuple[Band, ...]) -> str:
    """Name of the band a stake or an incentive is in; nought is a band of its own, and nothing is below it."""
    if value <= 0:
        return NOUGHT
    return next(band.name for band in reversed(bands) if value >= band.least)


def is_silent(seen_at: datetime | None, now: datetime, block_seconds: float = BLOCK_SECONDS) -> bool:
    """Whether the newest header came too long ago for what was read since to be the present; None: none ever came."""
    return seen_at is None or now - seen_at > timedelta(seconds=SILENT_BLOCKS * block_seconds)


def blocks_between(earlier: datetime, later: datetime) -> int:
    """About how many blocks were made from one time to another; 0 where it is the other way round."""
    return max(0, int((later - earlier).total_seconds() // BLOCK_SECONDS))
