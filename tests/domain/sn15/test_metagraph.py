"""Bands of stake and incentive, lateness and staleness of what a chain said."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.sn15.metagraph import (
    BLOCK_SECONDS,
    INCENTIVE_BANDS,
    NOUGHT,
    SILENT_BLOCKS,
    STAKE_BANDS,
    Band,
    band_of,
    blocks_between,
    is_silent,
)

NOW = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("stake", "band"),
    [(0.0, "0"), (0.5, "above 0"), (1.0, "from 1"), (9.99, "from 1"), (10.0, "from 10"), (5e9, "from 10000000")],
)
def test_stake_is_read_in_decades(stake: float, band: str) -> None:
    assert band_of(stake, STAKE_BANDS) == band


@pytest.mark.parametrize(
    ("incentive", "band"),
    [
        (0.0, "0"),
        (1 / 65535, "above 0"),
        (0.001, "from 0.001"),
        (0.0999, "from 0.01"),
        (0.1, "from 0.1"),
        (1, "from 0.1"),
    ],
)
def test_incentive_is_read_in_decades(incentive: float, band: str) -> None:
    assert band_of(incentive, INCENTIVE_BANDS) == band


@pytest.mark.parametrize("bands", [STAKE_BANDS, INCENTIVE_BANDS], ids=["stake", "incentive"])
def test_bands_rise_and_have_names_of_their_own(bands: tuple[Band, ...]) -> None:
    least = [band.least for band in bands]
    assert least == sorted(set(least))
    assert len({NOUGHT, *(band.name for band in bands)}) == len(bands) + 1


@given(st.floats(min_value=0, max_value=1e12, allow_nan=False))
def test_every_value_is_in_the_last_band_it_reaches(value: float) -> None:
    name = band_of(value, STAKE_BANDS)
    reached = [band.name for band in STAKE_BANDS if band.least <= value]
    assert name == (reached[-1] if value > 0 else NOUGHT)


def test_a_chain_is_silent_after_ten_block_times() -> None:
    limit = timedelta(seconds=SILENT_BLOCKS * BLOCK_SECONDS)
    assert not is_silent(NOW - limit, NOW)
    assert is_silent(NOW - limit - timedelta(seconds=1), NOW)
    assert is_silent(None, NOW)


def test_blocks_between_two_times() -> None:
    assert blocks_between(NOW, NOW + timedelta(seconds=59)) == 4
    assert blocks_between(NOW, NOW - timedelta(hours=1)) == 0
