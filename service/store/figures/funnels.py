"""Rule sets in figures: how many rows reach and fail each gate, and how two sets differ row by row. Judges nothing."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from service.domain.filter.reasons import REASONS, Gate
from service.domain.filter.rules import RuleSet
from service.store.corpus.verdicts import current
from service.store.models import Evidence


class GateCount(NamedTuple):
    """Rows that come to a gate, and those of them that it is the first to fail."""

    gate: Gate
    reached: int
    failed: int


class Funnel(NamedTuple):
    """What a rule set makes of the corpus."""

    judged: int
    unjudged: int
    gates: tuple[GateCount, ...]
    outcomes: dict[str, int]


class Change(NamedTuple):
    """Rows by what two rule sets say of them."""

    before_outcome: str
    before_reason: str
    after_outcome: str
    after_reason: str
    rows: int

    @property
    def is_same(self) -> bool:
        """Both say the same."""
        return (self.before_outcome, self.before_reason) == (self.after_outcome, self.after_reason)


class Difference(NamedTuple):
    """One row of which two rule sets say different things."""

    trajectory_id: int
    before: str
    after: str


def funnel(session: Session, rules: RuleSet) -> Funnel:
    """The corpus before a rule set's gates, in their order; clean failures fail at `success`."""
    verdict = current(rules.digest)
    found = session.execute(select(verdict.c.outcome, verdict.c.reason, func.count()).group_by("outcome", "reason"))
    by_reason: dict[str, int] = {}
    outcomes: dict[str, int] = {}
    for outcome, reason, rows in found:
        by_reason[reason] = by_reason.get(reason, 0) + rows
        outcomes[outcome] = outcomes.get(outcome, 0) + rows
    judged = left = sum(outcomes.values())
    gates = []
    for gate in rules.gates:
        failed = sum(by_reason.pop(reason.value, 0) for reason in REASONS[gate])
        gates.append(GateCount(gate, left, failed))
        left -= failed
    total = session.scalar(select(func.count(Evidence.trajectory_id.distinct()))) or 0
    return Funnel(judged, total - judged, tuple(gates), dict(sorted(outcomes.items())))


def compare(session: Session, before: RuleSet, after: RuleSet) -> list[Change]:
    """Rows that both have judged, by what each says; the largest groups first."""
    a, b = current(before.digest).alias("a"), current(after.digest).alias("b")
    columns = (a.c.outcome, a.c.reason, b.c.outcome, b.c.reason)
    rows = session.execute(
        select(*columns, func.count())
        .join(b, a.c.trajectory_id == b.c.trajectory_id)
        .group_by(*columns)
        .order_by(func.count().desc(), *columns)
    )
    return [Change(*row) for row in rows]


def differing(session: Session, before: RuleSet, after: RuleSet, limit: int) -> Sequence[Difference]:
    """Rows of which the two say different things, in order of id."""
    a, b = current(before.digest).alias("a"), current(after.digest).alias("b")
    rows = session.execute(
        select(a.c.trajectory_id, a.c.reason, b.c.reason)
        .join(b, a.c.trajectory_id == b.c.trajectory_id)
        .where(or_(a.c.outcome != b.c.outcome, a.c.reason != b.c.reason))
        .order_by(a.c.trajectory_id)
        .limit(limit)
    )
    return [Difference(*row) for row in rows]
