"""What a validator's own sandbox wrote about one item: the typed line. Reads no bytes and compares nothing.

An envelope is local: it is compared with what the source released, and never leaves otherwise.
"""

from enum import StrEnum
from typing import Any

import msgspec


class EnvelopeKind(StrEnum):
    """Who wrote the line."""

    SANDBOX = "sandbox"
    """The executor: a status, counts, and the dialogue that is uploaded."""
    EPISODE = "episode"
    """The episode runner: an outcome and a reward."""


class EnvelopeDefect(StrEnum):
    """What is wrong with a line, beside what `lenient.Defect` names."""

    CUT = "cut"
    """The file ended within it."""
    OVERSIZED = "oversized"
    """Longer than any line of the executor; only its beginning was read."""
    WRONG_TYPE = "wrong_type"
    """A field has the wrong type and was read as absent."""
    NO_PROBLEM = "no_problem"
    """It does not say which item it is about."""


class Envelope(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One line. None always means "was not said"."""

    kind: EnvelopeKind
    problem_id: str | None = None
    """Problem or task."""
    eval_run_id: str | None = None
    """Where the line names its run; the folder does otherwise."""
    status: str | None = None
    execution_seconds: float | None = None
    inference_total: int | None = None
    inference_failure_count: int | None = None
    dialogue: list[Any] | None = None
    outcome: str | None = None
    passed: bool | None = None
    reward: float | None = None
    defects: tuple[str, ...] = ()
    """`EnvelopeDefect` and `lenient.Defect` values, in the order they were noticed."""
    is_readable: bool = True
    """The whole line was read; a readable one can still have defects."""
    started_ms: int | None = None
    ended_ms: int | None = None
    """First and last time stamp within; None where there are none."""
