"""What is learned of a snapshot's rows after it was published, as its status tells it. Changes no row and no file.

The status follows from what is known alone, so it is the same whoever writes it, and however often.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from service.domain.sn15.tombstones import TombstoneReason

PUBLISHED, MARKED = "published", "marked"
"""States of a snapshot of whose rows nothing, and something, is known to have changed."""
_OF_RUNS = frozenset(
    {TombstoneReason.RUN_INVALIDATED, TombstoneReason.RUN_EXCLUDED, TombstoneReason.RUN_UNSUCCESSFUL},
)


class ChangeReason(StrEnum):
    """What the source says otherwise of a row than when the snapshot was made."""

    JUDGEMENT_CHANGED = "judgement_changed"
    BYTES_CHANGED = "bytes_changed"
    """It serves other bytes under the same item."""


class Mark(NamedTuple):
    """One reason to look twice at one row."""

    reason: TombstoneReason | ChangeReason
    trajectory_key: str
    eval_run_id: str
    since: datetime


class State(NamedTuple):
    """What the source said of one trajectory at one time."""

    judgement: Any
    payload_sha256: str
    recorded_at: datetime


def changes(then: State, later: Sequence[State]) -> dict[ChangeReason, datetime]:
    """In what the last state differs from the one a snapshot was made from, and since when anything did.

    Args:
        then: the state the snapshot was made from.
        later: the states after it, oldest first. One that has come back to what it was then is no change.
    """
    found: dict[ChangeReason, datetime] = {}
    told = {ChangeReason.JUDGEMENT_CHANGED: "judgement", ChangeReason.BYTES_CHANGED: "payload_sha256"}
    for reason, name in told.items():
        differing = [state for state in later if getattr(state, name) != getattr(then, name)]
        if differing and differing[-1] is later[-1]:
            found[reason] = differing[0].recorded_at
    return found


class ContactRow(NamedTuple):
    """A published row whose problem shares a leak cluster with an item of a benchmark."""

    benchmark: str
    policy: str
    since: datetime
    """When the benchmark was registered."""
    split: str
    trajectory_key: str
    is_direct: bool
    """The problem itself touches an item, not just one that it is clustered with."""


def marked(status: Mapping[str, Any], marks: Iterable[Mark], contacts: Iterable[ContactRow] = ()) -> dict[str, Any]:
    """The status with these marks and contacts with benchmarks, and no others; what else it tells stays."""
    by_reason: dict[str, list[Mark]] = defaultdict(list)
    for mark in marks:
        by_reason[mark.reason.value].append(mark)
    every = [mark for found in by_reason.values() for mark in found]
    by_benchmark: dict[tuple[str, str, datetime], list[ContactRow]] = defaultdict(list)
    for row in contacts:
        by_benchmark[row.benchmark, row.policy, row.since].append(row)
    state = status.get("state", PUBLISHED)
    if state in (PUBLISHED, MARKED):
        state = MARKED if every or by_benchmark else PUBLISHED
    return {
        **status,
        "state": state,
        "invalidated_runs": sorted({mark.eval_run_id for mark in every if mark.reason in _OF_RUNS}),
        "marks": {reason: _summary(found) for reason, found in sorted(by_reason.items())},
        "contaminated_by": [_contacts(*key, rows) for key, rows in sorted(by_benchmark.items())],
    }


def _contacts(benchmark: str, policy: str, since: datetime, rows: Sequence[ContactRow]) -> dict[str, Any]:
    by_split: dict[str, list[ContactRow]] = defaultdict(list)
    for row in rows:
        by_split[row.split].append(row)
    told = {
        split: {
            "rows": len(found),
            "direct": sum(row.is_direct for row in found),
            "trajectory_keys": sorted(row.trajectory_key for row in found),
        }
        for split, found in sorted(by_split.items())
    }
    since = since.astimezone(UTC)
    return {"benchmark": benchmark, "policy": policy, "since": since.isoformat(), "splits": told}


def _summary(marks: Sequence[Mark]) -> dict[str, Any]:
    keys = sorted({mark.trajectory_key for mark in marks})
    since = min(mark.since for mark in marks).astimezone(UTC)
    return {"rows": len(keys), "since": since.isoformat(), "trajectory_keys": keys}
