"""Ingest: ask the source for items of the ledger and store what it gives, once. Judges and parses nothing."""

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from service.domain.attribution.evidence import Evidence
from service.domain.sn15.tombstones import Subject, TombstoneReason
from service.domain.trajectory import ExecutionKind, Judgement
from service.errors import ErrorCode, SluiceError
from service.source.answers import Fetched, FetchTarget, Refused, Unchanged
from service.source.refusals import Refusal
from service.store.corpus import tombstones, trajectories
from service.store.corpus.tombstones import Word
from service.store.corpus.trajectories import NewTrajectory
from service.store.engine import transaction
from service.store.harvest import ledger
from service.store.harvest.ledger import Locked, Target
from service.store.models import LedgerState
from workers.context import Context
from workers.retries import note_of

CLAIM_SECONDS = 300.0
FLUSH_BYTES = 8 * 1024 * 1024
"""Fetched bytes held in memory before they are stored."""
OBJECT = "object"
"""What says of an item whether it is there: the source, asked for its bytes."""
NOT_THERE = frozenset(
    {
        *(Refusal.NO_OBJECT, Refusal.OBJECT_ABSENT, Refusal.FEEDBACK_ABSENT),
        *(Refusal.RUN_NOT_FOUND, Refusal.AGENT_NOT_FOUND),
    }
)
"""Refusals for good which say that an object that was fetched once is no more."""


class Arrival(NamedTuple):
    """An item and the bytes that came for it; None: those that are stored already."""

    target: Target
    fetched: Fetched | None

    @property
    def size_bytes(self) -> int:
        """Bytes held in memory."""
        return 0 if self.fetched is None else len(self.fetched.payload)


def run(ids: Sequence[int], context: Context, claimant: str) -> list[int]:
    """Fetch and store the open items among `ids`; returns the trajectories to judge."""
    stored: list[int] = []
    arrived: list[Arrival] = []
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
        arrived.append(Arrival(target, None if isinstance(answer, Unchanged) else answer))
        if sum(each.size_bytes for each in arrived) > FLUSH_BYTES:
            stored += _store(arrived, context)
            arrived = []
    stored += _store(arrived, context)
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


def _store(arrived: Sequence[Arrival], context: Context) -> list[int]:
    """Store what came and close its items; returns the trajectories of which something new is known."""
    if not arrived:
        return []
    with transaction(context.engine) as session:
        locked = ledger.lock(session, [each.target.ledger_id for each in arrived])
        new = [each for each in arrived if each.target.trajectory_id is None]
        stored = trajectories.add(session, [_trajectory(each, locked[each.target.ledger_id]) for each in new])
        again = [each for each in arrived if _is_asked_again(each, locked)]
        for target, fetched in again:
            assert target.trajectory_id is not None
            if fetched is not None and trajectories.revise(session, target.trajectory_id, fetched.payload):
                stored.append(target.trajectory_id)
        words = [Word(str(each.target.trajectory_id), None, OBJECT, {}) for each in again]
        tombstones.settle(session, Subject.ITEM, words)
        done = [*new, *again]
        etags = {target.ledger_id: fetched.etag if fetched else target.etag for target, fetched in done}
        ledger.mark_fetched(session, list(etags), context.now(), etags)
        overtaken = [target.ledger_id for target, _ in done if _is_overtaken(target, locked)]
        if overtaken:
            ledger.ask_again(session, overtaken, context.now())
    return stored


def _is_asked_again(arrival: Arrival, locked: dict[int, Locked]) -> bool:
    """Whether the item is stored, and no one else has dealt with it while its bytes were on the way."""
    return arrival.target.trajectory_id is not None and locked[arrival.target.ledger_id].is_open


def _is_overtaken(target: Target, locked: dict[int, Locked]) -> bool:
    """Whether another object was listed for the item while the one before it was on the way."""
    return locked[target.ledger_id].is_open and locked[target.ledger_id].overtakes(target)


def _note_refusal(target: Target, refused: Refused, context: Context, claimant: str) -> None:
    note = note_of(refused, target.reason, target.attempts, context.now())
    with transaction(context.engine) as session:
        if _is_overtaken(target, ledger.lock(session, [target.ledger_id])):
            ledger.ask_again(session, [target.ledger_id], context.now())
            return
        noted = ledger.mark_refused(session, target.ledger_id, claimant, note)
        if refused.reason is Refusal.RACE_IN_FLIGHT:
            ledger.embargo_run(session, target.eval_run_id, note)
        is_stored = noted and target.trajectory_id is not None
        if is_stored and note.state is LedgerState.GONE and refused.reason in NOT_THERE:
            row = {"refusal": refused.reason.value}
            word = Word(str(target.trajectory_id), TombstoneReason.WITHDRAWN, OBJECT, row)
            tombstones.settle(session, Subject.ITEM, [word])


def _request(target: Target) -> FetchTarget:
    return FetchTarget(
        kind=ExecutionKind(target.kind),
        agent_version_id=target.agent_version_id,
        eval_run_id=target.eval_run_id,
        problem_id=target.problem_id,
        episode_result_id=target.episode_result_id,
        etag=target.etag if target.trajectory_id is not None else None,
    )


def _trajectory(arrival: Arrival, locked: Locked) -> NewTrajectory:
    target, fetched = arrival
    assert fetched is not None
    evidence = Evidence(judgement=msgspec.convert(locked.judgement, Judgement))
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
