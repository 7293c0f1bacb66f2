"""The sweep: send again whatever the backlog queries show, so that lost messages lose nothing. Does no work itself."""

from collections.abc import Sequence

from service.queue.broker import outstanding, send
from service.queue.messages import Message, Stage
from service.store import backlog, snapshots
from service.store.engine import reading
from service.store.progress import Progress, progress
from workers.context import Context
from workers.pipeline import ORDER, messages

BATCHES_PER_SWEEP = 40
LOW_WATER = {Stage.INGEST: 20}
"""Outstanding messages below which a stage is sent more; 1 where not named. Ingest may be topped up before it runs
dry: an item that is sent twice is claimed once."""


def sweep(context: Context) -> list[Message]:
    """Send what is due to every stage that has run dry; returns what was sent.

    The global stages wait until the harvest rests, so that a snapshot holds whole races, and until the last release is
    old enough. `sluice snapshot create` wakes them at any time.
    """
    sent = []
    with reading(context.engine) as session:
        state = progress(session, context.policies, context.now())
        released_seconds_ago = snapshots.seconds_since_release(session)
    interval = context.settings.release_interval_seconds
    may_release = released_seconds_ago is None or released_seconds_ago >= interval
    for step in ORDER:
        if outstanding(context.broker, step.stage) >= LOW_WATER.get(step.stage, 1):
            continue
        if step.batch > 0:
            found = messages(step, _ids(context, step.stage, step.batch * BATCHES_PER_SWEEP))
        else:
            found = messages(step, ()) if may_release and step.stage == due_globally(state) else []
        for message in found:
            send(context.broker, message)
        sent += found
    return sent


def due_globally(state: Progress) -> Stage | None:
    """The first global stage with something to do once the harvest rests; None while it does not, or when idle."""
    if not state.harvested:
        return None
    if state.clustering_due:
        return Stage.CLUSTER
    if state.assignment_due:
        return Stage.ASSIGN
    return Stage.SNAPSHOT if state.release_due else None


def _ids(context: Context, stage: Stage, limit: int) -> Sequence[int]:
    with reading(context.engine) as session:
        if stage is Stage.INGEST:
            return backlog.items_due(session, context.now(), limit)
        return backlog.trajectories_unjudged(session, context.policies.rules.digest, limit)
