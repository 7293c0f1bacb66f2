"""Marks: what a snapshot's status says of its rows follows from what is known, and from nothing else."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from service.domain.rows.manifest import initial_status
from service.domain.rows.marks import ChangeReason, ContactRow, Mark, State, changes, marked
from service.domain.sn15.tombstones import NOT_ASKED_FOR, TombstoneReason, of_run

AT = datetime(2026, 7, 1, 12, tzinfo=UTC)
MARKS = [
    Mark(TombstoneReason.RUN_INVALIDATED, "run-1/b", "run-1", AT),
    Mark(TombstoneReason.RUN_INVALIDATED, "run-1/a", "run-1", AT + timedelta(hours=1)),
    Mark(TombstoneReason.AGENT_DISCARDED, "run-2/a", "run-2", AT),
    Mark(ChangeReason.JUDGEMENT_CHANGED, "run-1/a", "run-1", AT),
]


def test_the_status_counts_and_names_rows_by_reason() -> None:
    told = marked(initial_status(), MARKS)
    assert told["state"] == "marked"
    assert told["invalidated_runs"] == ["run-1"], "the other run stands, its agent does not"
    assert told["marks"]["run_invalidated"] == {
        "rows": 2,
        "since": "2026-07-01T12:00:00+00:00",
        "trajectory_keys": ["run-1/a", "run-1/b"],
    }
    assert {reason: found["rows"] for reason, found in told["marks"].items()} == {
        "agent_discarded": 1,
        "judgement_changed": 1,
        "run_invalidated": 2,
    }


@given(st.permutations(MARKS), st.lists(st.sampled_from(MARKS)))
def test_neither_order_nor_repetition_nor_earlier_marks_show(order: list[Mark], repeated: list[Mark]) -> None:
    expected = marked(initial_status(), MARKS)
    assert marked(initial_status(), [*order, *repeated]) == expected
    assert marked(marked(initial_status(), repeated), order) == expected


def test_marks_go_when_nothing_is_left_to_mark_and_the_rest_of_a_status_stays() -> None:
    assert marked(marked(initial_status(), MARKS), []) == initial_status()
    other = {"state": "redacted", "redacted_rows": ["row"]}
    assert marked(other, MARKS)["state"] == "redacted"
    assert marked(other, MARKS)["redacted_rows"] == ["row"]


def contact(split: str, key: str, is_direct: bool, benchmark: str = "b") -> ContactRow:
    return ContactRow(benchmark, "exclude", AT, split, key, is_direct)


CONTACTS = [
    contact("train", "run-1/b", is_direct=False),
    contact("train", "run-1/a", is_direct=True),
    contact("eval", "run-2/c", is_direct=True),
    contact("eval", "run-2/c", is_direct=True, benchmark="a"),
]


@given(st.permutations(CONTACTS))
def test_contacts_with_benchmarks_are_told_by_benchmark_and_split(order: list[ContactRow]) -> None:
    told = marked(initial_status(), [], order)
    assert told["state"] == "marked"
    assert [found["benchmark"] for found in told["contaminated_by"]] == ["a", "b"]
    assert told["contaminated_by"][1] == {
        "benchmark": "b",
        "policy": "exclude",
        "since": "2026-07-01T12:00:00+00:00",
        "splits": {
            "eval": {"rows": 1, "direct": 1, "trajectory_keys": ["run-2/c"]},
            "train": {"rows": 2, "direct": 1, "trajectory_keys": ["run-1/a", "run-1/b"]},
        },
    }
    assert marked(told, [], []) == initial_status()


def test_times_are_told_in_utc() -> None:
    elsewhere = AT.astimezone(timezone(timedelta(hours=2)))
    assert marked({}, [MARKS[0]._replace(since=elsewhere)]) == marked({}, [MARKS[0]])


def test_what_has_come_back_to_what_it_was_is_no_change() -> None:
    def states(*told: tuple[str, str]) -> list[State]:
        return [State(*each, AT + timedelta(days=day)) for day, each in enumerate(told)]

    then, *later = states(("won", "one"), ("lost", "one"), ("lost", "two"), ("won", "two"))
    # On the last day the judgement is what it was, and the bytes are others since the second day after.
    assert changes(then, later) == {ChangeReason.BYTES_CHANGED: AT + timedelta(days=2)}
    assert changes(then, later[:2]) == {
        ChangeReason.JUDGEMENT_CHANGED: AT + timedelta(days=1),
        ChangeReason.BYTES_CHANGED: AT + timedelta(days=2),
    }
    assert changes(then, []) == {}


def test_the_first_thing_that_speaks_against_a_run_is_its_reason() -> None:
    counts = {"is_invalidated": False, "is_included": True, "is_successful": True}
    assert of_run(**counts) is None
    assert of_run(**counts | {"is_successful": False}) is TombstoneReason.RUN_UNSUCCESSFUL
    assert of_run(**counts | {"is_successful": False, "is_included": False}) is TombstoneReason.RUN_EXCLUDED
    assert of_run(is_invalidated=True, is_included=False, is_successful=False) is TombstoneReason.RUN_INVALIDATED


def test_only_an_item_that_was_withdrawn_is_not_taken_up_again_by_itself() -> None:
    assert set(TombstoneReason) - NOT_ASKED_FOR == {TombstoneReason.WITHDRAWN}
