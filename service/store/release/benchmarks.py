"""Registered benchmarks as stored, and what each clustering found to touch them. Ties nothing itself."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.domain.leaks import benchmarks as domain
from service.domain.leaks.benchmarks import Benchmark, BenchmarkPolicy, Contact, node_id
from service.domain.leaks.leakage import Edge, EdgeKind
from service.store.copying import copy_missing
from service.store.models import (
    BenchmarkContact,
    BenchmarkItem,
    BenchmarkMember,
    BenchmarkRegistration,
    ClusteringBenchmark,
)


class Member(NamedTuple):
    """The leak cluster of one item that is tied to a problem."""

    name: str
    line: int
    cluster_id: str


def register(session: Session, benchmark: Benchmark) -> bool:
    """Let a benchmark stand under its name, in place of what stood there; False: it stood so already."""
    present = {each.name: each for each in standing(session)}.get(benchmark.name)
    items_digest = benchmark.items_digest
    if present is not None and (present.policy, present.items_digest) == (benchmark.policy, items_digest):
        return False
    copy_missing(
        session,
        BenchmarkItem.__table__,  # type: ignore[arg-type]
        ("items_digest", "line", "query", "gold_ids"),
        ((items_digest, item.line, item.query, list(item.gold_ids)) for item in benchmark.items),
    )
    session.add(
        BenchmarkRegistration(
            name=benchmark.name, policy=benchmark.policy, items_digest=items_digest, items=len(benchmark.items)
        )
    )
    session.flush()
    return True


def standing(session: Session) -> list[BenchmarkRegistration]:
    """The registrations that stand, by name."""
    newest = select(func.max(BenchmarkRegistration.registration_id)).group_by(BenchmarkRegistration.name)
    statement = select(BenchmarkRegistration).where(BenchmarkRegistration.registration_id.in_(newest))
    return list(session.scalars(statement.order_by(BenchmarkRegistration.name)))


def of_clustering(session: Session, clustering_id: int) -> list[BenchmarkRegistration]:
    """The registrations that stood when a clustering was made, by name."""
    statement = (
        select(BenchmarkRegistration)
        .join(ClusteringBenchmark, ClusteringBenchmark.registration_id == BenchmarkRegistration.registration_id)
        .where(ClusteringBenchmark.clustering_id == clustering_id)
        .order_by(BenchmarkRegistration.name)
    )
    return list(session.scalars(statement))


def standing_digest(session: Session) -> str:
    """Digest of the benchmarks that stand; equal sets have equal digests on every machine."""
    return digest_of(standing(session))


def digest_of(registrations: Iterable[BenchmarkRegistration]) -> str:
    """Digest of some registrations."""
    return domain.benchmarks_digest((each.name, each.policy, each.items_digest) for each in registrations)


def load(session: Session, registrations: Iterable[BenchmarkRegistration]) -> list[Benchmark]:
    """The benchmarks of some registrations, items and all."""
    return [
        Benchmark(each.name, BenchmarkPolicy(each.policy), tuple(_items(session, each.items_digest)))
        for each in registrations
    ]


def _items(session: Session, items_digest: str) -> Iterator[domain.BenchmarkItem]:
    columns = (BenchmarkItem.line, BenchmarkItem.query, BenchmarkItem.gold_ids)
    statement = select(*columns).where(BenchmarkItem.items_digest == items_digest).order_by(BenchmarkItem.line)
    for line, query, gold_ids in session.execute(statement):
        yield domain.BenchmarkItem(line, query, tuple(gold_ids))


def save(
    session: Session,
    clustering_id: int,
    registrations: Sequence[BenchmarkRegistration],
    members: Iterable[Member],
    contacts: Iterable[Contact],
) -> None:
    """Store which benchmarks a clustering knew, and what touches them."""
    session.add_all(
        ClusteringBenchmark(clustering_id=clustering_id, registration_id=each.registration_id) for each in registrations
    )
    session.flush()
    copy_missing(
        session,
        BenchmarkMember.__table__,  # type: ignore[arg-type]
        ("clustering_id", *Member._fields),
        ((clustering_id, *member) for member in members),
    )
    copy_missing(
        session,
        BenchmarkContact.__table__,  # type: ignore[arg-type]
        ("clustering_id", "problem_id", "name", "line", "kind", "evidence"),
        ((clustering_id, *contact) for contact in contacts),
    )


def members(session: Session, clustering_id: int) -> dict[str, str]:
    """Item id -> cluster id, for the items that are tied to a problem."""
    columns = (BenchmarkMember.name, BenchmarkMember.line, BenchmarkMember.cluster_id)
    rows = session.execute(select(*columns).where(BenchmarkMember.clustering_id == clustering_id))
    return {node_id(name, line): cluster_id for name, line, cluster_id in rows}


def suspicions(session: Session, clustering_id: int) -> list[Edge]:
    """The suspicions between problems and items, as edges of the leak graph."""
    columns = (
        BenchmarkContact.problem_id,
        BenchmarkContact.name,
        BenchmarkContact.line,
        BenchmarkContact.evidence,
    )
    rows = session.execute(
        select(*columns)
        .where(BenchmarkContact.clustering_id == clustering_id, BenchmarkContact.kind == EdgeKind.SUSPECT)
        .order_by(*columns)
    )
    return [_suspicion(problem_id, node_id(name, line), evidence) for problem_id, name, line, evidence in rows]


def _suspicion(problem_id: str, item: str, evidence: str) -> Edge:
    return Edge(min(problem_id, item), max(problem_id, item), EdgeKind.SUSPECT, evidence)
