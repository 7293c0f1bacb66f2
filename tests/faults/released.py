"""What a harvest must end with, worked out from the archive alone, and what one did end with.

The first half shares no code with the source, the store or the workers: it reads what was recorded.
"""

import gzip
from hashlib import sha256
from typing import NamedTuple

import zstandard
from sqlalchemy import Engine, func, select
from sqlalchemy.orm import aliased

from service.replay.recorded import Archive, LegacyItem, Run
from service.store.engine import reading
from service.store.models import Evidence, LedgerItem, Payload, Trajectory
from workers.context import Context


class Stands(NamedTuple):
    """What becomes of one item: the sha256 of its bytes as they are stored, or why it has none."""

    state: str
    reason: str | None
    sha256: str | None


Items = dict[tuple[str, str], Stands]
"""By (run, problem or task)."""


def exactly_released(archive: Archive) -> Items:
    """Every item that SN15 has released, with its bytes; those without an object are known to have none."""
    return {
        (run.eval_run_id, item.problem_id if isinstance(item, LegacyItem) else item.task_id): _given(item.packed)
        for run in archive.runs.values()
        if _is_released(archive, run)
        for item in run.items
    }


def _is_released(archive: Archive, run: Run) -> bool:
    counts = run.status == "SUCCESS" and run.is_included and run.invalidated_at is None
    race = archive.races[run.race_id] if run.race_id is not None else None
    over = race is None or (race.status == "RACE_COMPLETE" and race.is_revealed)
    return counts and over and not archive.agents[run.agent_version_id].is_discarded


def _given(packed: bytes | None) -> Stands:
    if packed is None:
        return Stands("gone", "no_object", None)
    return Stands("fetched", None, sha256(gzip.decompress(packed)).hexdigest())


def harvested(context: Context) -> Items:
    """What one harvest came to."""
    return items_in(context.engine)


def items_in(engine: Engine) -> Items:
    """The whole ledger with the bytes that are stored of each item, read back and digested; each item once."""
    each = aliased(Evidence)
    newest = select(func.max(each.seq)).where(each.trajectory_id == Trajectory.trajectory_id).correlate(Trajectory)
    statement = (
        select(LedgerItem.eval_run_id, LedgerItem.item_key, LedgerItem.state, LedgerItem.reason, Payload.zstd)
        .join(Trajectory, Trajectory.ledger_id == LedgerItem.ledger_id, isouter=True)
        .join(Evidence, Evidence.seq == newest.scalar_subquery(), isouter=True)
        .join(Payload, Payload.payload_sha256 == Evidence.payload_sha256, isouter=True)
    )
    found: Items = {}
    with reading(engine) as session:
        for run, key, state, reason, packed in session.execute(statement):
            assert (run, key) not in found, "an item is stored twice"
            content = None if packed is None else zstandard.decompress(packed)
            found[run, key] = Stands(state.value, reason, None if content is None else sha256(content).hexdigest())
    return found
