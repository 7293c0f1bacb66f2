"""Public benchmarks: what was registered, its items, and which problems touch them in each clustering. Append-only."""

from sqlalchemy import BigInteger, ForeignKey, Index
from sqlalchemy.dialects.postgresql import ARRAY, TEXT
from sqlalchemy.orm import Mapped, mapped_column

from service.store.models.base import Base, RecordedAt, Serial


class BenchmarkRegistration(Base):
    """A benchmark as somebody registered it; the newest of a name stands."""

    __tablename__ = "benchmark_registrations"
    __table_args__ = (Index(None, "name", "registration_id"),)

    registration_id: Mapped[Serial]
    name: Mapped[str]
    policy: Mapped[str]
    items_digest: Mapped[str]
    items: Mapped[int] = mapped_column(BigInteger)
    """Number of items."""
    registered_at: Mapped[RecordedAt]


class BenchmarkItem(Base):
    """One item, kept once however often and under whatever name its benchmark is registered."""

    __tablename__ = "benchmark_items"

    items_digest: Mapped[str] = mapped_column(primary_key=True)
    line: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    query: Mapped[str | None]
    gold_ids: Mapped[list[str]] = mapped_column(ARRAY(TEXT))


class ClusteringBenchmark(Base):
    """A registration that stood when a clustering was made."""

    __tablename__ = "clustering_benchmarks"

    clustering_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("clusterings.clustering_id"), primary_key=True)
    registration_id: Mapped[int] = mapped_column(
        BigInteger, ForeignKey("benchmark_registrations.registration_id"), primary_key=True
    )


class BenchmarkMember(Base):
    """The leak cluster of an item; items that are tied to no problem have no row."""

    __tablename__ = "benchmark_members"

    clustering_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("clusterings.clustering_id"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    line: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    cluster_id: Mapped[str]


class BenchmarkContact(Base):
    """A problem and an item that give each other's answer away (or may: kind `suspect`), with the evidence."""

    __tablename__ = "benchmark_contacts"

    clustering_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("clusterings.clustering_id"), primary_key=True)
    problem_id: Mapped[str] = mapped_column(ForeignKey("problems.problem_id"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    line: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    kind: Mapped[str] = mapped_column(primary_key=True)
    evidence: Mapped[str] = mapped_column(primary_key=True)
