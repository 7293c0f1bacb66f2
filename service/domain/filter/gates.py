"""The gates of each kind of trajectory: each passes a case or names its reason. The rule set says which are asked when.

Not a verdict: what a failed gate means for the row is `structure`'s business. A gate reads one case and nothing else:
no other row, and no tombstone, which takes a row out of snapshots and leaves its verdict alone.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache

from service.domain.attribution.provenance import StructuralClass
from service.domain.attribution.replies import call_key
from service.domain.filter.case import Case
from service.domain.filter.reasons import OF_OUTCOME, Gate, Reason
from service.domain.tools import TERMINATE, TOOLS, listed_ids, product_ids, stands_in
from service.domain.trajectory import Defect, ExecutionKind, ToolCall

__all__ = ["ASKED", "OF_OUTCOME", "Gate", "Reason", "asked", "failed"]

Question = Callable[[Case], Reason | None]

UNREADABLE = frozenset({Defect.MALFORMED_JSON, Defect.NOT_A_LIST, Defect.NOT_AN_OBJECT, Defect.TOO_DEEP})

CLASS_REASON: Mapping[StructuralClass, Reason] = {
    StructuralClass.MIXED: Reason.CLASS_MIXED,
    StructuralClass.SUB_TASK: Reason.CLASS_SUB_TASK,
    StructuralClass.SCRIPTED: Reason.CLASS_SCRIPTED,
    StructuralClass.ECHOED: Reason.CLASS_ECHOED,
    StructuralClass.FORGED: Reason.CONTRADICTED,
    StructuralClass.UNKNOWN: Reason.CLASS_UNKNOWN,
    StructuralClass.NONE: Reason.EMPTY,
}


def failed(case: Case) -> tuple[Reason, ...]:
    """Reasons of failing gates, in the order of the rule set. A row that cannot be read fails only for that.

    The token budget is asked only while no gate before it but those of the outcome has failed: an exact count costs
    more than all the rest.
    """
    unreadable = _unreadable(case)
    if unreadable is not None:
        return (unreadable,)
    reasons: list[Reason] = []
    for question in _questions(case.rules.gates, case.trajectory.kind):
        if question is _budget and not OF_OUTCOME.issuperset(reasons):
            continue
        reason = question(case)
        if reason is not None:
            reasons.append(reason)
    return tuple(reasons)


def asked(gates: tuple[Gate, ...], kind: ExecutionKind) -> tuple[Gate, ...]:
    """Those of a rule set's gates that ask something of a kind of trajectory, in order."""
    return tuple(gate for gate in gates if gate is Gate.READABLE or gate in ASKED[kind])


@lru_cache(maxsize=64)
def _questions(gates: tuple[Gate, ...], kind: ExecutionKind) -> tuple[Question, ...]:
    return tuple(ASKED[kind][gate] for gate in gates if gate in ASKED[kind])


def _unreadable(case: Case) -> Reason | None:
    defects = case.trajectory.defects
    if defects:
        if not UNREADABLE.isdisjoint(defects):
            return Reason.MALFORMED
        if Defect.OVERSIZED in defects:
            return Reason.OVERSIZED
    if case.trajectory.empty:
        return Reason.EMPTY
    return Reason.BARE_NAN if Defect.BARE_NAN in defects else None


def _invalidated(case: Case) -> Reason | None:
    """What SN15 says of this very item. A run or an agent that it takes back is a tombstone, and selection's matter."""
    judgement, feedback = case.evidence.judgement, case.trajectory.feedback
    outcome = judgement.outcome or (feedback.outcome if feedback else None)
    void = judgement.status in case.rules.void_statuses or outcome in case.rules.void_outcomes
    return Reason.INVALIDATED if void else None


def _harness_fault(case: Case) -> Reason | None:
    judgement, feedback = case.evidence.judgement, case.trajectory.feedback
    told = {judgement.outcome, judgement.failure}
    if feedback is not None:
        told |= {feedback.outcome, feedback.failure_category, feedback.termination_code}
    return None if told.isdisjoint(case.rules.episode_faults) else Reason.HARNESS_FAULT


