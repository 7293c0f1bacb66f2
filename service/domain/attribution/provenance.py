"""Who issued each tool call, decided from evidence alone.

Not a gate: an unwelcome class is still only described here, `structure` decides. What an agent says about itself is
never evidence. Removing evidence only moves a call towards `unknown`, and the trust of what it contradicts down.
"""

from collections.abc import Sequence

import msgspec

from service.domain.attribution import trust
from service.domain.attribution.classes import Issuer, StructuralClass, Trust
from service.domain.attribution.evidence import Evidence
from service.domain.attribution.issuers import Log, issuer_of
from service.domain.attribution.pairing import Clock, Executed, Held, Match, executed_calls, pair
from service.domain.attribution.replies import calls_in
from service.domain.attribution.testimony import CodeRule, Testimony, code_rule, testimony
from service.domain.attribution.thoughts import ThinkSource, think_sources
from service.domain.filter.rules import EVIDENCE_1, EvidenceRule
from service.domain.tools import TERMINATE
from service.domain.trajectory import ExecutionKind, Trajectory

__all__ = ["TERMINATE", "CallProvenance", "Issuer", "Provenance", "StructuralClass", "Trust", "attribute"]


class CallProvenance(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Who issued one call, and why we say so. What is None is not written down."""

    step: int
    call: int
    issuer: Issuer
    trust: Trust
    rule: str
    """Name of the rule that decided."""
    inference: int | None = None
    """Index into the trajectory's inferences of the reply that holds the call."""
    match: Match | None = None
    """How that reply's call equals this one."""
    search: int | None = None
    """Index into the trajectory's searches of the one that asked what this call asks."""
    replies_before: int | None = None
    """Where no reply holds the call: how many replies, the first ones of the log, came before its step was built."""


class Provenance(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The attribution of a whole trajectory."""

    calls: tuple[CallProvenance, ...]
    thinks: tuple[ThinkSource | None, ...]
    """For each step where its think text comes from; None where it has none."""
    structural_class: StructuralClass
    trust: Trust
    contradictions: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    """Positive evidence that a kept row should have and this one lacks."""

    @property
    def think_verbatim(self) -> tuple[bool | None, ...]:
        """For each step whether a reply says its think text. None: it has none, or that is not known."""
        return tuple([None if source is None else source.is_said for source in self.thinks])


def attribute(trajectory: Trajectory, evidence: Evidence, limits: EvidenceRule = EVIDENCE_1) -> Provenance:
    """Attribute every call of a trajectory and grade the evidence.

    Content decides: a call that stands in a reply is the model's, whatever the times say. Times only tell which lost
    replies came too late to hold a call.
    """
    executed = executed_calls(trajectory)
    replies = [calls_in(inference) for inference in trajectory.inferences]
    clock = Clock(trajectory)
    held = pair(executed, replies, clock)
    backing = trust.search_backing(trajectory, [one.call for one in executed])
    others = testimony(trajectory, evidence)
    contradictions = (*trust.contradictions(trajectory, evidence.judgement, backing, limits), *others.contradictions)
    code = code_rule(evidence.code)
    log = Log(trajectory, evidence, replies, backing, clock)
    grade = Trust.CONTRADICTED if contradictions else None if others.proxy_read else Trust.CLAIMED
    calls = []
    ended_at: int | None = None
    for place, (one, holder) in enumerate(zip(executed, held, strict=True)):
        issuer, rule = issuer_of(one, holder, ended_at, log, code, trajectory.kind)
        holder = holder if issuer is Issuer.MODEL else None  # what came after the end is no reply's, though one says it
        if one.call.name == TERMINATE and ended_at is None:
            ended_at = one.step.index
        calls.append(
            CallProvenance(
                step=one.step.index,
                call=one.place,
                issuer=issuer,
                trust=grade or _grade(place, issuer, holder, trajectory, backing, others),
                rule=rule,
                inference=holder.inference if holder else None,
                match=holder.match if holder else None,
                search=backing.searches.get(place),
                replies_before=None if holder else clock.replies_before(one.step),
            )
        )
    prompts = _prompts(trajectory, executed, held)
    echoes = trust.echoes(trajectory, prompts, limits) or _told_after(trajectory, held, backing) or code.calls_tools
    return Provenance(
        calls=tuple(calls),
        thinks=think_sources(trajectory, log.may_lack_reply),
        structural_class=_structural_class(trajectory, calls, bool(contradictions), echoes, code),
        trust=grade or _whole_grade(calls),
        contradictions=contradictions,
        unsupported=trust.missing(trajectory, evidence.judgement, backing, prompts, limits),
    )


def _grade(
    place: int,
    issuer: Issuer,
    holder: Held | None,
    trajectory: Trajectory,
    backing: trust.SearchBacking,
    others: Testimony,
) -> Trust:
    """Witnessed: the proxy served the reply that holds the call, and its search or the search's result is confirmed.

    That no reply holds a call is witnessed where the proxy served every reply that the log holds.
    """
    if not others.proxy_read or issuer is Issuer.UNKNOWN:
        return Trust.CLAIMED
    if issuer is Issuer.MODEL:
        served = holder is not None and holder.inference in others.replies_served
    else:
        served = all(
            reply.failed or index in others.replies_served for index, reply in enumerate(trajectory.inferences)
        )
    if served and place in backing.searches:
        served = backing.searches[place] in others.searches_served or place in others.results_replayed
    return Trust.WITNESSED if served else Trust.CLAIMED


def _whole_grade(calls: Sequence[CallProvenance]) -> Trust:
    witnessed = bool(calls) and all(call.trust is Trust.WITNESSED for call in calls)
    return Trust.WITNESSED if witnessed else Trust.CLAIMED


def _prompts(trajectory: Trajectory, executed: Sequence[Executed], held: Sequence[Held | None]) -> list[trust.Prompt]:
    """Prompt sizes of the replies that issued calls, each with the results that came before its step."""
    prompts = []
    seen: set[int] = set()
    sized = history_bytes = 0
    for place, holder in enumerate(held):
        if holder is None or holder.inference in seen:
            continue
        seen.add(holder.inference)
        tokens = trajectory.inferences[holder.inference].prompt_tokens
        if tokens is None:
            continue
        before = place - executed[place].place
        history_bytes += sum([trust.shown_bytes(one.call) for one in executed[sized:before]])
        sized = max(sized, before)
        prompts.append(trust.Prompt(tokens, history_bytes))
    return prompts


def _told_after(trajectory: Trajectory, held: Sequence[Held | None], backing: trust.SearchBacking) -> bool:
    """Every call that a reply holds and a search backs had been searched for before that reply was asked for."""
    is_after = False
    for place, index in backing.searches.items():
        holder = held[place]
        if holder is None or index is None:
            continue
        reply = trajectory.inferences[holder.inference]
        if trajectory.searches[index].timestamp_ms >= reply.timestamp_ms - reply.duration_ms:
            return False
        is_after = True
    return is_after


def _structural_class(
    trajectory: Trajectory, calls: Sequence[CallProvenance], contradicted: bool, echoes: bool, code: CodeRule
) -> StructuralClass:
    if trajectory.empty:
        return StructuralClass.NONE
    if contradicted:
        return StructuralClass.FORGED
    issuers = {call.issuer for call in calls}
    if Issuer.MODEL in issuers:
        if echoes:
            return StructuralClass.ECHOED
        if Issuer.HARNESS in issuers:
            return StructuralClass.MIXED
        return StructuralClass.UNKNOWN if Issuer.UNKNOWN in issuers else StructuralClass.AGENTIC
    if issuers != {Issuer.HARNESS}:
        return StructuralClass.UNKNOWN
    asks_model = trajectory.inferences or (trajectory.kind is not ExecutionKind.LEGACY and code.asks_model)
    return StructuralClass.SUB_TASK if asks_model else StructuralClass.SCRIPTED
