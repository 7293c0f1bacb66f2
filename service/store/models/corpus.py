"""The corpus: payloads, trajectories, evidence and verdicts. Append-only; a change upstream is a new row."""

from datetime import datetime

from sqlalchemy import (
    BigInteger,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    LargeBinary,
    UniqueConstraint,
    false,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, TEXT
from sqlalchemy.orm import Mapped, mapped_column

from service.store.models.base import Base, JsonObject, RecordedAt, Serial


class Payload(Base):
    """Bytes of a trajectory, addressed by their sha256 and stored once, zstd-compressed."""

    __tablename__ = "payloads"

    payload_sha256: Mapped[str] = mapped_column(primary_key=True)
    """Hex digest of the uncompressed bytes."""
    zstd: Mapped[bytes] = mapped_column(LargeBinary)
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    """Uncompressed size."""


class Trajectory(Base):
    """The stored record of one (run, item), empty ones included, with the bytes that were fetched first."""

    __tablename__ = "trajectories"
    __table_args__ = (UniqueConstraint("eval_run_id", "item_key"),)

    trajectory_id: Mapped[Serial]
    ledger_id: Mapped[int] = mapped_column(ForeignKey("harvest_ledger.ledger_id"), index=True)
    eval_run_id: Mapped[str] = mapped_column(ForeignKey("evaluation_runs.eval_run_id"))
    item_key: Mapped[str]
    problem_id: Mapped[str] = mapped_column(ForeignKey("problems.problem_id"), index=True)
    payload_sha256: Mapped[str] = mapped_column(ForeignKey("payloads.payload_sha256"), index=True)
    kind: Mapped[str]
    harvested_at: Mapped[RecordedAt]


class Evidence(Base):
    """All that was known around one trajectory at one time. The row with the highest `seq` is the present state."""

    __tablename__ = "evidence"
    __table_args__ = (
        Index("ix_evidence_latest", "trajectory_id", "seq"),
        Index("ix_evidence_late", "trajectory_id", postgresql_where=text("is_late")),
    )

    trajectory_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("trajectories.trajectory_id"), primary_key=True)
    evidence_digest: Mapped[str] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(BigInteger, Identity())
    payload_sha256: Mapped[str] = mapped_column(ForeignKey("payloads.payload_sha256"))
    """The bytes this state is about: those of the trajectory, or a later version of them."""
    body: Mapped[JsonObject]
    is_late: Mapped[bool] = mapped_column(server_default=false())
    """The source changed its judgement or the bytes after they had been stored."""
    recorded_at: Mapped[RecordedAt]


class Tombstone(Base):
    """Word from the source that something no longer counts, or counts again. The newest row of a subject stands."""

    __tablename__ = "tombstones"
    __table_args__ = (Index("ix_tombstones_subject", "subject", "subject_id", "tombstone_id"),)

    tombstone_id: Mapped[Serial]
    revision: Mapped[int] = mapped_column(BigInteger, ForeignKey("corpus_revisions.revision"), index=True)
    subject: Mapped[str]
    """What `subject_id` names: `run`, `agent_version` or `item` (a trajectory)."""
    subject_id: Mapped[str]
    reason: Mapped[str]
    is_lifted: Mapped[bool]
    source: Mapped[JsonObject]
    """The listing that says so, as it came."""
    recorded_at: Mapped[RecordedAt]


class Policy(Base):
    """A frozen, named, digested policy: a rule set, a leak plan, a pool plan or a selection policy."""

    __tablename__ = "policies"

    policy_digest: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    name: Mapped[str]
    body: Mapped[JsonObject]
    recorded_at: Mapped[RecordedAt]


class CorpusRevision(Base):
    """A numbered state of the corpus. Verdicts join the one open revision; sealing it fixes what it holds.

    Writers hold the open row `FOR SHARE` until they commit and sealing takes it `FOR UPDATE`, so that a sealed
    revision is complete whatever the order of commits.
    """

    __tablename__ = "corpus_revisions"
    __table_args__ = (
        Index(
            "uq_corpus_revisions_open",
            text("(sealed_at IS NULL)"),
            unique=True,
            postgresql_where=text("sealed_at IS NULL"),
        ),
    )

    revision: Mapped[Serial]
    opened_at: Mapped[RecordedAt]
    sealed_at: Mapped[datetime | None]


class Verdict(Base):
    """What one rule set says of one trajectory in the light of one state of the evidence."""

    __tablename__ = "verdicts"
    __table_args__ = (
        UniqueConstraint("trajectory_id", "evidence_digest", "rules_digest"),
        ForeignKeyConstraint(
            ["trajectory_id", "evidence_digest"], ["evidence.trajectory_id", "evidence.evidence_digest"]
        ),
        Index("ix_verdicts_rules_outcome", "rules_digest", "outcome"),
    )

    verdict_id: Mapped[Serial]
    trajectory_id: Mapped[int] = mapped_column(BigInteger)
    evidence_digest: Mapped[str]
    rules_digest: Mapped[str] = mapped_column(ForeignKey("policies.policy_digest"))
    revision: Mapped[int] = mapped_column(BigInteger, ForeignKey("corpus_revisions.revision"), index=True)
    outcome: Mapped[str]
    reason: Mapped[str]
    structural_class: Mapped[str]
    trust: Mapped[str]
    calls: Mapped[list[JsonObject]]
    """Provenance of each tool call, in order: `domain.provenance.CallProvenance` as JSON."""
    signals: Mapped[JsonObject]
    answer: Mapped[list[str]] = mapped_column(ARRAY(TEXT))
    """Product ids finally recommended, in order."""
    reported_query: Mapped[str | None]
    """Query text as the agent's own record gives it: a claim, not a fact."""
    judged_at: Mapped[RecordedAt]
