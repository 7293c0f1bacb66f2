"""The stages a message can be for, and what it carries: ids only. Knows no handler and no broker."""

from enum import StrEnum
from typing import NamedTuple


class Stage(StrEnum):
    """A stage of the pipeline; also the name of its queue."""

    INGEST = "ingest"
    FILTER = "filter"
    CLUSTER = "cluster"
    ASSIGN = "assign"
    SNAPSHOT = "snapshot"


class Message(NamedTuple):
    """A hint to look: which stage has work, and on which rows. Losing it loses time, never data."""

    stage: Stage
    ids: tuple[int, ...] = ()
    """Ledger ids for ingest, trajectory ids for filter; empty for the global stages."""
