"""Rule sets and what they make of the corpus, as JSON schemas. Wire shapes only: nothing here is used inside."""

from typing import Any

from service.api.schemas import Wire


class RuleSet(Wire):
    """One rule set, whole."""

    label: str
    """Name and version."""
    digest: str
    """Sha256 of its canonical form; every verdict carries it."""
    in_force: bool
    """Whether snapshots and statistics go by it."""
    fields: dict[str, Any]
    """Every field as it is; `ours` names those that the set's source leaves open."""


class RuleSets(Wire):
    """All rule sets that ship."""

    rule_sets: list[RuleSet]


class GateCount(Wire):
    """Rows that come to a gate, and those of them that it is the first to fail."""

    gate: str
    reached: int
    failed: int


class Funnel(Wire):
    """What a rule set makes of the corpus, gate by gate in its order."""

    rules: str
    judged: int
    unjudged: int
    """Rows that it has no verdict on: `sluice judge` makes them."""
    outcomes: dict[str, int]
    gates: list[GateCount]


class Change(Wire):
    """Rows by what the two sets say of them."""

    before_outcome: str
    before_reason: str
    after_outcome: str
    after_reason: str
    rows: int


class Comparison(Wire):
    """Two rule sets, and the rows that both have judged by what each says."""

    before: Funnel
    after: Funnel
    changes: list[Change]
