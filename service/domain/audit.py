"""Audit of a snapshot: does any eval answer leak into train? By brute force, sharing no code with the clustering.

It finds faults; it mends none, and knows neither clusters nor pools.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class AuditRow(NamedTuple):
    """One row of a snapshot, as far as the audit is concerned."""

    split: str
    """"train" or "eval"; a row of any other split fails the audit."""
    problem_id: str
    query: str | None
    gold_ids: frozenset[str]
    winner_ids: frozenset[str]
    """Confirmed ones."""
    family: str
    trajectory_key: str


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """The numbers the audit judges by."""

    threshold: float = 0.50
    informative_tokens: int = 4


AUDIT_1 = AuditPlan()


class Check(NamedTuple):
    """One question put to the snapshot."""

    name: str
    ok: bool
    count: int
    """Faults found."""
    examples: tuple[str, ...]
    """A few of them."""


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The answers. `ok` only if every check is."""

    ok: bool
    checks: tuple[Check, ...]
    figures: dict[str, Any] = field(default_factory=dict)
    """JSON-able counts and shares that are reported, not judged."""

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "ok": self.ok,
            "checks": [check._asdict() | {"examples": list(check.examples)} for check in self.checks],
            "figures": self.figures,
        }


def audit(rows: Sequence[AuditRow], plan: AuditPlan = AUDIT_1) -> AuditReport:
    """Ask every question of the rows of one snapshot."""
    raise NotImplementedError
