"""What leaves the corpus: releases, snapshots and their rows, jobs; and the leases of long work."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from service.store.models.base import Base, JsonObject, RecordedAt, Serial


class Snapshot(Base):
    """An immutable, audited release of train and eval rows; the id is the digest of its rows and its spec."""

    __tablename__ = "snapshots"

    snapshot_id: Mapped[str] = mapped_column(primary_key=True)
    spec: Mapped[JsonObject]
    manifest: Mapped[JsonObject]
    audit: Mapped[JsonObject]
    train_rows: Mapped[int] = mapped_column(BigInteger)
    eval_rows: Mapped[int] = mapped_column(BigInteger)
    published_at: Mapped[RecordedAt]


class SnapshotMark(Base):
    """Up to where late truth has been written into the status of one snapshot."""

    __tablename__ = "snapshot_marks"

    snapshot_id: Mapped[str] = mapped_column(ForeignKey("snapshots.snapshot_id"), primary_key=True)
    late_known: Mapped[int] = mapped_column(BigInteger)
    """Number of tombstones and late states of the evidence that the status takes in."""
    contacts_digest: Mapped[str | None]
    """Of the newest clustering whose contacts with benchmarks the status takes in; None: none yet."""


class SnapshotRow(Base):
    """One trajectory in one snapshot. The publication history that pools must respect is read from here."""

    __tablename__ = "snapshot_rows"
    __table_args__ = (Index("ix_snapshot_rows_history", "split", "problem_id"),)

    snapshot_id: Mapped[str] = mapped_column(ForeignKey("snapshots.snapshot_id"), primary_key=True)
    trajectory_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("trajectories.trajectory_id"), primary_key=True)
    problem_id: Mapped[str] = mapped_column(ForeignKey("problems.problem_id"))
    config: Mapped[str]
    split: Mapped[str]


class Release(Base):
    """The decision on one assignment under one spec: a snapshot, or why there is none."""

    __tablename__ = "releases"
    __table_args__ = (UniqueConstraint("assignment_id", "spec_digest"),)

    release_id: Mapped[Serial]
    assignment_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("pool_assignments.assignment_id"))
    spec_digest: Mapped[str]
    snapshot_id: Mapped[str | None] = mapped_column(ForeignKey("snapshots.snapshot_id"))
    is_standing: Mapped[bool] = mapped_column(server_default="true")
    """The spec is the one of the snapshots that nobody asks for."""
    refusal: Mapped[JsonObject | None]
    """Error code, message and audit of a release that was refused; None when published."""
    decided_at: Mapped[RecordedAt]


class SnapshotRequest(Base):
    """Somebody's wish for a snapshot with options of their own."""

    __tablename__ = "snapshot_requests"

    request_id: Mapped[Serial]
    options: Mapped[JsonObject]
    requested_at: Mapped[RecordedAt]


class SnapshotAnswer(Base):
    """What became of a request: a release, or why there can be none. A request without an answer is open."""

    __tablename__ = "snapshot_answers"

    request_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("snapshot_requests.request_id"), primary_key=True)
    release_id: Mapped[int | None] = mapped_column(BigInteger, ForeignKey("releases.release_id"))
    refusal: Mapped[JsonObject | None]
    """Where there is no release: error code and message."""
    answered_at: Mapped[RecordedAt]


class Job(Base):
    """One train or evaluate task for the GPU worker."""

    __tablename__ = "jobs"

    job_id: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    snapshot_id: Mapped[str] = mapped_column(ForeignKey("snapshots.snapshot_id"))
    spec: Mapped[JsonObject]
    state: Mapped[str] = mapped_column(index=True)
    result: Mapped[JsonObject | None]
    created_at: Mapped[RecordedAt]
    finished_at: Mapped[datetime | None]


class Lease(Base):
    """Who may do one piece of long work until when. `token` grows with every holder and fences off the last one."""

    __tablename__ = "leases"

    name: Mapped[str] = mapped_column(primary_key=True)
    holder: Mapped[str]
    token: Mapped[int] = mapped_column(BigInteger)
    expires_at: Mapped[datetime]
