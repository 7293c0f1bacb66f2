"""One trajectory, its evidence and a rule set make one verdict, with a reason for every reject.

Not a selection: a verdict is about one trajectory alone and never depends on other rows. A reject is a value, never an
exception; the reason is the first failing gate's.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from service.domain.attribution.evidence import Evidence
from service.domain.attribution.lifting import lifting
from service.domain.attribution.provenance import CallProvenance, Issuer, StructuralClass, Trust, attribute
from service.domain.filter.case import Case
from service.domain.filter.gates import OF_OUTCOME, Reason, failed
from service.domain.filter.rules import RuleSet
from service.domain.trajectory import Trajectory

__all__ = ["Outcome", "Reason", "Verdict", "judge", "unjudgeable"]


_ISSUERS = [(issuer.value, issuer) for issuer in Issuer]


class Outcome(StrEnum):
    """What becomes of a trajectory."""

    KEPT = "kept"
    KEPT_NEGATIVE = "kept_negative"
    """A clean failure, usable as an undesirable example: the model's own, sound in all but its outcome."""
    REJECTED = "rejected"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided about one trajectory, and on what."""

    outcome: Outcome
    reason: Reason
    """The first failing gate's; a clean failure's is `not_successful`."""
    structural_class: StructuralClass
    trust: Trust
    calls: tuple[CallProvenance, ...]
    answer: tuple[str, ...]
    signals: dict[str, Any]
    """JSON-able figures a person checks a verdict by; see `_signals`."""


def judge(trajectory: Trajectory, evidence: Evidence, rules: RuleSet, count_tokens: Callable[[str], int]) -> Verdict:
    """Judge one trajectory under a rule set.

    Args:
        trajectory: what happened.
        evidence: what is known beside the payload.
        rules: the rule set; its `token_method` names what `count_tokens` must be.
        count_tokens: exact tokens of a rendered chat. Called only for chats that may be over the budget.
    """
    provenance = attribute(trajectory, evidence, rules.evidence)
    case = Case(trajectory, evidence, provenance, rules, count_tokens)
    reasons = failed(case)
    outcome, reason = _outcome(reasons, rules)
    return Verdict(
        outcome=outcome,
        reason=reason,
        structural_class=provenance.structural_class,
        trust=provenance.trust,
        calls=provenance.calls,
        answer=case.answer,
        signals=_signals(case, reasons),
    )


def unjudgeable(fault: str) -> Verdict:
    """The verdict on a trajectory that `judge` could not take.

    Args:
        fault: name of what went wrong, never text out of the payload.
    """
    return Verdict(
        outcome=Outcome.REJECTED,
        reason=Reason.JUDGE_FAILED,
        structural_class=StructuralClass.UNKNOWN,
        trust=Trust.CLAIMED,
        calls=(),
        answer=(),
        signals={"fault": fault},
    )


def _outcome(reasons: tuple[Reason, ...], rules: RuleSet) -> tuple[Outcome, Reason]:
    if not reasons:
        return Outcome.KEPT, Reason.KEPT
    if OF_OUTCOME.issuperset(reasons) and Reason.NOT_SUCCESSFUL in reasons and rules.keep_negatives:
        return Outcome.KEPT_NEGATIVE, Reason.NOT_SUCCESSFUL
    return Outcome.REJECTED, reasons[0]


LIFTABLE = frozenset({StructuralClass.SUB_TASK, StructuralClass.MIXED})
"""Classes in which code may have carried out what a model had said."""


def _lift(case: Case) -> dict[str, Any]:
    """How much of what code did a reply had stated, and which calls; nothing of a row that can hold none."""
    if case.provenance.structural_class not in LIFTABLE:
        return {}
    found = lifting(case.trajectory, case.provenance.calls)
    calls = [[call.step, call.call, sorted({match.inference for match in call.matches})] for call in found.calls]
    return {"lift": found.extent.value, "lifted": calls}


def _signals(case: Case, reasons: tuple[Reason, ...]) -> dict[str, Any]:
    """Figures by name; `lifted` lists step, call and the replies that had stated its values."""
    trajectory, provenance = case.trajectory, case.provenance
    issuers = [call.issuer for call in provenance.calls]
    thinks = provenance.think_verbatim
    return {
        "failed_gates": [str(reason) for reason in reasons],
        "defects": [str(defect) for defect in trajectory.defects],
        "contradictions": [str(name) for name in provenance.contradictions],
        "unsupported": [str(name) for name in provenance.unsupported],
        "reasoning_unjudged": case.evidence.judgement.reasoning_score is None,
        "steps": len(trajectory.steps),
        "calls": {name: issuers.count(issuer) for name, issuer in _ISSUERS},
        "inferences": len(trajectory.inferences),
        "dropped_replies": sum([reply.dropped for reply in trajectory.inferences]),
        "searches": len(trajectory.searches),
        "think_verbatim": [thinks.count(True), thinks.count(False)],
        **_lift(case),
    }
