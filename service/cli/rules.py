"""`sluice rules`: what the rule sets say, how two differ, and what each makes of the corpus. Judges nothing."""

from typing import Annotated, Any

import msgspec
import typer

from service.cli import funnels as shown
from service.cli.joined import joined
from service.cli.options import AsJson, DataDir, settings
from service.cli.output import print_json, print_table
from service.domain.filter.rules import RULE_SETS, RuleSet
from service.domain.filter.wording import WHAT_FIELD, WHAT_GATE, sentence
from service.domain.policy import DEFAULT_POLICIES
from service.store.engine import reading
from service.store.figures import funnels

app = typer.Typer(add_completion=False, no_args_is_help=True, help="What the rule sets say, and how two differ.")

Name = Annotated[str, typer.Argument(help=f"A rule set: {', '.join(RULE_SETS)}.")]
Rows = Annotated[int, typer.Option("--rows", min=0, help="List so many rows that they differ on.")]


@app.command("list")
def list_sets(as_json: AsJson = False) -> None:
    """List the rule sets; the one in force is marked."""
    rows = [(each.label, each.digest, each.name == DEFAULT_POLICIES.rules.name) for each in RULE_SETS.values()]
    if as_json:
        print_json([{"rules": label, "digest": digest, "in_force": in_force} for label, digest, in_force in rows])
        return
    print_table("Rule sets", ("", "digest", "in force"), [(*row[:2], "yes" if row[2] else "") for row in rows])


@app.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """Show every field of a rule set, what it means, and whether we had to choose it."""
    rules = shown.rule_set(name)
    if as_json:
        print_json({"digest": rules.digest, **msgspec.to_builtins(rules)})
        return
    ours = set(rules.ours)
    fields = [
        (field, _spelled(value), "ours" if field in ours else "", sentence(WHAT_FIELD, field))
        for field, value in _fields(rules).items()
        if field not in ("gates", "ours")
    ]
    print_table(f"{rules.label} ({rules.digest})", ("field", "value", "chosen by", "meaning"), fields)
    gates = [(gate, _chosen(gate, ours), sentence(WHAT_GATE, gate)) for gate in rules.gates]
    print_table("Gates, in order", ("gate", "chosen by", "asks that"), gates)


@app.command()
def diff(before: Name, after: Name, as_json: AsJson = False) -> None:
    """Show how two rule sets differ, field by field."""
    a, b = shown.rule_set(before), shown.rule_set(after)
    one, other = _fields(a), _fields(b)
    changed = {field: (one[field], other[field]) for field in one if one[field] != other[field]}
    if as_json:
        print_json({field: {"before": was, "after": now} for field, (was, now) in changed.items()})
        return
    rows = [(field, _spelled(was), _spelled(now), sentence(WHAT_FIELD, field)) for field, (was, now) in changed.items()]
    print_table(f"{a.label} and {b.label}", ("field", a.label, b.label, "meaning"), rows)


@app.command()
def compare(before: Name, after: Name, rows: Rows = 0, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Compare what two rule sets make of the corpus, gate by gate and row by row; `sluice judge` makes verdicts."""
    a, b = shown.rule_set(before), shown.rule_set(after)
    with joined(settings(data_dir=data_dir)) as at, reading(at.engine) as session:
        found = [(each, funnels.funnel(session, each)) for each in (a, b)]
        changes = funnels.compare(session, a, b)
        differing = funnels.differing(session, a, b, rows) if rows else []
    if as_json:
        told = {"funnels": [shown.funnel_json(*each) for each in found]}
        print_json(
            told | {"changes": [change._asdict() for change in changes], "rows": [row._asdict() for row in differing]}
        )
        return
    for each in found:
        shown.print_funnel(*each)
    shown.print_changes(a, b, changes)
    if rows:
        shown.print_differing(a, b, differing)


def _fields(rules: RuleSet) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(rules)
    return fields


def _spelled(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _chosen(gate: str, ours: set[str]) -> str:
    return "ours" if "gates" in ours or f"gates.{gate}" in ours else ""