def _pairing(case: Case) -> Reason | None:
    for call in case.calls:
        if call.result is None and not call.error_code and not call.done:
            return Reason.UNPAIRED_CALL
    return None


def _pairing_before_end(case: Case) -> Reason | None:
    """As `_pairing`, but training rows often end with the call that ends them, whose answer nobody waited for."""
    ending = TOOLS[case.trajectory.kind].answer | {TERMINATE}
    *before, last = case.trajectory.steps
    answered = all(call.result is not None for step in before for call in step.calls)
    ends = all(call.result is not None or call.name in ending for call in last.calls)
    return None if answered and ends else Reason.UNPAIRED_CALL


def _recommend_count(case: Case) -> Reason | None:
    return None if len(case.answers) == 1 else Reason.RECOMMEND_COUNT


def _order_count(case: Case) -> Reason | None:
    """An episode may be declined without an order; `_ended` asks whether it was."""
    return None if len(case.answers) <= 1 else Reason.RECOMMEND_COUNT


def _arguments(case: Case) -> Reason | None:
    readable = all(product_ids(call.arguments) or _abstains(call) for call in case.answers)
    return None if readable else Reason.UNPARSEABLE_ARGUMENTS


def _abstains(call: ToolCall) -> bool:
    return isinstance(call.arguments, dict) and call.arguments.get("abstain") is True


def _budget(case: Case) -> Reason | None:
    return Reason.TOKEN_BUDGET if (case.tokens or 0) > case.rules.token_budget else None


def _think_then_stop(case: Case) -> Reason | None:
    ending = TOOLS[case.trajectory.kind].answer
    for call in case.trajectory.steps[-1].calls:
        if call.name in ending or call.name == TERMINATE:
            return None
    return Reason.THINK_THEN_STOP


def _stops_short(case: Case) -> Reason | None:
    """As `_think_then_stop`, but chat rows often end with words to the user after the call that ends them."""
    last = case.trajectory.steps[-1]
    return None if last.response and not last.calls and case.answers else _think_then_stop(case)


def _terminated(case: Case) -> Reason | None:
    return None if any(call.name == TERMINATE for call in case.calls) else Reason.NO_TERMINAL_ACTION


def _ended(case: Case) -> Reason | None:
    feedback = case.trajectory.feedback
    ending = feedback.termination_code if feedback else None
    return None if ending in case.rules.episode_endings else Reason.NO_TERMINAL_ACTION


def _success(case: Case) -> Reason | None:
    judgement = case.evidence.judgement
    is_open = judgement.success is None and judgement.status in case.rules.open_statuses
    if is_open or case.success is None:
        return Reason.UNJUDGED
    return None if case.success else Reason.NOT_SUCCESSFUL


def _reasoning(case: Case) -> Reason | None:
    score = case.evidence.judgement.reasoning_score
    if score is None:
        return None if case.rules.unjudged_reasoning else Reason.REASONING_UNJUDGED
    return None if score >= case.rules.reasoning_floor else Reason.REASONING_LOW


def _class(case: Case) -> Reason | None:
    return CLASS_REASON.get(case.provenance.structural_class)


def _class_where_known(case: Case) -> Reason | None:
    """Of formats without a log of replies: nobody knows who issued the calls unless released code or a witness tell."""
    known = case.provenance.structural_class
    return None if known is StructuralClass.UNKNOWN else CLASS_REASON.get(known)


def _support(case: Case) -> Reason | None:
    return Reason.UNSUPPORTED if case.provenance.unsupported else None


def _loop(case: Case) -> Reason | None:
    limit = case.rules.loop_calls
    if len(case.calls) < limit:
        return None
    often = {name for name, count in Counter([call.name for call in case.calls]).items() if count >= limit}
    keys = Counter([call_key(call.name, call.arguments) for call in case.calls if call.name in often])
    return Reason.LOOP if keys and max(keys.values()) >= limit else None


