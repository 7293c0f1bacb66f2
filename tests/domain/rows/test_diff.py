"""Two snapshots compared: against plain dictionaries of their rows."""

from hypothesis import given
from hypothesis import strategies as st

from service.domain.rows.diff import Change, Difference, Entry, changes, spec_changes

ROWS = st.dictionaries(
    st.sampled_from([f"{n:02}" for n in range(12)]),
    st.tuples(st.sampled_from(["agentic/train", "agentic/eval"]), st.sampled_from("ab")),
    max_size=12,
)


def entries(rows: dict[str, tuple[str, str]]) -> list[Entry]:
    return [Entry(name, f"run/{name}", part, digest, 1, "kept") for name, (part, digest) in sorted(rows.items())]


@given(ROWS, ROWS)
def test_each_row_is_told_once_as_dictionaries_tell_it(
    before: dict[str, tuple[str, str]], after: dict[str, tuple[str, str]]
) -> None:
    found = list(changes(entries(before), entries(after)))
    assert len(found) == len(before.keys() | after.keys())
    told = {change.entry.row_id: change.difference for change in found if change is not None}
    expected = {
        name: Difference.ADDED
        if name not in before
        else Difference.REMOVED
        if name not in after
        else Difference.MOVED
        if before[name][0] != after[name][0]
        else Difference.CHANGED
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    }
    assert told == expected
    assert list(told) == sorted(told)


def test_a_row_that_moved_is_told_from_where_to_where() -> None:
    (change,) = changes(entries({"1": ("agentic/train", "a")}), entries({"1": ("agentic/eval", "b")}))
    assert isinstance(change, Change)
    assert change.before is not None
    assert (change.before.part, change.entry.part) == ("agentic/train", "agentic/eval")


def test_specs_are_told_field_by_field() -> None:
    before = {"rules": "a", "wanted": {"since": None, "races": []}, "old": 1}
    after = {"rules": "a", "wanted": {"since": "2026-01-01", "races": []}, "new": {"x": 2}}
    assert spec_changes(before, after) == {
        "new.x": (None, 2),
        "old": (1, None),
        "wanted.since": (None, "2026-01-01"),
    }
