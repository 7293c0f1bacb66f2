"""What people and machines see: results on stdout, everything else on stderr. Computes no figure."""

import json
from collections.abc import Iterable, Mapping

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from service.store.figures.summary import Summary

WIDE = 10_000
results = Console(highlight=False)
if not results.is_terminal:
    # What reads a pipe or a file wants a line for a row, and ids in one piece.
    results.width = WIDE
notes = Console(stderr=True, highlight=False)


def note(text: str) -> None:
    """One line about what is going on, on stderr."""
    notes.print(escape(text), soft_wrap=True)


def print_json(value: object) -> None:
    """A result for machines."""
    typer.echo(json.dumps(value, indent=2, default=str))


def print_table(title: str, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """A result for people. Text is shown as it is: control characters and markup of strangers do nothing."""
    table = Table()
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(escape(visible(str(value))) for value in row))
    results.print(f"[italic]{escape(visible(title))}[/italic]", soft_wrap=True)
    results.print(table)


def visible(text: str) -> str:
    """The text with every character that could drive a terminal spelt out."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def print_summary(summary: Summary, as_json: bool) -> None:
    """The whole corpus in short."""
    if as_json:
        print_json(summary.to_json())
        return
    harvest, verdicts = summary.harvest, summary.verdicts
    print_table(
        "Harvest",
        ("races", "items", "fetched", "changed", "gone", "embargoed", "failed", "expected"),
        [
            (
                summary.races,
                harvest.items,
                harvest.fetched,
                harvest.changed,
                harvest.gone,
                harvest.embargoed,
                harvest.failed,
                harvest.expected,
            )
        ],
    )
    _print_counts("Trajectories by class", summary.by_class)
    outcomes = {"kept": verdicts.kept, "kept_negative": verdicts.kept_negative, "rejected": verdicts.rejected}
    _print_counts("Verdicts", outcomes)
    _print_counts("Reasons", verdicts.reasons)
    _print_counts(f"Problems by pool ({summary.clusters} leak clusters)", summary.pools)
    if any(summary.commitments.values()):
        _print_counts("Seed commitments", summary.commitments)
    if summary.snapshot is not None:
        rows = summary.snapshot.rows
        audit = "passed" if summary.snapshot.audit["ok"] else "FAILED"
        print_table(
            "Snapshot", ("id", "train", "eval", "audit"), [(summary.snapshot.id, rows["train"], rows["eval"], audit)]
        )
        left_out = summary.snapshot.left_out
        _print_counts("Kept, but not in the snapshot", left_out.pools | left_out.selection)
    elif summary.refusal is not None:
        results.print(escape(f"No snapshot: {summary.refusal.code}: {visible(summary.refusal.message)}"))


def _print_counts(title: str, counts: Mapping[str, int]) -> None:
    print_table(title, ("", "count"), counts.items())
