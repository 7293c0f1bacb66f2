"""How far the corpus touches each registered benchmark: problems, races, published rows. Ties nothing itself."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy.orm import Session

from service.store.models import BenchmarkRegistration
from service.store.release import benchmark_contacts, benchmarks, clusters
from service.store.release.benchmark_contacts import Published, Touched


class Standing(NamedTuple):
    """One registered benchmark."""

    name: str
    policy: str
    items: int
    items_digest: str
    registered_at: datetime
    is_clustered: bool
    """Whether the newest leak clusters take it in; else the figures are yet to come."""


class Report(NamedTuple):
    """What touches one benchmark."""

    benchmark: Standing
    items_touched: int
    """Items that share a leak cluster with a problem."""
    kinds: dict[str, int]
    """Problems by the kind of their contact; one may have several. `suspect` ties nothing."""
    races: list[Touched]
    snapshots: list[Published]


def standing(session: Session) -> list[Standing]:
    """The benchmarks that stand, by name."""
    clustered = _clustered(session)
    return [_standing(each, clustered) for each in benchmarks.standing(session)]


def report(session: Session, name: str) -> Report | None:
    """What touches the benchmark of this name; None when there is none."""
    registration = {each.name: each for each in benchmarks.standing(session)}.get(name)
    if registration is None:
        return None
    found = _standing(registration, _clustered(session))
    newest = clusters.latest(session)
    if newest is None or not found.is_clustered:
        return Report(found, 0, {}, [], [])
    number = newest.clustering_id
    return Report(
        benchmark=found,
        items_touched=benchmark_contacts.items_touched(session, number, name),
        kinds=benchmark_contacts.kinds(session, number, name),
        races=benchmark_contacts.by_race(session, number, name),
        snapshots=benchmark_contacts.by_snapshot(session, number, name),
    )


def _clustered(session: Session) -> frozenset[int]:
    newest = clusters.latest(session)
    if newest is None:
        return frozenset()
    return frozenset(each.registration_id for each in benchmarks.of_clustering(session, newest.clustering_id))


def _standing(of: BenchmarkRegistration, clustered: frozenset[int]) -> Standing:
    is_clustered = of.registration_id in clustered
    return Standing(of.name, of.policy, of.items, of.items_digest, of.registered_at, is_clustered)
