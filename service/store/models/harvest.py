"""What SN15 has published: races, agents, runs, problems, and the ledger of items to harvest. Judges nothing.

Rows of these tables mirror the source and may be refreshed from it; everything downstream is append-only.
"""

from datetime import datetime
from enum import StrEnum

from sqlalchemy import BigInteger, Enum, ForeignKey, Index, UniqueConstraint, false, text
from sqlalchemy.orm import Mapped, mapped_column

from service.store.models.base import Base, JsonObject, RecordedAt, Serial


class LedgerState(StrEnum):
    """Where one (run, item) stands."""

    EXPECTED = "expected"
    """To be asked for; a `reason` says that the source as a whole could not be asked."""
    FETCHED = "fetched"
    CHANGED = "changed"
    """Fetched, and listed otherwise since: to be asked for again, in case its bytes have changed too."""
    EMBARGOED = "embargoed"
    FAILED = "failed"
    """The last try failed and another one is due at `next_try_at`."""
    GONE = "gone"
    """The source has no such object and will not have one, or SN15 no longer counts the run; `reason` says which."""


class Race(Base):
    """One SN15 competition. `race_number` restarts with a suite and is never a key."""

    __tablename__ = "races"

    race_id: Mapped[str] = mapped_column(primary_key=True)
    suite_id: Mapped[int | None]
    race_number: Mapped[int | None]
    status: Mapped[str]
    is_complete: Mapped[bool]
    started_at: Mapped[datetime | None]
    completed_at: Mapped[datetime | None]
    source: Mapped[JsonObject]
    """The listing as the source gave it, unknown fields included."""
    is_cancelled: Mapped[bool] = mapped_column(server_default=false())
    """It was called off: its runs will never be released."""
    complete_since: Mapped[datetime | None]
    """When it was first listed as complete: what was read of its agents before is out of date."""
    walked_at: Mapped[datetime | None]
    """When every run of the completed race had been listed; None while there may be more."""
    read_at: Mapped[datetime | None]
    """When it was last listed again after that; None while it has not been."""


class AgentVersion(Base):
    """One submitted version of a miner's agent."""

    __tablename__ = "agent_versions"

    agent_version_id: Mapped[str] = mapped_column(primary_key=True)
    agent_name: Mapped[str]
    miner_hotkey: Mapped[str | None]
    version_number: Mapped[int | None]
    family: Mapped[str]
    """Unit of independence between agents: the miner's hotkey, or the version itself where none is given."""
    source: Mapped[JsonObject]
    read_at: Mapped[datetime | None]
    """When its runs were last listed, whatever came of it; None before."""


class EvaluationRun(Base):
    """One validator's run of one agent version, in a race or while qualifying."""

    __tablename__ = "evaluation_runs"

    eval_run_id: Mapped[str] = mapped_column(primary_key=True)
    agent_version_id: Mapped[str] = mapped_column(ForeignKey("agent_versions.agent_version_id"), index=True)
    race_id: Mapped[str | None] = mapped_column(ForeignKey("races.race_id"), index=True)
    """None for a qualifying run."""
    suite_id: Mapped[int | None]
    validator_hotkey: Mapped[str | None]
    phase: Mapped[str]
    kind: Mapped[str]
    """A value of `domain.trajectory.ExecutionKind`."""
    status: Mapped[str]
    is_over: Mapped[bool]
    """The run will not change any more."""
    counts: Mapped[bool]
    """SN15 counts it: successful, included, and not invalidated. Only such runs are harvested."""
    invalidated_at: Mapped[datetime | None]
    completed_at: Mapped[datetime | None]
    source: Mapped[JsonObject]
    listed_at: Mapped[datetime | None]
    """When its items were last listed whole; None while there may be more, or the run is listed otherwise since."""
    next_listing_at: Mapped[datetime | None]
    """When to ask again for items that were withheld or not all there; None where nothing speaks against it."""
    listing_attempts: Mapped[int] = mapped_column(server_default="0")
    """How often in a row its items were not all given."""


class Problem(Base):
    """One task, under the identity the source gives it. The query agents report is not kept here."""

    __tablename__ = "problems"

    problem_id: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    category: Mapped[str]
    suite_id: Mapped[int | None]
    query: Mapped[str | None]
    """Query text as the API gave it; None where it gave none (hidden race problems)."""
    reward: Mapped[list[JsonObject] | None]
    """Gold products with their constraints; None where the source keeps them hidden."""
    voucher: Mapped[JsonObject | None]


class LedgerItem(Base):
    """One (run, item) the source has announced, and what became of it."""

    __tablename__ = "harvest_ledger"
    __table_args__ = (
        UniqueConstraint("eval_run_id", "item_key"),
        Index(
            "ix_harvest_ledger_open",
            "next_try_at",
            postgresql_where=text("state IN ('expected', 'changed', 'embargoed', 'failed')"),
        ),
    )

    ledger_id: Mapped[Serial]
    eval_run_id: Mapped[str] = mapped_column(ForeignKey("evaluation_runs.eval_run_id"))
    item_key: Mapped[str]
    problem_id: Mapped[str] = mapped_column(ForeignKey("problems.problem_id"), index=True)
    episode_result_id: Mapped[str | None]
    judgement: Mapped[JsonObject]
    """What SN15 said of this item, in the fields of `domain.trajectory.Judgement`."""
    state: Mapped[LedgerState] = mapped_column(
        Enum(
            LedgerState,
            native_enum=False,
            length=16,
            values_callable=lambda states: [s.value for s in states],
        )
    )
    reason: Mapped[str | None]
    """Why it stands so: a `source.Refusal` value, or a `domain.tombstones` one where SN15 no longer counts the run.

    None when nothing was refused. On a fetched item: what became of asking for it again.
    """
    attempts: Mapped[int] = mapped_column(server_default="0")
    next_try_at: Mapped[datetime]
    """When the item may be asked for; in the future also while a claim on it runs."""
    claimed_by: Mapped[str | None]
    """The message whose handler is at work on it; delivered again, the same message may go on at once."""
    listed_at: Mapped[RecordedAt]
    fetched_at: Mapped[datetime | None]
    updated_at: Mapped[datetime | None]
    """When the source says that the item was last written; None where it does not say."""
    etag: Mapped[str | None]
    """Entity tag the bytes came with, to ask for them again only if they have changed; None where none was given."""


class Walk(Base):
    """One pass of the subscriber over the source: what it saw and what it could not read."""

    __tablename__ = "walks"

    walk_id: Mapped[Serial]
    started_at: Mapped[RecordedAt]
    finished_at: Mapped[datetime | None]
    races: Mapped[int] = mapped_column(server_default="0")
    runs: Mapped[int] = mapped_column(server_default="0")
    items: Mapped[int] = mapped_column(BigInteger, server_default="0")
    error: Mapped[str | None]
    """Why the walk was broken off; None while it runs and when it was completed."""
    oddities: Mapped[JsonObject] = mapped_column(server_default=text("'{}'::jsonb"))
    """Counts by kind of what the source listed otherwise than is known, `source.Oddity` values."""


class Origin(Base):
    """The one source this corpus comes from. Made-up and real races must never meet in a snapshot."""

    __tablename__ = "origins"

    name: Mapped[str] = mapped_column(primary_key=True)
    recorded_at: Mapped[RecordedAt]
