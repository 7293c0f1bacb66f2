"""Imports of files: what was read when, and what became of its rows. The rows themselves are trajectories like others.

A log for people: nothing is read from it, and a row of it is no condition for one of the corpus.
"""

from datetime import datetime

from sqlalchemy.orm import Mapped

from service.store.models.base import Base, JsonObject, RecordedAt, Serial

IMPORTED = "IMPORTED"
"""Phase of the runs that came out of files: no race, no qualifying, and nothing that SN15 said."""


class Import(Base):
    """One reading of one file."""

    __tablename__ = "imports"

    import_id: Mapped[Serial]
    name: Mapped[str]
    """Of the file, without its folder."""
    file_sha256: Mapped[str | None]
    """Hex digest of the file as it lay there, compressed or not; None until it was read to its end."""
    format: Mapped[str | None]
    """None until a row showed it."""
    counts: Mapped[JsonObject]
    """Rows by what became of them: `stored`, `present`, and each `RowFault`."""
    fault: Mapped[str | None]
    """Why the file was not read to its end."""
    started_at: Mapped[RecordedAt]
    finished_at: Mapped[datetime | None]
    """None while it runs, and when it was interrupted."""
