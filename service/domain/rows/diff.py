"""How two snapshots differ, row by row and in what they were made by. Says of no row why: that is the store's to know.

Rows come sorted and go by one at a time, so that snapshots of any size can be compared.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """One row of one snapshot, as far as a difference is concerned."""

    row_id: str
    trajectory_key: str
    part: str
    """Configuration and split, such as `agentic/train`."""
    digest: str
    """Of its line."""
    tokens: int
    reason: str
    """`kept`, or why the row is among the rejected or the negative ones."""


class Difference(StrEnum):
    """How a row differs."""

    ADDED = "added"
    REMOVED = "removed"
    MOVED = "moved"
    """It is in another configuration or split."""
    CHANGED = "changed"
    """In the same place with other content."""


class Change(NamedTuple):
    """One row that differs. Of a row that is in one snapshot alone the other entry is None."""

    difference: Difference
    before: Entry | None
    after: Entry | None

    @property
    def entry(self) -> Entry:
        """The row where it is, the later one where it is in both."""
        present = self.after or self.before
        assert present is not None
        return present


def changes(before: Iterable[Entry], after: Iterable[Entry]) -> Iterator[Change | None]:
    """Compare two snapshots; both sorted by `row_id`, each of which comes once.

    Yields:
        Each row that differs, in order; None for each that does not.
    """
    ours, theirs = iter(before), iter(after)
    one, other = next(ours, None), next(theirs, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one.row_id < other.row_id):
            yield Change(Difference.REMOVED, one, None)
            one = next(ours, None)
        elif one is None or other.row_id < one.row_id:
            yield Change(Difference.ADDED, None, other)
            other = next(theirs, None)
        else:
            yield _same_row(one, other)
            one, other = next(ours, None), next(theirs, None)


def _same_row(one: Entry, other: Entry) -> Change | None:
    if one.part != other.part:
        return Change(Difference.MOVED, one, other)
    return None if one.digest == other.digest else Change(Difference.CHANGED, one, other)


def spec_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Fields of two specs that differ, by their path; None where a spec has no such field."""
    one, other = dict(_flat("", before)), dict(_flat("", after))
    names = sorted(one.keys() | other.keys())
    return {name: (one.get(name), other.get(name)) for name in names if one.get(name) != other.get(name)}


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        yield path, value
        return
    for name, inner in value.items():
        yield from _flat(f"{path}.{name}" if path else name, inner)
