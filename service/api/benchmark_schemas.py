"""Benchmarks and what touches them, as JSON schemas. Wire shapes only: nothing here is used inside."""

from datetime import datetime

from service.api.schemas import Wire


class BenchmarkEntry(Wire):
    """One benchmark that stands. Its items are not served."""

    name: str
    policy: str
    """`exclude`: what touches it is in no train split; `declared-public`: contacts are only reported."""
    items: int
    items_digest: str
    registered_at: datetime
    is_clustered: bool
    """Whether the newest leak clusters take it in; else the figures are yet to come."""


class Benchmarks(Wire):
    """All benchmarks that stand, by name."""

    benchmarks: list[BenchmarkEntry]


class RaceContacts(Wire):
    """What touches a benchmark in one race."""

    race_id: str | None
    """None: runs outside any race."""
    problems: int
    direct: int
    """Problems that touch an item themselves, not just one that they are clustered with."""
    trajectories: int


class PublishedContacts(Wire):
    """Rows of one split of one snapshot that touch a benchmark."""

    snapshot_id: str
    split: str
    rows: int
    direct: int


class BenchmarkReport(Wire):
    """What touches one benchmark, by the newest leak clusters."""

    benchmark: BenchmarkEntry
    items_touched: int
    """Items that share a leak cluster with a problem."""
    kinds: dict[str, int]
    """Problems by the kind of their contact; one may have several. `suspect` ties nothing."""
    races: list[RaceContacts]
    snapshots: list[PublishedContacts]
