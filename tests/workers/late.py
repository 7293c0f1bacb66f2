"""A whole harvest in this process, and again after the source has changed its word, for tests of late truth."""

import gzip
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import func, select, update

from service.domain.rows.records import trajectory_key
from service.domain.rows.splits import TRAINED, Config
from service.replay.recorded import ENVPACK, EpisodeItem, LegacyItem, Run
from service.store.engine import reading, transaction
from service.store.harvest import ledger
from service.store.models import (
    AgentVersion,
    Base,
    EvaluationRun,
    Evidence,
    LedgerItem,
    Payload,
    Race,
    Release,
    SnapshotRow,
    Tombstone,
    Trajectory,
    Verdict,
)
from service.store.release import snapshots
from service.store.work import backlog
from workers.context import Context
from workers.marking import mark
from workers.stages import assign, cluster, filter, ingest, snapshot
from workers.subscribe import walk

LONG_AGO = datetime(2025, 1, 1, tzinfo=UTC)
INVALIDATED_AT = datetime(2026, 6, 1, tzinfo=UTC)
TABLES = (Evidence, Payload, Release, SnapshotRow, Tombstone, Trajectory, Verdict, LedgerItem)


def harvest(context: Context) -> None:
    """Walk, then handle whatever is due, through to the marks."""
    walk(context)
    fetch(context)
    release(context)


def fetch(context: Context) -> None:
    """Ask for every item that is due, and judge what came."""
    ingest.run(due(context), context, "message")
    with reading(context.engine) as session:
        unjudged = list(backlog.trajectories_unjudged(session, context.policies.rules.digest, 10_000))
    filter.run(unjudged, context, "message")


def release(context: Context) -> None:
    """The stages over the whole corpus, as far as they have anything to do, and the marks."""
    for stage in (cluster, assign, snapshot):
        stage.run([], context, "message")
    mark(context)


def due(context: Context) -> list[int]:
    with reading(context.engine) as session:
        return list(ledger.due(session, context.now(), 10_000))


def much_later(context: Context, *, items: bool = False) -> None:
    """Let everything that is complete be due to be read again; `items`: those of unchanged runs too."""
    with transaction(context.engine) as session:
        session.execute(update(AgentVersion).values(read_at=LONG_AGO))
        session.execute(update(Race).where(Race.walked_at.is_not(None)).values(read_at=LONG_AGO))
        if items:
            session.execute(
                update(EvaluationRun).where(EvaluationRun.listed_at.is_not(None)).values(listed_at=LONG_AGO)
            )


def again(context: Context, *, items: bool = False) -> None:
    """A harvest long after the last."""
    much_later(context, items=items)
    harvest(context)


def newest(context: Context) -> str:
    """Id of the snapshot of the newest release."""
    with reading(context.engine) as session:
        decided = snapshots.latest_release(session)
    assert decided is not None
    assert decided.snapshot_id is not None, decided.refusal
    return decided.snapshot_id


def keys(
    context: Context,
    snapshot_id: str,
    eval_run_id: str | None = None,
    configs: Collection[Config] = TRAINED,
) -> set[str]:
    """Trajectory keys of the rows of a snapshot of some configurations, all or those of one run."""
    statement = (
        select(Trajectory.eval_run_id, Trajectory.problem_id)
        .join(SnapshotRow, SnapshotRow.trajectory_id == Trajectory.trajectory_id)
        .where(SnapshotRow.snapshot_id == snapshot_id, SnapshotRow.config.in_(configs))
    )
    with reading(context.engine) as session:
        return {trajectory_key(*row) for row in session.execute(statement) if eval_run_id in (None, row.eval_run_id)}


def status(context: Context, snapshot_id: str) -> dict[str, Any]:
    return context.files.document(snapshot_id, "status.json")


def counts(context: Context) -> dict[str, int]:
    """Rows of every table that is only added to, and of the ledger."""
    with reading(context.engine) as session:
        return {table.__tablename__: _count(session, table) for table in TABLES}


def _count(session: Any, table: type[Base]) -> int:
    return session.scalar(select(func.count()).select_from(table))


def with_item(run: Run, item_key: str, **changed: Any) -> Run:
    """The run with one item changed: any field of it, or `payload` for the bytes of its object."""
    payload = changed.pop("payload", None)
    if payload is not None:
        changed["packed"] = gzip.compress(payload, mtime=0)
    items = [replace(item, **changed) if key_of(item) == item_key else item for item in run.items]
    return replace(run, items=tuple(items))


def key_of(item: LegacyItem | EpisodeItem) -> str:
    return item.problem_id if isinstance(item, LegacyItem) else item.task_id


def is_envpack(run: Run) -> bool:
    return run.execution_kind == ENVPACK
