"""Gates that the tables of `test_structure` do not show: what SN15 takes back, what nobody knows, and exact limits."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from service.domain.attribution.provenance import StructuralClass
from service.domain.filter.gates import ASKED, asked
from service.domain.filter.reasons import REASONS, Gate, Reason
from service.domain.filter.rules import PAPER_2606_10064, RULE_SETS, SLUICE_1
from service.domain.filter.structure import Outcome, Verdict, judge
from service.domain.trajectory import ExecutionKind
from tests.domain.dialogues import FIND, QUERY, RECOMMEND, TERMINATE, WHOLE_RUN, Run, agentic_run, tagged

TWO = ("recommend_product", {"product_ids": "11,12"})


def verdict(run: Run, rules: Any = SLUICE_1, tokens: int = 1_000, **judgement: Any) -> Verdict:
    return judge(run.trajectory(), run.evidence(**judgement), rules, lambda text: tokens)


@pytest.mark.parametrize("status", ["SKIPPED", "CANCELLED", "STALE", "INVALIDATED"])
def test_what_sn15_takes_back_is_invalidated(status: str) -> None:
    assert verdict(agentic_run(), status=status, success=None).reason is Reason.INVALIDATED


@pytest.mark.parametrize("status", ["PENDING", "CLAIMED", "RUNNING"])
def test_what_is_not_judged_yet_is_no_failure(status: str) -> None:
    assert verdict(agentic_run(), status=status, success=None, score=None).reason is Reason.UNJUDGED


def dropped() -> Run:
    """The reply before the recommendation was over 2,000 characters."""
    run = Run()
    run.reply(tagged("t", FIND))
    run.step("t", FIND)
    run.dropped_reply()
    run.step("t", RECOMMEND)
    run.reply(tagged("t", TERMINATE))
    run.step("t", TERMINATE)
    return run


def test_a_call_that_a_dropped_reply_may_hold_makes_the_class_unknown() -> None:
    found = verdict(dropped())
    assert (found.reason, found.structural_class) == (Reason.CLASS_UNKNOWN, StructuralClass.UNKNOWN)


def test_a_mixed_row_is_named_so() -> None:
    run = Run()
    run.reply(tagged("t", FIND))
    run.step("t", FIND)
    run.step("code", RECOMMEND)
    run.step("code", TERMINATE)
    assert verdict(run).reason is Reason.CLASS_MIXED


def test_a_row_without_usage_is_unsupported_by_our_rules_and_kept_by_the_papers() -> None:
    run = agentic_run()
    for line in run.log:
        if line["path"].startswith("/inference"):
            del line["response"]["usage"]
    assert verdict(run).reason is Reason.UNSUPPORTED
    assert verdict(run, PAPER_2606_10064, reasoning_score=0.7).reason is Reason.KEPT


@pytest.mark.parametrize(("tokens", "reason"), [(14_336, Reason.KEPT), (14_337, Reason.TOKEN_BUDGET)])
def test_the_budget_is_exact(tokens: int, reason: Reason) -> None:
    run = Run()
    # Long enough that no bound on its size settles it.
    think = "kettle é 漢字 " * 9_000
    for call in WHOLE_RUN:
        run.reply(tagged(think[:1_500], call))
        run.step(think, call)
    assert verdict(run, tokens=tokens).reason is reason


def recommending(query: str, call: tuple[str, dict[str, Any]]) -> Verdict:
    run = Run()
    for each in (FIND, call, TERMINATE):
        run.reply(tagged("t", each))
        run.step("t", each)
    for step in run.steps:
        step["extra_info"]["query"] = query
    return verdict(run)


def test_two_products_are_too_many_only_where_one_is_asked_for() -> None:
    assert recommending(QUERY, TWO).reason is Reason.OVER_RECOMMEND
    assert recommending(f"{QUERY} And a hat, both from one shop.", TWO).reason is Reason.KEPT
    assert recommending("Find a bag and a hat. My budget is only 90 pesos.", TWO).reason is Reason.KEPT


@pytest.mark.parametrize("ids", [["11"], "11", [11], 11])
def test_an_answer_is_read_as_text_as_a_list_and_as_a_number(ids: Any) -> None:
    assert recommending(QUERY, ("recommend_product", {"product_ids": ids})).reason is Reason.KEPT


def test_every_reason_but_kept_is_some_gates_and_every_gate_asks_somebody() -> None:
    assert {reason for reasons in REASONS.values() for reason in reasons} == set(Reason) - {Reason.KEPT}
    assert set(REASONS) == set(Gate)
    assert {gate for gates in ASKED.values() for gate in gates} == set(Gate) - {Gate.READABLE}
    for rules in RULE_SETS.values():
        assert rules.gates[0] is Gate.READABLE
        assert len(set(rules.gates)) == len(rules.gates)
        assert Gate.HARNESS not in asked(rules.gates, ExecutionKind.LEGACY)


def test_the_order_of_the_gates_is_the_rule_sets() -> None:
    run = Run()
    for call in (FIND, FIND, FIND):
        run.reply(tagged("t", call))
        run.step("t", call)
    names = list(verdict(run).signals["failed_gates"])
    assert names == ["recommend_count", "think_then_stop", "loop"]
    turned = replace(SLUICE_1, gates=(Gate.READABLE, Gate.LOOP, Gate.ENDING))
    assert verdict(run, turned).signals["failed_gates"] == ["loop", "think_then_stop"]
    json.dumps(names)


def test_a_failure_with_low_reasoning_is_a_clean_negative_in_either_order() -> None:
    low = {"success": False, "score": 0.0, "status": "FAILED", "reasoning_score": 0.1}
    found = verdict(agentic_run(), **low)
    assert (found.outcome, found.reason) == (Outcome.KEPT_NEGATIVE, Reason.NOT_SUCCESSFUL)
