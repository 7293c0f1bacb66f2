"""Who issued each tool call, decided from evidence alone.

Not a gate: an unwelcome class is still only described here, `structure` decides. What an agent says about itself is
never evidence. Removing evidence only ever moves a call towards `unknown`, and an uncontradicted trajectory's trust down.
"""

from enum import StrEnum
from typing import Any

import msgspec

from service.domain import canonical
from service.domain.trajectory import Judgement, Trajectory


class Issuer(StrEnum):
    """Who issued a call."""

    MODEL = "model"
    HARNESS = "harness"
    UNKNOWN = "unknown"


class Trust(StrEnum):
    """How far the evidence itself can be believed."""

    WITNESSED = "witnessed"
    """The validator's own proxy log agrees."""
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
    """Replies hold the calls, but the prompts were too small to decide them: the model repeated what code chose."""
    FORGED = "forged"
    """The evidence contradicts itself."""
    UNKNOWN = "unknown"
    NONE = "none"
    """No steps."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a trajectory beside its own payload."""

    judgement: Judgement = Judgement()
    agent_code: str | None = None
    """Released source of the agent version."""
    witness: tuple[dict[str, Any], ...] = ()
    """Lines of the validator's own proxy log for this run and item."""

    @property
    def digest(self) -> str:
        """Sha256 hex of the canonical form: a verdict holds for exactly this evidence."""
        return canonical.digest(self)


class CallProvenance(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Who issued one call, and why we say so."""

    step: int
    call: int
    issuer: Issuer
    trust: Trust
    rule: str
    """Name of the rule that decided."""
    inference: int | None = None
    """Index into the trajectory's inferences of the reply that holds the call."""


class Provenance(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The attribution of a whole trajectory."""

    calls: tuple[CallProvenance, ...]
    think_verbatim: tuple[bool | None, ...]
    """For each step: the think text stands in a reply. None: no think text, or no reply left to look in."""
    structural_class: StructuralClass
    trust: Trust
    contradictions: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    """Positive evidence that a kept row should have and this one lacks."""


def attribute(trajectory: Trajectory, evidence: Evidence) -> Provenance:
    """Attribute every call of a trajectory and grade the evidence."""
    raise NotImplementedError
