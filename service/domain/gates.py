"""The gates of each execution kind, in the order they are asked: each passes a case or names its reason.

Not a verdict: what a failed gate means for the row is `structure`'s business. A gate reads one case and nothing else.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from service.domain.case import Case, spelled
from service.domain.provenance import TERMINATE, StructuralClass
from service.domain.replies import call_key
from service.domain.trajectory import TOOLS, Defect, ExecutionKind, ToolCall, product_ids


class Reason(StrEnum):
    """Why a row was rejected."""

    EMPTY = "empty"
    MALFORMED = "malformed"
    OVERSIZED = "oversized"
    BARE_NAN = "bare_nan"
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

CLASS_REASON = {
    StructuralClass.MIXED: Reason.CLASS_MIXED,
    StructuralClass.SUB_TASK: Reason.CLASS_SUB_TASK,
    StructuralClass.SCRIPTED: Reason.CLASS_SCRIPTED,
    StructuralClass.ECHOED: Reason.CLASS_ECHOED,
    StructuralClass.FORGED: Reason.CONTRADICTED,
    StructuralClass.UNKNOWN: Reason.CLASS_UNKNOWN,
    StructuralClass.NONE: Reason.EMPTY,
}


Gate = Callable[[Case], Reason | None]


def failed(case: Case) -> tuple[Reason, ...]:
    """Reasons of failing gates, in the order of the gates. A row that cannot be read fails only for that.

    The token budget is asked last, of rows that no other gate but their outcome's rejects: an exact count costs more
    than all the rest.
    """
    unreadable = _unreadable(case)
    if unreadable is not None:
        return (unreadable,)
    reasons = tuple(reason for gate in GATES[case.trajectory.kind] if (reason := gate(case)) is not None)
    if OF_OUTCOME.issuperset(reasons) and _over_budget(case):
        return (*reasons, Reason.TOKEN_BUDGET)
    return reasons


def _unreadable(case: Case) -> Reason | None:
    defects = case.trajectory.defects
    if {Defect.MALFORMED_JSON, Defect.NOT_A_LIST, Defect.NOT_AN_OBJECT, Defect.TOO_DEEP}.intersection(defects):
        return Reason.MALFORMED
    if Defect.OVERSIZED in defects:
        return Reason.OVERSIZED
    if case.trajectory.empty:
        return Reason.EMPTY
    return Reason.BARE_NAN if Defect.BARE_NAN in defects else None


def _harness_fault(case: Case) -> Reason | None:
    feedback = case.trajectory.feedback
    outcome = case.evidence.judgement.outcome or (feedback.outcome if feedback else None)
    return Reason.HARNESS_FAULT if outcome in case.rules.episode_faults else None


def _pairing(case: Case) -> Reason | None:
    answered = all(call.result is not None or call.error_code or call.done for call in case.calls)
    return None if answered else Reason.UNPAIRED_CALL


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
    return None if len(case.answers) <= 1 else Reason.RECOMMEND_COUNT


def _arguments(case: Case) -> Reason | None:
    readable = all(product_ids(call.arguments) or _abstains(call) for call in case.answers)
    return None if readable else Reason.UNPARSEABLE_ARGUMENTS


def _abstains(call: ToolCall) -> bool:
    return isinstance(call.arguments, dict) and call.arguments.get("abstain") is True


def _over_budget(case: Case) -> bool:
    return (case.tokens or 0) > case.rules.token_budget


def _think_then_stop(case: Case) -> Reason | None:
    last = {call.name for call in case.trajectory.steps[-1].calls}
    return None if last & (TOOLS[case.trajectory.kind].answer | {TERMINATE}) else Reason.THINK_THEN_STOP


def _terminated(case: Case) -> Reason | None:
    if not case.rules.require_terminate or any(call.name == TERMINATE for call in case.calls):
        return None
    return Reason.NO_TERMINAL_ACTION


def _ended(case: Case) -> Reason | None:
    feedback = case.trajectory.feedback
    ending = feedback.termination_code if feedback else None
    return None if ending in case.rules.episode_endings else Reason.NO_TERMINAL_ACTION


def _success(case: Case) -> Reason | None:
    if case.success is None:
        return Reason.UNJUDGED
    return None if case.success else Reason.NOT_SUCCESSFUL


def _reasoning(case: Case) -> Reason | None:
    score = case.evidence.judgement.reasoning_score
    if score is None:
        return None if case.rules.unjudged_reasoning else Reason.REASONING_UNJUDGED
    return None if score >= case.rules.reasoning_floor else Reason.REASONING_LOW


def _class(case: Case) -> Reason | None:
    return CLASS_REASON.get(case.provenance.structural_class)


def _evidence(case: Case) -> Reason | None:
    return Reason.UNSUPPORTED if case.rules.require_evidence and case.provenance.unsupported else None


def _loop(case: Case) -> Reason | None:
    limit = case.rules.loop_calls
    if limit is None:
        return None
    often = {name for name, count in Counter(call.name for call in case.calls).items() if count >= limit}
    keys = Counter(call_key(call.name, call.arguments) for call in case.calls if call.name in often)
    return Reason.LOOP if keys and max(keys.values()) >= limit else None


def _over_recommend(case: Case) -> Reason | None:
    most = case.rules.recommended_ids
    return Reason.OVER_RECOMMEND if most is not None and len(case.trajectory.answer) > most else None


def _grounded(case: Case) -> Reason | None:
    """Ids that an answer or a view names must stand in the query or in a result that came before."""
    if not case.rules.require_grounded_ids:
        return None
    tools = TOOLS[case.trajectory.kind]
    naming = tools.view | tools.answer
    seen = bytearray(spelled(case.trajectory.query))
    for call, result in zip(case.calls, case.results, strict=True):
        named = product_ids(call.arguments) if call.name in naming else ()
        if not all(_shown(name, seen) for name in named):
            return Reason.UNGROUNDED_ID
        seen += result
    return None


def _format(case: Case) -> Reason | None:
    if not case.rules.require_format:
        return None
    clean = not case.trajectory.defects and all(call.name and isinstance(call.arguments, dict) for call in case.calls)
    spoken = all(step.calls or step.response for step in case.trajectory.steps)
    return None if clean and spoken else Reason.DEFECTIVE_FORMAT


def _shown(name: str, seen: bytearray) -> bool:
    """Whether an id stands in JSON text as a whole string or number, or as a word of the query."""
    word = name.encode(errors="replace")
    at = seen.find(word)
    while at >= 0:
        before, after = seen[at - 1 : at], seen[at + len(word) : at + len(word) + 1]
        if not before.isalnum() and not after.isalnum():
            return True
        at = seen.find(word, at + len(word))
    return False


LEGACY_GATES: Sequence[Gate] = (
    _pairing,
    _recommend_count,
    _arguments,
    _think_then_stop,
    _terminated,
    _success,
    _reasoning,
    _class,
    _evidence,
    _loop,
    _over_recommend,
    _grounded,
    _format,
)

ENVPACK_GATES: Sequence[Gate] = (
    _harness_fault,
    _pairing,
    _order_count,
    _arguments,
    _ended,
    _success,
    _loop,
    _grounded,
    _format,
)
"""No reasoning, class or evidence gate: SN15 publishes nothing of an episode that these could read."""

IMPORTED_GATES: Sequence[Gate] = (
    _pairing_before_end,
    _order_count,
    _arguments,
    _success,
    _loop,
    _over_recommend,
    _grounded,
    _format,
)
"""Of formats that hold no evidence and no code for how a trajectory ended."""

GATES: Mapping[ExecutionKind, Sequence[Gate]] = {
    ExecutionKind.LEGACY: LEGACY_GATES,
    ExecutionKind.ENVPACK: ENVPACK_GATES,
    ExecutionKind.ATIF: IMPORTED_GATES,
    ExecutionKind.MESSAGES: IMPORTED_GATES,
}
