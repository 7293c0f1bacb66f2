"""Names of the gates and of the reasons they give. Asks no gate: `gates` does, in the order that a rule set states."""

from collections.abc import Mapping
from enum import StrEnum


class Gate(StrEnum):
    """One question asked of a trajectory. A rule set lists those it asks, in its order."""

    READABLE = "readable"
    """It can be read at all. Every rule set asks this first: without it no other question has a meaning."""
    INVALIDATED = "invalidated"
    """SN15 has not taken its own word on the item back."""
    HARNESS = "harness"
    """Episodes: the environment and the verifier worked."""
    PAIRING = "pairing"
    ANSWER_COUNT = "answer_count"
    ARGUMENTS = "arguments"
    ENDING = "ending"
    """The last step is no thought or search that nothing follows."""
    TERMINATE = "terminate"
    """The conversation was ended with a call of its own. No set that ships asks this."""
    EPISODE_END = "episode_end"
    """Episodes: it ended in a way that is a decision of the agent's."""
    SUCCESS = "success"
    REASONING = "reasoning"
    CLASS = "class"
    SUPPORT = "support"
    """Positive evidence stands behind the row."""
    LOOP = "loop"
    OVER_RECOMMEND = "over_recommend"
    GROUNDED = "grounded"
    FORMAT = "format"
    BUDGET = "budget"


class Reason(StrEnum):
    """Why a row was rejected."""

    EMPTY = "empty"
    MALFORMED = "malformed"
    OVERSIZED = "oversized"
    BARE_NAN = "bare_nan"
    INVALIDATED = "invalidated"
    """SN15 voided the item: it was skipped or cancelled, or the episode was an exploit or leaked."""
    HARNESS_FAULT = "harness_fault"
    """Envpack: the environment or the verifier failed, not the agent."""
    UNPAIRED_CALL = "unpaired_call"
    RECOMMEND_COUNT = "recommend_count"
    UNPARSEABLE_ARGUMENTS = "unparseable_arguments"
    TOKEN_BUDGET = "token_budget"
    THINK_THEN_STOP = "think_then_stop"
    NO_TERMINAL_ACTION = "no_terminal_action"
    UNJUDGED = "unjudged"
    """SN15 said neither success nor failure."""
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
    JUDGE_FAILED = "judge_failed"
    """The filter itself failed on it: a fault of ours, to be mended in a new rule set, not the agent's."""
    KEPT = "kept"
    """No gate failed."""


OF_OUTCOME = frozenset({Reason.NOT_SUCCESSFUL, Reason.REASONING_LOW, Reason.REASONING_UNJUDGED})
"""What SN15 thought of a row; a clean failure may fail these and no other gate."""

REASONS: Mapping[Gate, tuple[Reason, ...]] = {
    Gate.READABLE: (Reason.MALFORMED, Reason.OVERSIZED, Reason.EMPTY, Reason.BARE_NAN, Reason.JUDGE_FAILED),
    Gate.INVALIDATED: (Reason.INVALIDATED,),
    Gate.HARNESS: (Reason.HARNESS_FAULT,),
    Gate.PAIRING: (Reason.UNPAIRED_CALL,),
    Gate.ANSWER_COUNT: (Reason.RECOMMEND_COUNT,),
    Gate.ARGUMENTS: (Reason.UNPARSEABLE_ARGUMENTS,),
    Gate.ENDING: (Reason.THINK_THEN_STOP,),
    Gate.TERMINATE: (Reason.NO_TERMINAL_ACTION,),
    Gate.EPISODE_END: (Reason.NO_TERMINAL_ACTION,),
    Gate.SUCCESS: (Reason.UNJUDGED, Reason.NOT_SUCCESSFUL),
    Gate.REASONING: (Reason.REASONING_UNJUDGED, Reason.REASONING_LOW),
    Gate.CLASS: (
        *(Reason.CLASS_MIXED, Reason.CLASS_SUB_TASK, Reason.CLASS_SCRIPTED),
        *(Reason.CLASS_ECHOED, Reason.CLASS_UNKNOWN, Reason.CONTRADICTED),
    ),
    Gate.SUPPORT: (Reason.UNSUPPORTED,),
    Gate.LOOP: (Reason.LOOP,),
    Gate.OVER_RECOMMEND: (Reason.OVER_RECOMMEND,),
    Gate.GROUNDED: (Reason.UNGROUNDED_ID,),
    Gate.FORMAT: (Reason.DEFECTIVE_FORMAT,),
    Gate.BUDGET: (Reason.TOKEN_BUDGET,),
}
"""Every reason a gate may give; a row is rejected for the first failing gate's. `kept` is no gate's."""