def _over_recommend(case: Case) -> Reason | None:
    named = len(case.answer)
    if named > case.rules.recommended_ids:
        return Reason.OVER_RECOMMEND
    if named <= case.rules.single_ids or not case.trajectory.query:
        return None
    several = _any_word(case.rules.several_words).search(case.trajectory.query)
    return None if several else Reason.OVER_RECOMMEND


def _far_over_recommend(case: Case) -> Reason | None:
    """As `_over_recommend`, of formats whose queries follow no benchmark: how many are asked for is not known."""
    return Reason.OVER_RECOMMEND if len(case.answer) > case.rules.recommended_ids else None


@lru_cache(maxsize=16)
def _any_word(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})s?\b", re.IGNORECASE)


def _grounded(case: Case) -> Reason | None:
    """Ids that an answer or a view names must stand in the query or in a result that came before."""
    tools = TOOLS[case.trajectory.kind]
    listed: set[str] = set()
    for place, call in enumerate(case.calls):
        if call.name in tools.view or call.name in tools.answer:
            for name in product_ids(call.arguments):
                # Nearly every id is the `product_id` of a listing; only for another is any text searched.
                if name not in listed and not _shown_before(case, place, name):
                    return Reason.UNGROUNDED_ID
        result = call.result
        if type(result) is list:
            listed.update(listed_ids(result) or ())
        elif type(result) is dict:
            for items in result.values():
                listed.update(listed_ids(items) or ())
    return None


def _shown_before(case: Case, place: int, name: str) -> bool:
    word = name.encode(errors="replace")
    query = (case.trajectory.query or "").encode(errors="replace")
    return stands_in(word, query) or any(stands_in(word, text) for text in case.results[:place])


def _format(case: Case) -> Reason | None:
    if case.trajectory.defects:
        return Reason.DEFECTIVE_FORMAT
    for step in case.trajectory.steps:
        if not step.calls and not step.response:
            return Reason.DEFECTIVE_FORMAT
        for call in step.calls:
            if not call.name or not isinstance(call.arguments, dict):
                return Reason.DEFECTIVE_FORMAT
    return None


EVERY_KIND: Mapping[Gate, Question] = {
    Gate.INVALIDATED: _invalidated,
    Gate.PAIRING: _pairing,
    Gate.ANSWER_COUNT: _recommend_count,
    Gate.ARGUMENTS: _arguments,
    Gate.SUCCESS: _success,
    Gate.CLASS: _class_where_known,
    Gate.LOOP: _loop,
    Gate.GROUNDED: _grounded,
    Gate.FORMAT: _format,
    Gate.BUDGET: _budget,
}
LEGACY: Mapping[Gate, Question] = {
    **EVERY_KIND,
    Gate.ENDING: _think_then_stop,
    Gate.TERMINATE: _terminated,
    Gate.REASONING: _reasoning,
    Gate.CLASS: _class,
    Gate.SUPPORT: _support,
    Gate.OVER_RECOMMEND: _over_recommend,
}
ENVPACK: Mapping[Gate, Question] = {
    **EVERY_KIND,
    Gate.HARNESS: _harness_fault,
    Gate.ANSWER_COUNT: _order_count,
    Gate.EPISODE_END: _ended,
}
"""Nothing of reasoning or support: SN15 publishes nothing of an episode that these could read."""
IMPORTED: Mapping[Gate, Question] = {
    **EVERY_KIND,
    Gate.PAIRING: _pairing_before_end,
    Gate.ENDING: _stops_short,
    Gate.OVER_RECOMMEND: _far_over_recommend,
}
"""Of formats that hold no evidence and no code for how a trajectory ended."""

ASKED: Mapping[ExecutionKind, Mapping[Gate, Question]] = {
    ExecutionKind.LEGACY: LEGACY,
    ExecutionKind.ENVPACK: ENVPACK,
    ExecutionKind.ATIF: IMPORTED,
    ExecutionKind.MESSAGES: IMPORTED,
}
"""What each gate asks of each kind; a gate that is not there asks nothing of that kind."""
