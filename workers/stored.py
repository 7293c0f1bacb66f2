"""Stored rows as the domain's values again. Reads nothing and decides nothing."""

from collections.abc import Collection

import msgspec

from service.domain.attribution.provenance import CallProvenance, StructuralClass, Trust
from service.domain.filter.rules import RuleSet
from service.domain.filter.structure import Outcome, Reason, Verdict
from service.domain.leaks.audit import AuditRow
from service.domain.leaks.leakage import ProblemFacts
from service.domain.rows.pseudonyms import salted
from service.domain.rows.records import RowSource, trajectory_key
from service.domain.rows.splits import config_of
from service.domain.rows.wanted import Offered, day_of
from service.store.release.snapshots import JudgedRow


def key(row: JudgedRow) -> str:
    """The name of the row's trajectory that holds on every machine."""
    return trajectory_key(row.eval_run_id, row.problem_id)


def verdict(row: JudgedRow) -> Verdict:
    """The row's verdict."""
    return Verdict(
        outcome=Outcome(row.outcome),
        reason=Reason(row.reason),
        structural_class=StructuralClass(row.structural_class),
        trust=Trust(row.trust),
        calls=msgspec.convert(row.calls, tuple[CallProvenance, ...]),
        answer=tuple(row.answer),
        signals=row.signals,
    )


def problem(row: JudgedRow) -> ProblemFacts:
    """What clustering knew of the row's problem."""
    return ProblemFacts(
        problem_id=row.problem_id,
        kind=row.kind,
        category=row.category,
        query=row.query,
        query_confirmed=row.query_confirmed,
        gold_ids=frozenset(row.gold_ids),
        winner_ids=frozenset(row.winner_ids),
    )


def offered(row: JudgedRow, disputed: Collection[tuple[str, str]]) -> Offered:
    """The row as far as wanting it is concerned.

    Args:
        row: the row.
        disputed: agent versions and problems that validators disagree on.
    """
    return Offered(
        config=config_of(row.outcome, row.structural_class),
        kind=row.kind,
        structural_class=row.structural_class,
        category=row.category,
        race_id=row.race_id,
        completed_on=day_of(row.completed_at),
        reward=row.reward,
        reasoning_score=row.reasoning_score,
        is_disputed=(row.agent_version_id, row.problem_id) in disputed,
    )


def row_source(row: JudgedRow, rules: RuleSet, solve_rate: float | None, salt: str | None = None) -> RowSource:
    """Where the row comes from; with a salt, without the hotkey of any miner."""
    family, hotkey = row.family, row.miner_hotkey
    if salt is not None:
        family, hotkey = salted(family, salt), None if hotkey is None else salted(hotkey, salt)
    return RowSource(
        eval_run_id=row.eval_run_id,
        agent_version_id=row.agent_version_id,
        agent_family=family,
        miner_hotkey=hotkey,
        race_id=row.race_id,
        cluster_id=row.cluster_id,
        rules=f"{rules.name}/{rules.version}",
        rules_digest=rules.digest,
        reasoning_score=row.reasoning_score,
        difficulty=solve_rate,
    )


def audit_row(row: JudgedRow, *, is_followed: bool) -> AuditRow:
    """The row as the audit sees it; `is_followed`: it is an example to follow."""
    return AuditRow(
        split=row.pool,
        problem_id=row.problem_id,
        query=row.query,
        gold_ids=frozenset(row.gold_ids),
        winner_ids=frozenset(row.winner_ids),
        family=row.family,
        trajectory_key=key(row),
        is_followed=is_followed,
    )
