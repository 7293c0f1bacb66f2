"""The sweep: send again whatever the backlog queries show, so that lost messages lose nothing. Does no work itself."""

import time
from collections.abc import Iterable, Sequence

from service.domain.harvest.gains import Candidate
from service.domain.harvest.planning import plan
from service.queue.broker import outstanding, outstanding_ids, send
from service.queue.messages import Message, Stage
from service.store.engine import reading
from service.store.harvest import planning
from service.store.release import snapshots
from service.store.work import backlog
from service.store.work.progress import Progress, progress
from workers.context import Context
from workers.pacing import pace
from workers.pipeline import ORDER, messages

BATCHES_PER_SWEEP = 20
LOW_WATER = {Stage.INGEST: 10}
"""Outstanding messages below which a stage is sent more; 1 where not named. Ingest may be topped up before it runs
dry: an item that is sent twice is claimed once. Where requests are counted, `pacing` says how much ingest is sent."""


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
        rate = context.settings.requests_per_minute if step.stage is Stage.INGEST else 0
        low_water = pace(rate).low_water if rate else LOW_WATER.get(step.stage, 1)
        if outstanding(context.broker, step.stage) >= low_water:
            continue
        if rate:
            found = planned(context, rate)
        elif step.batch > 0:
            found = messages(step, _ids(context, step.stage, step.batch * BATCHES_PER_SWEEP))
        else:
            is_asked = step.stage is Stage.SNAPSHOT and state.requests_due
            is_due = is_asked or (may_release and step.stage == due_globally(state))
            found = messages(step, ()) if is_due else []
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


def planned(context: Context, rate_per_minute: int) -> list[Message]:
    """What to ask the source for next, for half a minute: what comes later is planned in the light of these verdicts.

    Where planning is slow, for as long as it takes until the next plan: requests do not wait for one.
    Items of messages that are outstanding are under way and are not sent again.
    """
    began = time.monotonic()
    with reading(context.engine) as session:
        now, sent = context.now(), outstanding_ids(context.broker, Stage.INGEST)
        if sent.issuperset(backlog.items_due(session, now, len(sent) + 1)):
            return []
        known = planning.outlook(session, context.policies.rules.digest, now, sent)
    keep_to = pace(rate_per_minute, planning_seconds=time.monotonic() - began)
    choices = plan(known.candidates, known.in_flight, known.knowledge, context.policies.plan, keep_to.requests)
    return _messages((choice.item for choice in choices), keep_to.message_requests)


def _messages(items: Iterable[Candidate], requests: int) -> list[Message]:
    """Messages for items in this order, each of so many requests; the last item may go beyond it."""
    found: list[Message] = []
    ids: list[int] = []
    cost = 0
    for item in items:
        ids.append(item.ledger_id)
        cost += item.cost
        if cost >= requests:
            found.append(Message(Stage.INGEST, tuple(ids)))
            ids, cost = [], 0
    return [*found, Message(Stage.INGEST, tuple(ids))] if ids else found


def _ids(context: Context, stage: Stage, limit: int) -> Sequence[int]:
    with reading(context.engine) as session:
        if stage is Stage.INGEST:
            return backlog.items_due(session, context.now(), limit)
        return backlog.trajectories_unjudged(session, context.policies.rules.digest, limit)
