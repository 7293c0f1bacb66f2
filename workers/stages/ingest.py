"""Ingest: ask the source for items of the ledger and store what it gives, once. Judges and parses nothing."""

import time
from collections.abc import Iterator, Sequence

import msgspec

from service.domain.provenance import Evidence
from service.domain.trajectory import ExecutionKind, Judgement
from service.errors import ErrorCode, SluiceError
from service.source.listing import Fetched, FetchTarget, Refused, Unchanged
from service.source.refusals import Refusal
from service.store import ledger, trajectories
from service.store.engine import transaction
from service.store.ledger import Target
from service.store.trajectories import NewTrajectory
from workers.context import Context
from workers.retries import note_of

CLAIM_SECONDS = 300.0
FLUSH_BYTES = 8 * 1024 * 1024
"""Fetched bytes held in memory before they are stored."""


def run(ids: Sequence[int], context: Context, claimant: str) -> list[int]:
    """Fetch and store the open items among `ids`; returns the trajectories to judge."""
    stored: list[int] = []
    fetched: list[NewTrajectory] = []
    withheld: set[str] = set()
    for target in _claimed(ids, context, claimant):
        if target.eval_run_id in withheld:
            continue
        try:
            answer = context.source.fetch(_request(target))
        except SluiceError as error:
            if error.code is not ErrorCode.STOPPING:
                raise
            break
        if isinstance(answer, Refused):
            _note_refusal(target, answer, context, claimant)
            if answer.reason is Refusal.RACE_IN_FLIGHT:
                withheld.add(target.eval_run_id)
            continue
        if isinstance(answer, Unchanged):
            continue  # never without an entity tag, and none is sent
        fetched.append(_trajectory(target, answer))
        if sum(len(item.payload) for item in fetched) > FLUSH_BYTES:
            stored += _store(fetched, context)
            fetched = []
    stored += _store(fetched, context)
    with transaction(context.engine) as session:
        ledger.give_back(session, ids, claimant, context.now())
    return stored


def _claimed(ids: Sequence[int], context: Context, claimant: str) -> Iterator[Target]:
    """Items one by one, each while it is claimed: a claim is renewed long before it ends."""
    waiting, claimed_at = list(ids), float("-inf")
    targets: dict[int, Target] = {}
    while waiting and not context.stopping.is_set():
        if time.monotonic() - claimed_at > CLAIM_SECONDS / 3:
            claimed_at = time.monotonic()
            with transaction(context.engine) as session:
                found = ledger.claim(session, waiting, claimant, context.now(), CLAIM_SECONDS)
            targets = {target.ledger_id: target for target in found}
        target = targets.get(waiting.pop(0))
        if target is not None:
            yield target


def _store(fetched: Sequence[NewTrajectory], context: Context) -> list[int]:
    if not fetched:
        return []
    with transaction(context.engine) as session:
        stored = trajectories.add(session, fetched)
        ledger.mark_fetched(session, [item.ledger_id for item in fetched], context.now())
    return stored


def _note_refusal(target: Target, refused: Refused, context: Context, claimant: str) -> None:
    note = note_of(refused, target.attempts, context.now())
    with transaction(context.engine) as session:
        ledger.mark_refused(session, target.ledger_id, claimant, note)
        if refused.reason is Refusal.RACE_IN_FLIGHT:
            ledger.embargo_run(session, target.eval_run_id, note)


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
