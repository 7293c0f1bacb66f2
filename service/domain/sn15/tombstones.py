"""What SN15 takes back after it was harvested, or what is taken down here, and why. Reads no listing, stores nothing.

A tombstone is about a run, an agent version or one item. It takes rows out of new snapshots and removes nothing.
"""

from enum import StrEnum


class Subject(StrEnum):
    """What a tombstone is about."""

    RUN = "run"
    AGENT_VERSION = "agent_version"
    ITEM = "item"
    """One trajectory, named by its number in the store."""


class TombstoneReason(StrEnum):
    """Why a subject no longer counts."""

    RUN_INVALIDATED = "run_invalidated"
    """SN15 took the run back."""
    RUN_EXCLUDED = "run_excluded"
    """SN15 no longer includes the run in what it reports of the agent."""
    RUN_UNSUCCESSFUL = "run_unsuccessful"
    """The run was a success when it was listed first, and is none now."""
    AGENT_DISCARDED = "agent_discarded"
    """SN15 threw the agent version out."""
    WITHDRAWN = "withdrawn"
    """The source has no such object any more; the bytes it gave before stay."""
    REDACTED = "redacted"
    """Somebody with a right to it has had it taken down. The only reason that no listing gives and none takes back."""


RACE_CANCELLED = "race_cancelled"
"""Why items of a race that was called off are not asked for. No tombstone: what was released before stays."""

NOT_ASKED_FOR = frozenset({*(reason.value for reason in TombstoneReason), RACE_CANCELLED}) - {TombstoneReason.WITHDRAWN}
"""Reasons for which an item of the ledger rests, and after which it comes back."""


def of_run(*, is_invalidated: bool, is_included: bool, is_successful: bool) -> TombstoneReason | None:
    """Why a run that was harvested does not count; None when it does."""
    if is_invalidated:
        return TombstoneReason.RUN_INVALIDATED
    if not is_included:
        return TombstoneReason.RUN_EXCLUDED
    return None if is_successful else TombstoneReason.RUN_UNSUCCESSFUL
