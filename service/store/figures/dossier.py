"""One trajectory with its verdict, and whether its content may be shown (`pools.may_show`). Parses no payload."""

from typing import Any, NamedTuple

import msgspec
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.domain.attribution.provenance import CallProvenance, StructuralClass, Trust
from service.domain.filter.structure import Outcome, Reason, Verdict
from service.domain.leaks.pools import may_show
from service.store.corpus.verdicts import current
from service.store.figures import trajectory_pages
from service.store.figures.trajectory_pages import TrajectoryRow
from service.store.models import PoolAssignment, PoolMember, SnapshotRow


class VerdictRow(NamedTuple):
    """The verdict that stands for a trajectory."""

    outcome: str
    reason: str
    structural_class: str
    trust: str
    calls: list[dict[str, Any]]
    signals: dict[str, Any]
    answer: list[str]
    reported_query: str | None
    evidence: dict[str, Any]

    @property
    def verdict(self) -> Verdict:
        """The domain's value."""
        return Verdict(
            outcome=Outcome(self.outcome),
            reason=Reason(self.reason),
            structural_class=StructuralClass(self.structural_class),
            trust=Trust(self.trust),
            calls=msgspec.convert(self.calls, tuple[CallProvenance, ...]),
            answer=tuple(self.answer),
            signals=self.signals,
        )


class Dossier(NamedTuple):
    """All that is stored of one trajectory but its payload. `verdict` is None while it is unjudged."""

    row: TrajectoryRow
    verdict: VerdictRow | None
    is_open: bool
    """Whether the content may be shown to anyone."""


def dossier(session: Session, rules_digest: str, trajectory_id: int) -> Dossier | None:
    """Everything stored of one trajectory; None when there is none under this id."""
    row = trajectory_pages.one(session, rules_digest, trajectory_id)
    if row is None:
        return None
    verdict = current(rules_digest)
    columns = [verdict.c[name] for name in VerdictRow._fields]
    found = session.execute(select(*columns).where(verdict.c.trajectory_id == trajectory_id)).one_or_none()
    return Dossier(row, VerdictRow(*found) if found else None, is_open(session, trajectory_id, row.problem_id))


def is_open(session: Session, trajectory_id: int, problem_id: str) -> bool:
    """Whether the content of a trajectory of this problem may be shown to anyone."""
    newest = session.scalar(select(func.max(PoolAssignment.assignment_id)).where(PoolAssignment.refusal.is_(None)))
    pools = select(PoolMember.assignment_id, PoolMember.pool).where(PoolMember.problem_id == problem_id)
    history = {assignment_id: pool for assignment_id, pool in session.execute(pools)}
    published = select(SnapshotRow.trajectory_id).where(SnapshotRow.trajectory_id == trajectory_id).limit(1)
    return may_show(history, newest, is_published=session.scalar(published) is not None)
