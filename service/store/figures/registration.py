"""Where a trajectory's validator and miner stood on the subnet at the race's close, as columns to count by.

A trajectory whose race has no metagraph, or one that was read too late to tell of the close, has None for both.
"""

from typing import Any

from sqlalchemy import ColumnElement, Select, case, literal, null
from sqlalchemy.orm import InstrumentedAttribute, aliased

from service.domain.sn15.metagraph import INCENTIVE_BANDS, NOUGHT, STAKE_BANDS, TEMPO_BLOCKS, UNREGISTERED, Band
from service.store.models import AgentVersion, EvaluationRun, Metagraph, MetagraphNeuron

_Validator = aliased(MetagraphNeuron, name="validator")
_Miner = aliased(MetagraphNeuron, name="miner")


def joined(statement: Select[Any]) -> Select[Any]:
    """A statement over runs and agent versions, with the neurons of both hotkeys where there are any."""
    told = (Metagraph.race_id == EvaluationRun.race_id) & (Metagraph.lag_blocks <= TEMPO_BLOCKS)
    statement = statement.join(Metagraph, told, isouter=True)
    for neuron, hotkey in ((_Validator, EvaluationRun.validator_hotkey), (_Miner, AgentVersion.miner_hotkey)):
        of_hotkey = (neuron.metagraph_id == Metagraph.metagraph_id) & (neuron.hotkey == hotkey)
        statement = statement.join(neuron, of_hotkey, isouter=True)
    return statement


def _band(
    value: InstrumentedAttribute[float], hotkey: InstrumentedAttribute[str | None], bands: tuple[Band, ...]
) -> ColumnElement[Any]:
    """`domain.metagraph.band_of` as the database computes it."""
    return case(
        (Metagraph.metagraph_id.is_(None) | hotkey.is_(None), null()),
        (value.is_(None), _inline(UNREGISTERED)),
        (value <= _inline(0.0), _inline(NOUGHT)),
        *((value >= _inline(band.least), _inline(band.name)) for band in reversed(bands[1:])),
        else_=_inline(bands[0].name),
    )


def _inline(constant: str | float) -> ColumnElement[Any]:
    """A constant in the statement's own text: Postgres groups by no expression that holds parameters."""
    return literal(constant, literal_execute=True)


STAKE: ColumnElement[Any] = _band(_Validator.stake, EvaluationRun.validator_hotkey, STAKE_BANDS)
INCENTIVE: ColumnElement[Any] = _band(_Miner.incentive, AgentVersion.miner_hotkey, INCENTIVE_BANDS)
