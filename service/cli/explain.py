"""`sluice explain`: one trajectory step by step, who made each call and why, and what decided its verdict."""

from typing import Annotated

import msgspec
import typer
from sqlalchemy.orm import Session

from service.cli.funnels import rule_set
from service.cli.joined import joined
from service.cli.options import AsJson, DataDir, settings
from service.cli.output import print_json, print_table, results
from service.domain.attribution.evidence import Evidence
from service.domain.filter.explanation import Entry, Explanation, Ground, explain
from service.domain.filter.rules import RULE_SETS, RuleSet
from service.domain.filter.structure import judge
from service.domain.policy import DEFAULT_POLICIES
from service.domain.trajectory import ExecutionKind, parse
from service.errors import ErrorCode, SluiceError
from service.store.corpus import evidence as states
from service.store.corpus import trajectories
from service.store.engine import reading
from service.store.figures.dossier import Dossier, dossier
from service.tokenizer import qwen_token_counter

COLUMNS = ("step", "seconds", "", "what", "by", "why")
EXCERPT = 110
"""Characters of a text in a table for people."""
WHOLE = 1_000_000

Which = Annotated[str, typer.Argument(help="Its number, or its key: RUN/PROBLEM.")]
Rules = Annotated[str | None, typer.Option("--rules", help=f"Judge it by these rules: {', '.join(RULE_SETS)}.")]
Full = Annotated[bool, typer.Option("--full", help="Do not cut long texts.")]


def command(
    trajectory: Which, data_dir: DataDir = None, rules: Rules = None, full: Full = False, as_json: AsJson = False
) -> None:
    """Show one trajectory step by step, with who made each call and why."""
    by = DEFAULT_POLICIES.rules if rules is None else rule_set(rules)
    with joined(settings(data_dir=data_dir)) as at, reading(at.engine) as session:
        found = _find(session, trajectory, by)
        explained = _explained(session, found, by, WHOLE if full else EXCERPT)
    if as_json:
        told = {"trajectory_id": found.row.trajectory_id, "rules": by.label}
        print_json(told | msgspec.to_builtins(explained))
    else:
        _print(found, by, explained)


def _find(session: Session, which: str, rules: RuleSet) -> Dossier:
    is_number = which.isascii() and which.isdigit() and len(which) < 19
    trajectory_id = int(which) if is_number else trajectories.named(session, which)
    found = None if trajectory_id is None else dossier(session, rules.digest, trajectory_id)
    if found is None:
        raise SluiceError(ErrorCode.NOT_FOUND, f"there is no trajectory {which[:120]!r}")
    return found


def _explained(session: Session, found: Dossier, rules: RuleSet, excerpt: int) -> Explanation:
    """The explanation of what the rules say of the newest evidence: the filter's own code, run again."""
    trajectory_id = found.row.trajectory_id
    payload = trajectories.payload(session, trajectory_id)
    assert payload is not None
    trajectory = parse(payload, ExecutionKind(found.row.kind))
    evidence = states.latest(session, [trajectory_id]).get(trajectory_id, Evidence())
    verdict = judge(trajectory, evidence, rules, qwen_token_counter(rules.token_method))
    return explain(trajectory, evidence, verdict, rules, excerpt=excerpt)


def _print(found: Dossier, rules: RuleSet, explained: Explanation) -> None:
    row = found.row
    print_table(
        f"Trajectory {row.trajectory_id}: {row.eval_run_id}/{row.problem_id}",
        ("", "", "meaning"),
        [
            ("verdict", f"{explained.outcome}: {explained.decided.name}", explained.decided.why),
            ("class", explained.structural_class.name, explained.structural_class.why),
            ("trust", explained.trust.name, explained.trust.why),
            *_grounds("gate failed", explained.failed),
            *_grounds("contradiction", explained.contradictions),
            *_grounds("missing", explained.unsupported),
            *_grounds("released code", explained.findings),
            ("rules", rules.label, f"agent {row.agent}, {row.kind}, {row.category}"),
        ],
    )
    print_table("In order of time", COLUMNS, [_columns(entry) for entry in explained.entries])
    if explained.lift != "none":
        results.print(f"Lift: {explained.lift} (calls of code that state what a reply had said before)")


def _grounds(title: str, grounds: tuple[Ground, ...]) -> list[tuple[str, str, str]]:
    return [(title, ground.name, ground.why) for ground in grounds]


def _columns(entry: Entry) -> list[object]:
    label = entry.kind if entry.inference is None or entry.kind != "reply" else f"reply {entry.inference}"
    why = entry.why or ""
    if entry.kind == "call" and entry.inference is not None:
        why = f"{why}: reply {entry.inference}"
    if entry.lifted_from:
        why = f"{why}; reply {', '.join(map(str, entry.lifted_from))} had stated it"
    return [
        "\N{EM DASH}" if entry.step is None else entry.step,
        "" if entry.seconds is None else f"{entry.seconds:.3f}",
        label,
        entry.what or "",
        (entry.issuer or "").upper() if entry.kind == "call" else entry.issuer or "",
        why,
    ]
