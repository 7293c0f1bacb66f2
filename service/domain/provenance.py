"""Who issued each tool call, decided from evidence alone.

Not a gate: an unwelcome class is still only described here, `structure` decides. What an agent says about itself is
never evidence. Removing evidence only moves a call towards `unknown`, and the trust of what it contradicts down.
"""

from collections import deque
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from service.domain import trust
from service.domain.evidence import Evidence
from service.domain.replies import ReplyCalls, call_key, calls_in, mentions, plain_text
from service.domain.rules import EVIDENCE_1, EvidenceRule
from service.domain.trajectory import ExecutionKind, Step, ToolCall, Trajectory

TERMINATE = "terminate"


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


def attribute(trajectory: Trajectory, evidence: Evidence, limits: EvidenceRule = EVIDENCE_1) -> Provenance:
    """Attribute every call of a trajectory and grade the evidence.

    Content decides: a call that stands in a reply is the model's, whatever the times say. Times only tell which lost
    replies came too late to hold a call.
    """
    replies = [calls_in(inference) for inference in trajectory.inferences]
    held = _held_calls(trajectory, replies)
    backing = trust.search_backing(trajectory)
    contradictions = trust.contradictions(trajectory, evidence.judgement, backing, limits)
    grade = Trust.CONTRADICTED if contradictions else Trust.CLAIMED
    log = _Log(trajectory, evidence, replies, backing)
    prompts = _prompts(trajectory, held)
    calls = []
    terminated = False
    for step in trajectory.steps:
        for index, call in enumerate(step.calls):
            inference = held.get((step.index, index))
            issuer, rule = log.issuer(step, call, inference, terminated)
            calls.append(
                CallProvenance(step=step.index, call=index, issuer=issuer, trust=grade, rule=rule, inference=inference)
            )
        terminated = terminated or any(call.name == TERMINATE for call in step.calls)
    issuers = {call.issuer for call in calls}
    return Provenance(
        calls=tuple(calls),
        think_verbatim=_think_verbatim(trajectory),
        structural_class=_structural_class(trajectory, issuers, grade, trust.echoes(trajectory, prompts, limits)),
        trust=grade,
        contradictions=contradictions,
        unsupported=trust.missing(trajectory, evidence.judgement, backing, prompts, limits),
    )


class _Log:
    """What the proxy log can say about a call that no reply is known to hold."""

    def __init__(
        self,
        trajectory: Trajectory,
        evidence: Evidence,
        replies: Sequence[ReplyCalls],
        backing: trust.SearchBacking,
    ) -> None:
        reported = trust.reported_inferences(trajectory, evidence.judgement)
        self.gap: str | None = None
        if trajectory.kind is not ExecutionKind.LEGACY:
            self.gap = "no_inference_log"
        elif reported is None:
            self.gap = "count_unknown"
        elif reported != len(trajectory.inferences):
            self.gap = "count_differs"
        elif backing.unbacked:
            self.gap = "client_bypassed"
        callless = (line.content for line, reply in zip(trajectory.inferences, replies, strict=True) if not reply.calls)
        self.said = plain_text(" ".join(content for content in callless if content))
        self.unread = {name for reply in replies for name in reply.unread}
        self.first_dropped_ms = next((reply.timestamp_ms for reply in trajectory.inferences if reply.dropped), None)

    def issuer(self, step: Step, call: ToolCall, inference: int | None, terminated: bool) -> tuple[Issuer, str]:
        """Who issued a call, and the rule that says so."""
        if terminated:
            return Issuer.HARNESS, "after_terminate"
        if inference is not None:
            return Issuer.MODEL, "reply_holds_call"
        if self.gap is not None:
            return Issuer.UNKNOWN, self.gap
        dropped_ms, built_ms = self.first_dropped_ms, step.timestamp_ms
        if dropped_ms is not None and (built_ms is None or dropped_ms <= built_ms):
            return Issuer.UNKNOWN, "reply_dropped"
        if call.name in self.unread:
            return Issuer.UNKNOWN, "reply_unread"
        if mentions(self.said, call.name, call.arguments):
            return Issuer.UNKNOWN, "reply_mentions_call"
        return Issuer.HARNESS, "log_whole_no_reply"


def _held_calls(trajectory: Trajectory, replies: Sequence[ReplyCalls]) -> dict[tuple[int, int], int]:
    """Which reply holds which call: equal calls are paired in order, each call of a reply once."""
    emitted = [(inference, call) for inference, reply in enumerate(replies) for call in reply.calls]
    executed = [(step.index, index, call) for step in trajectory.steps for index, call in enumerate(step.calls)]
    if len(emitted) == len(executed) and all(
        held.name == call.name and held.arguments == call.arguments
        for (_, held), (_, _, call) in zip(emitted, executed, strict=True)
    ):
        # The usual case, told without spelling anything out: call by call the same, so pairing in order is this.
        return {(step, index): inference for (inference, _), (step, index, _) in zip(emitted, executed, strict=True)}
    holders: dict[str, deque[int]] = {}
    for inference, held in emitted:
        holders.setdefault(call_key(held.name, held.arguments), deque()).append(inference)
    pairs: dict[tuple[int, int], int] = {}
    for step, index, call in executed if holders else ():
        waiting = holders.get(call_key(call.name, call.arguments))
        if waiting:
            pairs[step, index] = waiting.popleft()
    return pairs


def _prompts(trajectory: Trajectory, held: dict[tuple[int, int], int]) -> list[trust.Prompt]:
    """Prompt sizes of the replies that issued calls, each with the results that came before its step."""
    prompts = []
    seen: set[int] = set()
    history_bytes = 0
    for step in trajectory.steps:
        for index in range(len(step.calls)):
            inference = held.get((step.index, index))
            if inference is None or inference in seen:
                continue
            seen.add(inference)
            tokens = trajectory.inferences[inference].prompt_tokens
            if tokens is not None:
                prompts.append(trust.Prompt(tokens, history_bytes))
        history_bytes += trust.shown_bytes(step)
    return prompts


def _think_verbatim(trajectory: Trajectory) -> tuple[bool | None, ...]:
    said = " ".join(reply.content for reply in trajectory.inferences if reply.content)
    if not said:
        return (None,) * len(trajectory.steps)
    found = tuple(step.think in said if step.think else None for step in trajectory.steps)
    if False not in found:
        return found
    said = plain_text(said)
    return tuple(plain_text(step.think) in said if step.think else None for step in trajectory.steps)


def _structural_class(trajectory: Trajectory, issuers: set[Issuer], grade: Trust, echoes: bool) -> StructuralClass:
    if trajectory.empty:
        return StructuralClass.NONE
    if grade is Trust.CONTRADICTED:
        return StructuralClass.FORGED
    if Issuer.MODEL in issuers:
        if echoes:
            return StructuralClass.ECHOED
        if Issuer.HARNESS in issuers:
            return StructuralClass.MIXED
        return StructuralClass.UNKNOWN if Issuer.UNKNOWN in issuers else StructuralClass.AGENTIC
    if issuers != {Issuer.HARNESS}:
        return StructuralClass.UNKNOWN
    return StructuralClass.SUB_TASK if trajectory.inferences else StructuralClass.SCRIPTED
