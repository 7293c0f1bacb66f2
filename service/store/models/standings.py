"""What SN15 publishes around its runs: suites, standings, seed commitments, and the code of agents. Judges nothing.

Suites and standings mirror the source and are refreshed from it. Seed commitments are append-only: what was published
once must stay comparable with what is published later. The bytes of agents are evidence and are never given away.
"""

from datetime import datetime

from sqlalchemy import BigInteger, Enum, ForeignKey, Index, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from service.store.models.base import Base, JsonObject, RecordedAt, Serial
from service.store.models.harvest import LedgerState


class Suite(Base):
    """One problem suite."""

    __tablename__ = "suites"

    suite_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    kind: Mapped[str]
    """Execution kind of its runs: `legacy_shoppingbench` or `envpack`."""
    world: Mapped[str | None]
    """The catalogue its episodes play in; None for legacy suites."""
    source: Mapped[JsonObject]


class RaceEntry(Base):
    """One agent version in one race. Scores and rank stay empty until the race is complete."""

    __tablename__ = "race_entries"

    race_id: Mapped[str] = mapped_column(ForeignKey("races.race_id"), primary_key=True)
    agent_version_id: Mapped[str] = mapped_column(
        ForeignKey("agent_versions.agent_version_id"), primary_key=True, index=True
    )
    qualification_type: Mapped[str | None]
    """`INCUMBENT`, `SCORED`, or whatever the source says."""
    qualifying_score: Mapped[float | None]
    race_score: Mapped[float | None]
    weighted_score: Mapped[float | None]
    """Pooled over the window of races that the source lists beside it."""
    race_rank: Mapped[int | None]
    is_discarded: Mapped[bool]
    eliminated_at: Mapped[datetime | None]
    source: Mapped[JsonObject]


class LeaderboardEntry(Base):
    """One agent version on the leaderboard of one suite."""

    __tablename__ = "leaderboard_entries"

    suite_id: Mapped[int] = mapped_column(ForeignKey("suites.suite_id"), primary_key=True)
    agent_version_id: Mapped[str] = mapped_column(
        ForeignKey("agent_versions.agent_version_id"), primary_key=True, index=True
    )
    rank: Mapped[int | None]
    final_score: Mapped[float | None]
    race_score: Mapped[float | None]
    weighted_score: Mapped[float | None]
    is_discarded: Mapped[bool]
    is_current_top: Mapped[bool]
    eliminated_at: Mapped[datetime | None]
    source: Mapped[JsonObject]


class SeedCommitment(Base):
    """What was published of one race's world seed at one time. The row with the highest id is the present state."""

    __tablename__ = "seed_commitments"
    __table_args__ = (Index("ix_seed_commitments_race", "race_id", "commitment_id"),)

    commitment_id: Mapped[Serial]
    race_id: Mapped[str] = mapped_column(ForeignKey("races.race_id"))
    is_revealed: Mapped[bool]
    source: Mapped[JsonObject | None]
    """The record as it came; None: the source says that the race has none."""
    recorded_at: Mapped[RecordedAt]


class AgentCodeBytes(Base):
    """Source of agents, addressed by its sha256 and stored once, zstd-compressed: evidence, never to be given away."""

    __tablename__ = "agent_code_bytes"

    code_sha256: Mapped[str] = mapped_column(primary_key=True)
    """Hex digest of the uncompressed bytes."""
    zstd: Mapped[bytes] = mapped_column(LargeBinary)
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    """Uncompressed size."""


class AgentCode(Base):
    """Whether the code of one agent version has been released, and fetched."""

    __tablename__ = "agent_code"

    agent_version_id: Mapped[str] = mapped_column(ForeignKey("agent_versions.agent_version_id"), primary_key=True)
    state: Mapped[LedgerState] = mapped_column(
        Enum(LedgerState, native_enum=False, length=16, values_callable=lambda states: [s.value for s in states])
    )
    reason: Mapped[str | None]
    """Why the last try gave nothing, as a `source.Refusal` value; None once fetched."""
    attempts: Mapped[int]
    next_try_at: Mapped[datetime]
    """When the code may be asked for again; of no meaning once fetched or gone."""
    code_sha256: Mapped[str | None] = mapped_column(ForeignKey("agent_code_bytes.code_sha256"))
    fetched_at: Mapped[datetime | None]
