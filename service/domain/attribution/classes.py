"""The words of an attribution: who issues calls, how far evidence is believed, what kinds of agents there are.

Decides nothing: `provenance` does.
"""

from enum import StrEnum


class Issuer(StrEnum):
    """Who issued a call."""

    MODEL = "model"
    HARNESS = "harness"
    UNKNOWN = "unknown"


class Trust(StrEnum):
    """How far the evidence itself can be believed."""

    WITNESSED = "witnessed"
    """Others than the agent confirm it: the validator's proxy log, or a search that was asked again."""
    CLAIMED = "claimed"
    """Consistent, but all of it was written inside the agent's own process."""
    CONTRADICTED = "contradicted"


class StructuralClass(StrEnum):
    """What kind of agent made the trajectory."""

    AGENTIC = "agentic"
    """The model issued every call."""
    MIXED = "mixed"
    """Some calls are the model's, some the harness's."""
    SUB_TASK = "sub_task"
    """Code issued the calls; the model only classified, scored or narrated."""
    SCRIPTED = "scripted"
    """Code issued the calls and no model was asked."""
    ECHOED = "echoed"
    """Replies hold the calls and did not decide them: their prompts were too small, they came after the act, or the
    released code decides."""
    FORGED = "forged"
    """The evidence contradicts itself."""
    UNKNOWN = "unknown"
    NONE = "none"
    """No steps."""
