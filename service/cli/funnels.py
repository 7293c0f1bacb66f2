"""Funnels of rule sets as tables and JSON, for the commands that show them. Counts nothing itself."""

from collections.abc import Iterable, Sequence
from typing import Any

from service.cli.output import print_table
from service.domain.filter.rules import RULE_SETS, RuleSet
from service.domain.filter.wording import WHAT_GATE, sentence
from service.errors import ErrorCode, SluiceError
from service.store.figures.funnels import Change, Difference, Funnel


def rule_set(name: str) -> RuleSet:
    """The rule set of a name.

    Raises:
        SluiceError: BAD_INPUT when none has it.
    """
    if name not in RULE_SETS:
        raise SluiceError(ErrorCode.BAD_INPUT, f"rule sets are {', '.join(RULE_SETS)}; not {name[:60]!r}")
    return RULE_SETS[name]


def print_funnel(rules: RuleSet, found: Funnel) -> None:
    """A funnel, gate by gate."""
    kept = ", ".join(f"{rows} {outcome}" for outcome, rows in found.outcomes.items()) or "nothing"
    waiting = f", {found.unjudged} not judged yet" if found.unjudged else ""
    rows = [(each.gate, sentence(WHAT_GATE, each.gate), each.reached, each.failed) for each in found.gates]
    print_table(
        f"{rules.label}: {found.judged} judged{waiting}; {kept}", ("gate", "asks that", "reached", "failed"), rows
    )


def print_changes(before: RuleSet, after: RuleSet, changes: Iterable[Change]) -> None:
    """What two rule sets say of the same rows, those apart on which they agree."""
    agreed = 0
    rows: list[tuple[object, ...]] = []
    for change in changes:
        if change.is_same:
            agreed += change.rows
        else:
            rows.append((*change[:4], change.rows))
    columns = (before.label, "reason", after.label, "reason", "rows")
    print_table(f"They agree on {agreed} rows; of the others they say", columns, rows)


def print_differing(before: RuleSet, after: RuleSet, rows: Sequence[Difference]) -> None:
    """Rows one by one."""
    print_table("Rows of which they say different things", ("trajectory", before.label, after.label), rows)


def funnel_json(rules: RuleSet, found: Funnel) -> dict[str, Any]:
    """A funnel for machines."""
    return {
        "rules": rules.label,
        "digest": rules.digest,
        "judged": found.judged,
        "unjudged": found.unjudged,
        "outcomes": found.outcomes,
        "gates": [{"gate": each.gate.value, "reached": each.reached, "failed": each.failed} for each in found.gates],
    }
