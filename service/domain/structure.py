"""The gates: one trajectory, its evidence and a rule set make one verdict, with a reason for every reject.

Not a selection: a verdict is about one trajectory alone and never depends on other rows. A reject is a value, never an
exception; the reason is the first failing gate's.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from service.domain.provenance import CallProvenance, Evidence, StructuralClass, Trust
from service.domain.rules import RuleSet
from service.domain.trajectory import Trajectory


class Outcome(StrEnum):
    """What becomes of a trajectory."""

    KEPT = "kept"
    KEPT_NEGATIVE = "kept_negative"
    """A clean failure, usable as an undesirable example."""
    REJECTED = "rejected"


class Reason(StrEnum):
    """Why, in the order the gates are asked."""

    EMPTY = "empty"
    MALFORMED = "malformed"
    BARE_NAN = "bare_nan"
    UNPAIRED_CALL = "unpaired_call"
    RECOMMEND_COUNT = "recommend_count"
    UNPARSEABLE_ARGUMENTS = "unparseable_arguments"
    TOKEN_BUDGET = "token_budget"
    THINK_THEN_STOP = "think_then_stop"
    NO_TERMINATE = "no_terminate"
    NOT_SUCCESSFUL = "not_successful"
    REASONING_LOW = "reasoning_low"
    REASONING_UNJUDGED = "reasoning_unjudged"
    CLASS_MIXED = "class_mixed"
    CLASS_SUB_TASK = "class_sub_task"
    CLASS_SCRIPTED = "class_scripted"
    CLASS_ECHOED = "class_echoed"
    CLASS_UNKNOWN = "class_unknown"
    CONTRADICTED = "contradicted"
    UNSUPPORTED = "unsupported"
    """Positive evidence is missing: counts, usage, logged searches or large enough prompts."""
    LOOP = "loop"
    OVER_RECOMMEND = "over_recommend"
    UNGROUNDED_ID = "ungrounded_id"
    DEFECTIVE_FORMAT = "defective_format"
    HARNESS_FAULT = "harness_fault"
    """Envpack: the environment or the verifier failed, not the agent."""
    KEPT = "kept"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided about one trajectory, and on what."""

    outcome: Outcome
    reason: Reason
    structural_class: StructuralClass
    trust: Trust
    calls: tuple[CallProvenance, ...]
    answer: tuple[str, ...]
    signals: dict[str, Any]
    """JSON-able. Always: `reasoning_unjudged`, `config`, `failed_gates`, `contradictions`, `unsupported`."""


def judge(
    trajectory: Trajectory, evidence: Evidence, rules: RuleSet, count_tokens: Callable[[str], int]
) -> Verdict:
    """Judge one trajectory under a rule set."""
    raise NotImplementedError
