"""Leak clusters and pools, one whole result per corpus revision. Append-only."""

from sqlalchemy import BigInteger, ForeignKey, UniqueConstraint
from sqlalchemy.dialects.postgresql import ARRAY, TEXT
from sqlalchemy.orm import Mapped, mapped_column

from service.store.models.base import Base, RecordedAt, Serial


class Clustering(Base):
    """The leak clusters of all problems as known at one sealed revision, under one leak plan and set of benchmarks."""

    __tablename__ = "clusterings"
    __table_args__ = (
        UniqueConstraint("revision", "plan_digest", "rules_digest", "benchmarks_digest", name="uq_clusterings_basis"),
    )

    clustering_id: Mapped[Serial]
    revision: Mapped[int] = mapped_column(BigInteger, ForeignKey("corpus_revisions.revision"))
    plan_digest: Mapped[str] = mapped_column(ForeignKey("policies.policy_digest"))
    rules_digest: Mapped[str] = mapped_column(ForeignKey("policies.policy_digest"))
    """Rule set whose verdicts gave the winners."""
    facts_known: Mapped[int] = mapped_column(BigInteger)
    """Number of facts the source had given about problems; it only grows, so a higher number means newer facts."""
    benchmarks_digest: Mapped[str]
    """Of the benchmarks that stood, by name, policy and items."""
    contacts_digest: Mapped[str]
    """Of the benchmarks and of all that touches them: another one means that snapshots have to be looked at again."""
    clusters: Mapped[int]
    created_at: Mapped[RecordedAt]


class ClusterMember(Base):
    """The cluster of one problem, and the facts about the problem that clustering used."""

    __tablename__ = "cluster_members"

    clustering_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("clusterings.clustering_id"), primary_key=True)
    problem_id: Mapped[str] = mapped_column(ForeignKey("problems.problem_id"), primary_key=True)
    cluster_id: Mapped[str] = mapped_column(index=True)
    query: Mapped[str | None]
    """The query text used: the API's, else the one agents report."""
    query_confirmed: Mapped[bool]
    gold_kind: Mapped[str]
    """`gold`, `winner` or `text`: the strongest thing known of the answer."""
    winner_ids: Mapped[list[str]] = mapped_column(ARRAY(TEXT))
    gold_ids: Mapped[list[str]] = mapped_column(ARRAY(TEXT))


class LeakEdge(Base):
    """Two problems that give each other's answer away (or may: kind `suspect`), with the evidence."""

    __tablename__ = "leak_edges"

    clustering_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("clusterings.clustering_id"), primary_key=True)
    problem_a: Mapped[str] = mapped_column(ForeignKey("problems.problem_id"), primary_key=True)
    problem_b: Mapped[str] = mapped_column(ForeignKey("problems.problem_id"), primary_key=True)
    kind: Mapped[str] = mapped_column(primary_key=True)
    evidence: Mapped[str] = mapped_column(primary_key=True)


class PoolAssignment(Base):
    """The pools drawn for one clustering under one pool plan, or the reason why none were."""

    __tablename__ = "pool_assignments"
    __table_args__ = (UniqueConstraint("clustering_id", "plan_digest", "is_accepted"),)

    assignment_id: Mapped[Serial]
    clustering_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("clusterings.clustering_id"))
    plan_digest: Mapped[str] = mapped_column(ForeignKey("policies.policy_digest"))
    is_accepted: Mapped[bool] = mapped_column(server_default="false")
    """A person has looked at what the stage asked, and has let it go on."""
    refusal: Mapped[str | None]
    """Why the stage stopped and asks a person; None when pools were assigned."""
    created_at: Mapped[RecordedAt]


class PoolAcceptance(Base):
    """A person's word that a refused assignment is to be made all the same."""

    __tablename__ = "pool_acceptances"

    assignment_id: Mapped[int] = mapped_column(
        BigInteger, ForeignKey("pool_assignments.assignment_id"), primary_key=True
    )
    reason: Mapped[str]
    accepted_at: Mapped[RecordedAt]


class PoolMember(Base):
    """The pool of one problem: its own draw, and the pool its whole cluster ends in."""

    __tablename__ = "pool_members"

    assignment_id: Mapped[int] = mapped_column(
        BigInteger, ForeignKey("pool_assignments.assignment_id"), primary_key=True
    )
    problem_id: Mapped[str] = mapped_column(ForeignKey("problems.problem_id"), primary_key=True)
    draw: Mapped[str]
    pool: Mapped[str]
    reason: Mapped[str]
