"""`sluice snapshot diff`: rows in, rows out, and why. Finds no reason itself."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from service.cli.joined import Joined
from service.cli.output import note, print_json, print_table
from service.domain.rows.diff import Change, Difference, Entry, changes, spec_changes
from service.domain.rows.records import split_key
from service.store.engine import reading
from service.store.release import absences, published
from service.store.release.files import FileStore

BATCH = 1_000
"""Rows whose reasons are asked for at once."""


class _Row(msgspec.Struct):
    row_id: str
    trajectory_key: str
    tokens: int
    reason: str


class Told(NamedTuple):
    """One row that differs, and why."""

    change: Change
    why: str


class Compared(NamedTuple):
    """Two snapshots compared."""

    spec: dict[str, tuple[Any, Any]]
    counts: dict[str, int]
    """Rows by how they differ, and `same`."""
    why: dict[str, dict[str, int]]
    """Of rows that are in one alone: why they are not in the other. Of those that moved: what the later one says."""
    rows: list[Told]
    """The first of those that differ."""


def compare(at: Joined, files: FileStore, before: str, after: str, most: int) -> Compared:
    """Compare two published snapshots.

    Args:
        at: the databases.
        files: the published files.
        before: one id.
        after: the other.
        most: rows to name; all are counted.
    """
    counts: Counter[str] = Counter()
    why: dict[str, Counter[str]] = defaultdict(Counter)
    named: list[Told] = []
    for told in _explained(at, _differing(files, before, after, counts), before, after):
        kind = told.change.difference
        counts[kind] += 1
        if told.why:
            why[kind][told.why] += 1
        if len(named) < most:
            named.append(told)
    specs = (files.manifest(one).spec for one in (before, after))
    return Compared(
        spec_changes(*specs),
        {name: counts[name] for name in ("same", *Difference)},
        {kind: dict(found.most_common()) for kind, found in sorted(why.items())},
        named,
    )


def _differing(files: FileStore, before: str, after: str, counts: Counter[str]) -> Iterator[Change]:
    """Rows that differ; the others are counted."""
    for change in changes(_entries(files, before), _entries(files, after)):
        if change is None:
            counts["same"] += 1
        else:
            yield change


def _entries(files: FileStore, snapshot_id: str) -> Iterator[Entry]:
    for row in published.rows(files, snapshot_id):
        read = msgspec.json.decode(row.line, type=_Row)
        digest = hashlib.sha256(row.line).hexdigest()
        part = f"{row.entry.config}/{row.entry.split}"
        yield Entry(read.row_id, read.trajectory_key, part, digest, read.tokens, read.reason)


def _explained(at: Joined, found: Iterator[Change], before: str, after: str) -> Iterator[Told]:
    batch: list[Change] = []
    for change in found:
        batch.append(change)
        if len(batch) == BATCH:
            yield from _reasons(at, batch, before, after)
            batch = []
    yield from _reasons(at, batch, before, after)


def _reasons(at: Joined, batch: list[Change], before: str, after: str) -> Iterator[Told]:
    absent: dict[str, dict[tuple[str, str], str]] = {}
    with reading(at.engine) as session:
        for kind, snapshot_id in ((Difference.REMOVED, after), (Difference.ADDED, before)):
            tokens = {_key(one.entry): one.entry.tokens for one in batch if one.difference is kind}
            absent[kind] = absences.reasons(session, snapshot_id, tokens) if tokens else {}
    for change in batch:
        moved = change.entry.reason if change.difference is Difference.MOVED else ""
        yield Told(change, absent.get(change.difference, {}).get(_key(change.entry), moved))


def _key(entry: Entry) -> tuple[str, str]:
    return split_key(entry.trajectory_key)


def show(before: str, after: str, found: Compared, as_json: bool) -> None:
    """Print a comparison."""
    if as_json:
        print_json(
            {
                "before": before,
                "after": after,
                "spec": {name: {"before": was, "after": now} for name, (was, now) in found.spec.items()},
                "rows": found.counts,
                "why": found.why,
                "differing": [_plain(told) for told in found.rows],
            }
        )
        return
    print_table("Made by", ("field", before[:8], after[:8]), [(name, *pair) for name, pair in found.spec.items()])
    print_table("Rows", ("", "rows"), found.counts.items())
    reasons = [(kind, why, number) for kind, by_reason in found.why.items() for why, number in by_reason.items()]
    print_table("Why not in the other", ("", "reason", "rows"), reasons)
    rows = [
        (told.change.difference, told.change.entry.trajectory_key, _place(told.change), told.why) for told in found.rows
    ]
    print_table("Rows that differ", ("", "trajectory", "place", "reason"), rows)
    total = sum(found.counts.values()) - found.counts["same"]
    if total > len(rows):
        note(f"{total - len(rows)} more rows differ; --rows N names more")


def _place(change: Change) -> str:
    if change.before is not None and change.after is not None and change.before.part != change.after.part:
        return f"{change.before.part} to {change.after.part}"
    return change.entry.part


def _plain(told: Told) -> dict[str, str]:
    change = told.change
    plain = {"difference": change.difference.value, "trajectory_key": change.entry.trajectory_key}
    return plain | {"place": _place(change)} | ({"why": told.why} if told.why else {})
