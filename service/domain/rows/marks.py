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


def marked(status: Mapping[str, Any], marks: Iterable[Mark]) -> dict[str, Any]:
    """The status with these marks and no others; what else it tells stays."""
    by_reason: dict[str, list[Mark]] = defaultdict(list)
    for mark in marks:
        by_reason[mark.reason.value].append(mark)
    every = [mark for found in by_reason.values() for mark in found]
    state = status.get("state", PUBLISHED)
    if state in (PUBLISHED, MARKED):
        state = MARKED if every else PUBLISHED
    return {
        **status,
        "state": state,
        "invalidated_runs": sorted({mark.eval_run_id for mark in every if mark.reason in _OF_RUNS}),
        "marks": {reason: _summary(found) for reason, found in sorted(by_reason.items())},
    }


def _summary(marks: Sequence[Mark]) -> dict[str, Any]:
    keys = sorted({mark.trajectory_key for mark in marks})
    since = min(mark.since for mark in marks).astimezone(UTC)
    return {"rows": len(keys), "since": since.isoformat(), "trajectory_keys": keys}
