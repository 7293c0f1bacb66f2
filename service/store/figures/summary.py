"""The whole corpus on one page: what was harvested, what became of it, what was released. Shared by CLI and API.

Counts only; it judges nothing and holds no text written by strangers but the names of reasons.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.domain.filter.structure import Outcome
from service.domain.leaks.pools import Pool
from service.domain.sn15.commitment import CommitmentState
from service.errors import ErrorCode
from service.store.figures import race_figures, statistics
from service.store.figures.statistics import Dimension
from service.store.harvest import ledger, standings
from service.store.models import LedgerState, PoolMember, Snapshot
from service.store.release import clusters, pools, snapshots

UNJUDGED = "unjudged"
"""Stands for class and verdict of a trajectory that has no verdict yet."""


@dataclass(frozen=True, slots=True)
class Harvest:
    """The ledger in figures: every item the source announced stands in exactly one state."""

    items: int
    expected: int
    fetched: int
    changed: int
    """Fetched, and to be asked for again: the source has listed them otherwise since."""
    embargoed: int
    failed: int
    gone: int
    reasons: dict[str, int]
    """Items that were not given, by reason."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Trajectories by outcome, and by the reason of the first failing gate (`kept` for those that pass)."""

    kept: int
    kept_negative: int
    rejected: int
    unjudged: int
    reasons: dict[str, int]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Kept trajectories that a snapshot does not hold, by why. With its rows they are all that were kept."""

    pools: dict[str, int]
    """Of problems that are in no split: by pool."""
    selection: dict[str, int]
    """Of problems that are in a split: by selection reason."""


@dataclass(frozen=True, slots=True)
class SnapshotFigures:
    """One released snapshot, in short."""

    id: str
    rows: dict[str, int]
    audit: dict[str, bool]
    left_out: LeftOut


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no snapshot of the present corpus."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Summary:
    """`by_class` sums to `trajectories`, as do the four outcomes of `verdicts`."""

    races: int
    trajectories: int
    by_class: dict[str, int]
    verdicts: Verdicts
    clusters: int
    pools: dict[str, int]
    """Problems by pool."""
    snapshot: SnapshotFigures | None
    """Of the newest release decision; None when it was a refusal or nothing has been decided."""
    refusal: Refusal | None
    harvest: Harvest
    commitments: dict[str, int]
    """Races that have a seed commitment, by how it stands."""

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


class _Release(NamedTuple):
    snapshot: SnapshotFigures | None
    refusal: Refusal | None


def summarise(session: Session, rules_digest: str) -> Summary:
    """Sum up the corpus as one transaction sees it."""
    judged = statistics.counts(session, rules_digest, [Dimension.VERDICT, Dimension.REASON, Dimension.CLASS])
    by_class: dict[str, int] = {}
    outcomes: dict[str, int] = {}
    reasons: dict[str, int] = {}
    for (outcome, reason, structural_class), trajectories in judged:
        _add(by_class, structural_class or UNJUDGED, trajectories)
        _add(outcomes, outcome or UNJUDGED, trajectories)
        if reason is not None:
            _add(reasons, reason, trajectories)
    clustering = clusters.latest(session)
    release = _release(session)
    return Summary(
        races=race_figures.race_count(session),
        trajectories=sum(by_class.values()),
        by_class=_ranked(by_class),
        verdicts=Verdicts(
            kept=outcomes.get(Outcome.KEPT, 0),
            kept_negative=outcomes.get(Outcome.KEPT_NEGATIVE, 0),
            rejected=outcomes.get(Outcome.REJECTED, 0),
            unjudged=outcomes.get(UNJUDGED, 0),
            reasons=_ranked(reasons),
        ),
        clusters=clustering.clusters if clustering else 0,
        pools=_pool_sizes(session),
        snapshot=release.snapshot,
        refusal=release.refusal,
        harvest=_harvest(session),
        commitments=_commitments(session),
    )


def tabulate(session: Session, rules_digest: str, by: Sequence[Dimension]) -> list[dict[str, str | int | None]]:
    """Trajectories counted by the dimensions asked for: one dict a row, with `count` beside the dimensions."""
    names = [dimension.value for dimension in by]
    return [
        {**dict(zip(names, values, strict=True)), "count": trajectories}
        for values, trajectories in statistics.counts(session, rules_digest, by)
    ]


def figures(snapshot: Snapshot) -> SnapshotFigures:
    """A stored snapshot in short."""
    return SnapshotFigures(
        id=snapshot.snapshot_id,
        rows={"train": snapshot.train_rows, "eval": snapshot.eval_rows},
        audit={"ok": bool(snapshot.audit["ok"])},
        left_out=_left_out(snapshot.manifest["funnel"]),
    )


def _left_out(funnel: Mapping[str, Mapping[str, int]]) -> LeftOut:
    kept = funnel.get("pools", {})
    return LeftOut(
        pools={pool.value: kept.get(pool, 0) for pool in (Pool.RESERVE, Pool.QUARANTINED)},
        selection=_ranked(dict(funnel.get("selection", {}))),
    )


def _release(session: Session) -> _Release:
    assignment = pools.latest(session)
    if assignment is not None and assignment.refusal is not None:
        return _Release(None, _refusal_of_pools(assignment.refusal))
    release = snapshots.latest_release(session)
    if release is None:
        return _Release(None, None)
    snapshot = snapshots.get(session, release.snapshot_id) if release.snapshot_id else None
    if snapshot is not None:
        return _Release(figures(snapshot), None)
    told = release.refusal or {}
    return _Release(None, Refusal(str(told.get("code", "REFUSED")), str(told.get("message", "no reason was stored"))))


def _refusal_of_pools(told: str) -> Refusal:
    """The code and the message of a fault that was stored as `CODE: message`."""
    code, colon, message = told.partition(": ")
    return Refusal(code, message) if colon and code in set(ErrorCode) else Refusal("REFUSED", told)


def _pool_sizes(session: Session) -> dict[str, int]:
    sizes = {pool.value: 0 for pool in Pool}
    assignment = pools.latest(session)
    if assignment is not None:
        counted = (
            select(PoolMember.pool, func.count())
            .where(PoolMember.assignment_id == assignment.assignment_id)
            .group_by(PoolMember.pool)
        )
        sizes.update(session.execute(counted).all())
    return sizes


def _commitments(session: Session) -> dict[str, int]:
    counts = {state.value: 0 for state in CommitmentState}
    for verification in standings.verifications(session).values():
        counts[verification.state.value] += 1
    return counts


def _harvest(session: Session) -> Harvest:
    states = dict.fromkeys(LedgerState, 0)
    reasons: dict[str, int] = {}
    for state, reason, items in ledger.counts(session):
        states[state] += items
        if reason is not None:
            _add(reasons, reason, items)
    return Harvest(
        items=sum(states.values()),
        **{state.value: items for state, items in states.items()},
        reasons=_ranked(reasons),
    )


def _add(counts: dict[str, int], name: str, number: int) -> None:
    counts[name] = counts.get(name, 0) + number


def _ranked(counts: dict[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))
