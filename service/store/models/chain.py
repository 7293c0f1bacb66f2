"""What the chain said of the subnet: metagraphs, one for each race's close and the newest. Joined to by hotkey only.

The row of a race is written once. The one row without a race is refreshed, as all that mirrors a source.
"""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from service.store.models.base import Base, RecordedAt, Serial


class Metagraph(Base):
    """Who was registered on a subnet at one block."""

    __tablename__ = "metagraphs"
    __table_args__ = (
        UniqueConstraint("race_id"),
        Index("uq_metagraphs_newest", "netuid", unique=True, postgresql_where=text("race_id IS NULL")),
    )

    metagraph_id: Mapped[Serial]
    race_id: Mapped[str | None] = mapped_column(ForeignKey("races.race_id"))
    """The race at whose close it was taken; None for the newest reading, of which there is one a subnet."""
    netuid: Mapped[int]
    block: Mapped[int] = mapped_column(BigInteger)
    block_hash: Mapped[str | None]
    taken_at: Mapped[datetime]
    """The block's own time."""
    lag_blocks: Mapped[int] = mapped_column(BigInteger)
    """Blocks between the first one after the race's close and this one; 0 where the node could go back to it."""
    is_late: Mapped[bool]
    """The node could not give the state at the race's close any more, so this is a later one."""
    recorded_at: Mapped[RecordedAt]


class MetagraphNeuron(Base):
    """One registered hotkey at that block."""

    __tablename__ = "metagraph_neurons"
    __table_args__ = (UniqueConstraint("metagraph_id", "hotkey"),)

    metagraph_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("metagraphs.metagraph_id"), primary_key=True)
    uid: Mapped[int] = mapped_column(primary_key=True)
    hotkey: Mapped[str]
    has_permit: Mapped[bool]
    """It may set weights: a validator's permit."""
    stake: Mapped[float]
    """Total stake, in the subnet's own unit."""
    incentive: Mapped[float]
    """Share of the miners' emission, 0 to 1."""
