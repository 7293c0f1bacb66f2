"""Filter: judge every trajectory that has no verdict under these rules and this evidence. Decides nothing itself."""

import logging
from collections.abc import Sequence

import msgspec

from service.domain.evidence import Evidence
from service.domain.structure import judge, unjudgeable
from service.domain.trajectory import ExecutionKind, parse
from service.store import policies
from service.store.corpus import verdicts
from service.store.corpus.verdicts import NewVerdict, Unjudged
from service.store.engine import reading, transaction
from workers.context import Context

log = logging.getLogger(__name__)


def run(ids: Sequence[int], context: Context, _claimant: str) -> list[int]:
    """Judge the unjudged trajectories among `ids`; the stages after this one look at the whole corpus."""
    rules = context.policies.rules
    with reading(context.engine) as session:
        judged = [_judge(item, context) for item in verdicts.load_unjudged(session, ids, rules.digest)]
    with transaction(context.engine) as session:
        policies.record(session, "rules", rules.name, rules.digest, msgspec.to_builtins(rules))
        verdicts.add(session, rules.digest, judged)
    return []


def _judge(item: Unjudged, context: Context) -> NewVerdict:
    query: str | None = None
    try:
        trajectory = parse(item.payload, ExecutionKind(item.kind))
        query = trajectory.query
        evidence = msgspec.convert(item.evidence, Evidence)
        verdict = judge(trajectory, evidence, context.policies.rules, context.count_tokens)
    except Exception as fault:
        log.exception("trajectory %d cannot be judged", item.trajectory_id)
        verdict = unjudgeable(type(fault).__name__)
    return NewVerdict(
        trajectory_id=item.trajectory_id,
        evidence_digest=item.evidence_digest,
        outcome=verdict.outcome,
        reason=verdict.reason,
        structural_class=verdict.structural_class,
        trust=verdict.trust,
        calls=verdict.calls,
        signals=verdict.signals,
        answer=list(verdict.answer),
        reported_query=query,
    )
