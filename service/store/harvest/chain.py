"""Metagraphs, stored: one for each race's close, written once, and the newest of a subnet. Asks no chain."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import delete, exists, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from service.domain.sn15.metagraph import STALE_AFTER, MetagraphReading, Neuron
from service.store.models import Metagraph, MetagraphNeuron, Race


class ClosedRace(NamedTuple):
    """A race that is over and has no metagraph yet."""

    race_id: str
    completed_at: datetime


class Newest(NamedTuple):
    """The newest metagraph of a subnet."""

    reading: MetagraphReading
    age: timedelta
    """Between its block's time and now."""
    is_stale: bool


def races_without(session: Session) -> list[ClosedRace]:
    """Races that are over and have no metagraph, the newest first: a node forgets their state next."""
    rows = session.execute(
        select(Race.race_id, Race.completed_at)
        .where(
            Race.is_complete,
            Race.completed_at.is_not(None),
            ~exists().where(Metagraph.race_id == Race.race_id),
        )
        .order_by(Race.completed_at.desc(), Race.race_id)
    )
    return [ClosedRace(race_id, completed_at) for race_id, completed_at in rows if completed_at is not None]


def save_of_race(session: Session, race_id: str, reading: MetagraphReading, lag_blocks: int, *, is_late: bool) -> bool:
    """Store the metagraph of a race's close; False, and of no effect, when the race has one."""
    statement = insert(Metagraph).values(race_id=race_id, **_values(reading), lag_blocks=lag_blocks, is_late=is_late)
    added = session.scalar(
        statement.on_conflict_do_nothing(index_elements=["race_id"]).returning(Metagraph.metagraph_id)
    )
    if added is None:
        return False
    _add_neurons(session, added, reading.neurons)
    return True


def save_newest(session: Session, reading: MetagraphReading) -> bool:
    """Put a reading in the place of the newest; False, and of no effect, when that one is as new."""
    statement = insert(Metagraph).values(**_values(reading), lag_blocks=0, is_late=False)
    renewed = session.scalar(
        statement.on_conflict_do_update(
            index_elements=["netuid"],
            index_where=Metagraph.race_id.is_(None),
            set_={name: statement.excluded[name] for name in ("block", "block_hash", "taken_at")},
            where=Metagraph.block < statement.excluded.block,
        ).returning(Metagraph.metagraph_id)
    )
    if renewed is None:
        return False
    session.execute(delete(MetagraphNeuron).where(MetagraphNeuron.metagraph_id == renewed))
    _add_neurons(session, renewed, reading.neurons)
    return True


def latest(session: Session, netuid: int, now: datetime) -> Newest | None:
    """The newest metagraph of a subnet, with its age; None before the first."""
    found = session.scalar(select(Metagraph).where(Metagraph.race_id.is_(None), Metagraph.netuid == netuid))
    if found is None:
        return None
    age = now - found.taken_at
    return Newest(_reading(session, found), age, age > STALE_AFTER)


def of_race(session: Session, race_id: str) -> MetagraphReading | None:
    """The metagraph of a race's close; None while there is none."""
    found = session.scalar(select(Metagraph).where(Metagraph.race_id == race_id))
    return None if found is None else _reading(session, found)


def _values(reading: MetagraphReading) -> dict[str, object]:
    return {
        "netuid": reading.netuid,
        "block": reading.block,
        "block_hash": reading.block_hash,
        "taken_at": reading.at,
    }


def _add_neurons(session: Session, metagraph_id: int, neurons: Sequence[Neuron]) -> None:
    if not neurons:
        return
    rows = [
        {
            "metagraph_id": metagraph_id,
            "uid": neuron.uid,
            "hotkey": neuron.hotkey,
            "has_permit": neuron.has_permit,
            "stake": neuron.stake,
            "incentive": neuron.incentive,
        }
        for neuron in neurons
    ]
    session.execute(insert(MetagraphNeuron), rows)


def _reading(session: Session, found: Metagraph) -> MetagraphReading:
    neurons = session.scalars(
        select(MetagraphNeuron).where(MetagraphNeuron.metagraph_id == found.metagraph_id).order_by(MetagraphNeuron.uid)
    )
    return MetagraphReading(
        netuid=found.netuid,
        block=found.block,
        block_hash=found.block_hash,
        at=found.taken_at,
        neurons=tuple(
            Neuron(neuron.uid, neuron.hotkey, neuron.has_permit, neuron.stake, neuron.incentive) for neuron in neurons
        ),
    )
