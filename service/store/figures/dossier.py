"""One trajectory with its verdict, and whether its content may be shown (`pools.may_show`). Parses no payload."""

from enum import StrEnum
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.domain.attribution.provenance import CallProvenance, StructuralClass, Trust
from service.domain.filter.structure import Outcome, Reason, Verdict
from service.domain.leaks.pools import may_show
from service.store.corpus.tombstones import redacted
from service.store.corpus.verdicts import current
from service.store.figures import trajectory_pages
from service.store.figures.trajectory_pages import TrajectoryRow
from service.store.models import PoolAssignment, PoolMember, SnapshotRow, Trajectory


class Withheld(StrEnum):
    """Why the content of a trajectory may be shown to nobody."""

    HELD_OUT = "held_out"
    """The problem is held for future evaluation or in no pool, or it is of eval and this is no published row."""
    REDACTED = "redacted"
    """It was taken down."""


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
    withheld: Withheld | None
    """Why the content may be shown to nobody; None: it may."""

    @property
    def is_open(self) -> bool:
        """Whether the content may be shown to anyone."""
        return self.withheld is None


def dossier(session: Session, rules_digest: str, trajectory_id: int) -> Dossier | None:
    """Everything stored of one trajectory; None when there is none under this id."""
    row = trajectory_pages.one(session, rules_digest, trajectory_id)
    if row is None:
        return None
    verdict = current(rules_digest)
    columns = [verdict.c[name] for name in VerdictRow._fields]
    found = session.execute(select(*columns).where(verdict.c.trajectory_id == trajectory_id)).one_or_none()
    return Dossier(row, VerdictRow(*found) if found else None, withheld(session, trajectory_id, row.problem_id))


def withheld(session: Session, trajectory_id: int, problem_id: str) -> Withheld | None:
    """Why the content of a trajectory of this problem may be shown to nobody; None: it may."""
    taken_down = redacted().where(Trajectory.trajectory_id == trajectory_id)
    if session.scalar(taken_down) is not None:
        return Withheld.REDACTED
    newest = session.scalar(select(func.max(PoolAssignment.assignment_id)).where(PoolAssignment.refusal.is_(None)))
    pools = select(PoolMember.assignment_id, PoolMember.pool).where(PoolMember.problem_id == problem_id)
    history = {assignment_id: pool for assignment_id, pool in session.execute(pools)}
    published = select(SnapshotRow.trajectory_id).where(SnapshotRow.trajectory_id == trajectory_id).limit(1)
    is_open = may_show(history, newest, is_published=session.scalar(published) is not None)
    return None if is_open else Withheld.HELD_OUT
