"""What SN15 says of how much there is: the readings that coverage is compared with. No gate reads them."""

from datetime import datetime

from sqlalchemy.orm import Mapped

from service.store.models.base import Base, JsonObject, Serial


class TrajectoryHistory(Base):
    """One reading of SN15's own count of trajectories. A reading that says what the last one said adds no row."""

    __tablename__ = "trajectory_history"

    history_id: Mapped[Serial]
    total: Mapped[int | None]
    """Distinct (agent version, problem) pairs there have ever been; None while the source has not counted them."""
    series: Mapped[list[JsonObject]]
    """The same by day, as it came."""
    read_at: Mapped[datetime]
    """When it was last read so."""
