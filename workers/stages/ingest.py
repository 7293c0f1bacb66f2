"""Ingest: ask the source for items of the ledger and store what it gives, once. Judges and parses nothing."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from service.domain.provenance import Evidence
from service.domain.trajectory import ExecutionKind, Judgement
from service.source.listing import Fetched, FetchTarget, Refused
from service.source.refusals import Refusal
from service.store import ledger, trajectories
from service.store.engine import transaction
from service.store.ledger import Target
from service.store.models import LedgerState
from service.store.trajectories import NewTrajectory
from workers.context import Context

CLAIM_SECONDS = 300.0
FLUSH_BYTES = 8 * 1024 * 1024
"""Fetched bytes held in memory before they are stored."""
MAX_ATTEMPTS = 5
"""Failures in a row after which an item rests for `REST`."""
REST = timedelta(hours=6)
EMBARGOES = frozenset({Refusal.RACE_IN_FLIGHT, Refusal.NOT_RELEASED, Refusal.FEEDBACK_ABSENT})


def run(ids: Sequence[int], context: Context, claimant: str) -> list[int]:
    """Fetch and store the open items among `ids`; returns the trajectories to judge."""
    with transaction(context.engine) as session:
        targets = ledger.claim(session, ids, claimant, context.now(), CLAIM_SECONDS)
    stored: list[int] = []
    fetched: list[NewTrajectory] = []
    for position, target in enumerate(targets):
        if context.stopping.is_set():
            rest = [late.ledger_id for late in targets[position:]]
            with transaction(context.engine) as session:
                ledger.release(session, rest, claimant, context.now())
            break
        answer = context.source.fetch(_request(target))
        if isinstance(answer, Refused):
            _note_refusal(target, answer, context)
            continue
        fetched.append(_trajectory(target, answer))
        if sum(len(item.payload) for item in fetched) > FLUSH_BYTES:
            stored += _store(fetched, context)
            fetched = []
    return stored + _store(fetched, context)


def _store(fetched: Sequence[NewTrajectory], context: Context) -> list[int]:
    if not fetched:
        return []
    with transaction(context.engine) as session:
        stored = trajectories.add(session, fetched)
        ledger.mark_fetched(session, [item.ledger_id for item in fetched], context.now())
    return stored


def _note_refusal(target: Target, refused: Refused, context: Context) -> None:
    state, next_try_at = after_refusal(refused, target.attempts, context.now())
    with transaction(context.engine) as session:
        ledger.mark_refused(session, target.ledger_id, state, refused.reason, next_try_at)


def after_refusal(refused: Refused, attempts: int, now: datetime) -> tuple[LedgerState, datetime]:
    """What becomes of an item that was refused after `attempts` earlier refusals, and when to ask again."""
    if refused.terminal:
        return LedgerState.GONE, now
    if refused.reason in EMBARGOES:
        return LedgerState.EMBARGOED, refused.retry_at or now + refused.reason.delay
    if attempts + 1 >= MAX_ATTEMPTS:
        return LedgerState.FAILED, now + REST
    return LedgerState.FAILED, refused.retry_at or now + refused.reason.delay


def _request(target: Target) -> FetchTarget:
    return FetchTarget(
        kind=ExecutionKind(target.kind),
        agent_version_id=target.agent_version_id,
        eval_run_id=target.eval_run_id,
        problem_id=target.problem_id,
        episode_result_id=target.episode_result_id,
    )


def _trajectory(target: Target, fetched: Fetched) -> NewTrajectory:
    evidence = Evidence(judgement=msgspec.convert(target.judgement, Judgement))
    return NewTrajectory(
        ledger_id=target.ledger_id,
        eval_run_id=target.eval_run_id,
        item_key=target.item_key,
        problem_id=target.problem_id,
        kind=target.kind,
        payload=fetched.payload,
        evidence_digest=evidence.digest,
        evidence=msgspec.to_builtins(evidence),
    )
