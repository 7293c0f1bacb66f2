"""What the validator beside us wrote on this machine: envelopes, lines of its proxy's log, and how far both were read.

Nothing here is ever served or counted: these rows grade items that the source has released, and no other table, route,
plan or file is made from them. Only what a comparison came to leaves, as a state of the evidence.
"""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import ARRAY, TEXT
from sqlalchemy.orm import Mapped, mapped_column

from service.store.models.base import Base, JsonObject, Moment, Serial


class LocalEnvelope(Base):
    """One line that the sandbox or the episode runner wrote. Two different lines about one problem are two rows."""

    __tablename__ = "local_envelopes"
    __table_args__ = (
        UniqueConstraint("eval_run_id", "problem_id", "kind", "line_sha256", postgresql_nulls_not_distinct=True),
        Index("ix_local_envelopes_waiting", "eval_run_id", "problem_id", postgresql_where=text("graded_at IS NULL")),
        Index("ix_local_envelopes_span", "ended_at", "started_at"),
    )

    envelope_id: Mapped[Serial]
    eval_run_id: Mapped[str]
    """From the folder's name, or from the line where it gives one."""
    problem_id: Mapped[str | None]
    """Problem or task; None where the line does not tell."""
    kind: Mapped[str]
    """`sandbox` for an envelope with a dialogue, `episode` for an episode's result."""
    ordinal: Mapped[int] = mapped_column(BigInteger)
    """Place of the line in its file where it came first. The first line about a problem is the one that is scored."""
    last_ordinal: Mapped[int] = mapped_column(BigInteger)
    """Place where the same line came last. The last line about a problem is the one that is uploaded."""
    line_sha256: Mapped[str]
    zstd: Mapped[bytes | None] = mapped_column(LargeBinary)
    """The line, compressed; None where it was too large to be kept, and some time after it was graded."""
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    status: Mapped[str | None]
    defects: Mapped[list[str]] = mapped_column(ARRAY(TEXT))
    started_at: Mapped[Moment]
    ended_at: Mapped[Moment]
    """With `started_at`, when the item ran: by its own time stamps, or by when the line came and the time it took."""
    seen_at: Mapped[Moment]
    graded_at: Mapped[datetime | None]
    """When it was compared with released bytes; None while it waits for its release."""


class WitnessLine(Base):
    """One request that the validator's proxy served. The client's address and what was said are not kept."""

    __tablename__ = "witness_lines"

    line_id: Mapped[Serial]
    line_sha256: Mapped[str] = mapped_column(unique=True)
    """Of the log's first line, the place in the log, and the line: the same line read again has the same."""
    at: Mapped[datetime] = mapped_column(index=True)
    """When the request ended."""
    resolution_ms: Mapped[int]
    """Length of the interval that starts at `at` and in which the request ended."""
    method: Mapped[str | None]
    path: Mapped[str]
    arguments: Mapped[JsonObject]
    """Arguments of the query, decoded once; the first of each name."""
    status: Mapped[int | None]
    body_bytes: Mapped[int | None] = mapped_column(BigInteger)
    request_bytes: Mapped[int | None] = mapped_column(BigInteger)
    seconds: Mapped[float | None]
    seen_at: Mapped[datetime] = mapped_column(index=True)


class LocalGrading(Base):
    """That an item was compared with what is known locally, and of what: it is compared again when that changes."""

    __tablename__ = "local_gradings"
    __table_args__ = (
        Index("ix_local_gradings_due", "trajectory_id", postgresql_where=text("is_due")),
        Index("ix_local_gradings_span", "window_end", "window_start"),
    )

    trajectory_id: Mapped[int] = mapped_column(
        BigInteger, ForeignKey("trajectories.trajectory_id"), primary_key=True, autoincrement=False
    )
    payload_sha256: Mapped[str]
    """The released bytes that were compared."""
    window_start: Mapped[datetime | None]
    window_end: Mapped[datetime | None]
    """Span of the item's claimed requests: a line that is read later and falls into it makes the grading due."""
    is_due: Mapped[bool]
    graded_at: Mapped[Moment]


class TailPosition(Base):
    """How far a file was read. Written in the transaction that stores what was read; gone with the file."""

    __tablename__ = "tail_positions"
    __table_args__ = (UniqueConstraint("source", "path", "device", "inode"),)

    position_id: Mapped[Serial]
    source: Mapped[str]
    """`logs` or `proxy`."""
    path: Mapped[str]
    """Relative to the folder that is followed."""
    device: Mapped[int] = mapped_column(BigInteger)
    inode: Mapped[int] = mapped_column(BigInteger)
    offset_bytes: Mapped[int] = mapped_column(BigInteger)
    """Everything before is stored."""
    lines: Mapped[int] = mapped_column(BigInteger)
    """Lines read under this path so far, in all files that have borne it."""
    head_sha256: Mapped[str]
    """Of the file's first bytes, as many as were read and are needed to know it again."""
    head_bytes: Mapped[int]
    tail_sha256: Mapped[str]
    """Of the last bytes before the offset: another content there is another file."""
    garbage_lines: Mapped[int] = mapped_column(BigInteger, server_default="0")
    """Lines of the proxy's log that do not fit its format."""
    updated_at: Mapped[Moment]
