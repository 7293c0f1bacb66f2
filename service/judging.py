"""Judge stored trajectories under a rule set: read, judge, write, a batch at a time. Decides nothing: `structure` does.

A batch that is cut off anywhere leaves no trace, and is judged by whoever comes next.
"""

import logging
from collections.abc import Callable, Sequence

import msgspec
from sqlalchemy import Engine

from service.domain.attribution.evidence import Evidence
from service.domain.filter.rules import RuleSet
from service.domain.filter.structure import judge, unjudgeable
from service.domain.trajectory import ExecutionKind, parse
from service.store import policies
from service.store.corpus import verdicts
from service.store.corpus.verdicts import NewVerdict, Unjudged
from service.store.engine import reading, transaction

OUR_FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What a mistake of ours raises on a payload that no test has: such a row is rejected by name, and stops no other."""

_EVIDENCE = msgspec.json.Decoder(Evidence)

log = logging.getLogger(__name__)


def judge_batch(engine: Engine, ids: Sequence[int], rules: RuleSet, count_tokens: Callable[[str], int]) -> int:
    """Judge those of the trajectories that have no verdict under the rules and on their newest evidence.

    Args:
        engine: the database.
        ids: trajectories; those that are judged already are passed over.
        rules: the rule set.
        count_tokens: what its `token_method` names.

    Returns:
        Verdicts stored.
    """
    with reading(engine) as session:
        judged = [_judge(item, rules, count_tokens) for item in verdicts.load_unjudged(session, ids, rules.digest)]
    if not judged:
        return 0
    with transaction(engine, is_derived=True) as session:
        policies.record(session, "rules", rules.name, rules.digest, msgspec.to_builtins(rules))
        return verdicts.add(session, rules.digest, judged)


def _judge(item: Unjudged, rules: RuleSet, count_tokens: Callable[[str], int]) -> NewVerdict:
    evidence = _EVIDENCE.decode(item.evidence)
    query: str | None = None
    try:
        trajectory = parse(item.payload, ExecutionKind(item.kind))
        query = trajectory.query
        verdict = judge(trajectory, evidence, rules, count_tokens)
    except OUR_FAULTS as fault:
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
