"""Verdicts: each gate rejects what it is for and nothing else, in both execution kinds."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from service.domain.attribution.evidence import Evidence
from service.domain.attribution.provenance import StructuralClass
from service.domain.filter.rules import PAPER_2606_10064, SLUICE_1, EvidenceRule, RuleSet
from service.domain.filter.structure import Outcome, Reason, Verdict, judge
from service.domain.rows.splits import Config, row_config
from service.domain.trajectory import ExecutionKind, Judgement, parse
from tests.domain.dialogues import (
    FIND,
    PRODUCTS,
    RECOMMEND,
    RESULTS,
    TERMINATE,
    VIEW,
    WHOLE_RUN,
    Run,
    agentic_run,
    echo_run,
    scripted_run,
    sub_task_run,
    tagged,
)


def few_tokens(text: str) -> int:
    """A counter for chats within every budget."""
    return min(len(text) // 4, 1_000)


def verdict(run: Run, rules: Any = SLUICE_1, **judgement: Any) -> Verdict:
    return judge(run.trajectory(), run.evidence(**judgement), rules, few_tokens)


def test_an_agentic_success_is_kept() -> None:
    kept = verdict(agentic_run())
    assert (kept.outcome, kept.reason) == (Outcome.KEPT, Reason.KEPT)
    assert kept.answer == ("11",)
    assert row_config(kept) is Config.AGENTIC
    assert kept.signals["reasoning_unjudged"] is True
    assert kept.signals["failed_gates"] == []
    json.dumps(kept.signals)


def agentic_with(results: dict[str, Any], calls: tuple = WHOLE_RUN) -> Run:
    run = Run()
    for call in calls:
        run.reply(tagged("t", call))
        run.step("t", call, results=results)
    return run


def unread_step() -> Run:
    run = agentic_run()
    run.steps[1]["completion"]["message"].pop("tool_call")
    return run


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (agentic_run((FIND, VIEW, TERMINATE)), Reason.RECOMMEND_COUNT),
        (agentic_run((FIND, RECOMMEND, RECOMMEND, TERMINATE)), Reason.RECOMMEND_COUNT),
        (agentic_run((FIND, ("recommend_product", {"ids": "11"}), TERMINATE)), Reason.UNPARSEABLE_ARGUMENTS),
        (agentic_run((FIND, RECOMMEND, VIEW)), Reason.THINK_THEN_STOP),
        (agentic_run((FIND, FIND, FIND, RECOMMEND, TERMINATE)), Reason.LOOP),
        (agentic_run((FIND, ("recommend_product", {"product_ids": "11,12,13,1,2"}), TERMINATE)), Reason.OVER_RECOMMEND),
        (agentic_run((FIND, ("recommend_product", {"product_ids": "1"}), TERMINATE)), Reason.UNGROUNDED_ID),
        (agentic_run((VIEW, FIND, RECOMMEND, TERMINATE)), Reason.UNGROUNDED_ID),
        (unread_step(), Reason.DEFECTIVE_FORMAT),
        (sub_task_run(), Reason.CLASS_SUB_TASK),
        (scripted_run(), Reason.CLASS_SCRIPTED),
        (echo_run(), Reason.CLASS_ECHOED),
    ],
)
def test_each_gate_rejects_what_it_is_for(run: Run, reason: Reason) -> None:
    rejected = verdict(run)
    assert (rejected.outcome, rejected.reason) == (Outcome.REJECTED, reason)


def test_a_call_without_a_result_is_unpaired() -> None:
    run = agentic_run()
    run.steps[3]["completion"]["message"]["tool_call"][0]["result"] = None
    assert verdict(run).reason is Reason.UNPAIRED_CALL


@pytest.mark.parametrize(
    ("judgement", "outcome", "reason"),
    [
        ({"reasoning_score": 0.1}, Outcome.REJECTED, Reason.REASONING_LOW),
        ({"reasoning_score": 0.5}, Outcome.KEPT, Reason.KEPT),
        ({"success": False}, Outcome.KEPT_NEGATIVE, Reason.NOT_SUCCESSFUL),
        ({"success": False, "reasoning_score": 0.1}, Outcome.KEPT_NEGATIVE, Reason.NOT_SUCCESSFUL),
        ({"success": None, "score": 0.0}, Outcome.KEPT_NEGATIVE, Reason.NOT_SUCCESSFUL),
        ({"success": None, "score": None, "status": None}, Outcome.REJECTED, Reason.UNJUDGED),
        ({"inference_total": 9}, Outcome.REJECTED, Reason.CONTRADICTED),
    ],
)
def test_what_sn15_said_decides_the_rest(judgement: dict[str, Any], outcome: Outcome, reason: Reason) -> None:
    judged = verdict(agentic_run(), **judgement)
    assert (judged.outcome, judged.reason) == (outcome, reason)


def test_a_failure_that_is_not_the_models_own_is_no_negative() -> None:
    assert verdict(sub_task_run(), success=False).outcome is Outcome.REJECTED


def test_only_a_chat_over_the_budget_is_counted() -> None:
    asked: list[int] = []

    def count(text: str) -> int:
        asked.append(len(text))
        return len(text)

    short, long = agentic_run(), agentic_with({**RESULTS, "find_product": PRODUCTS * 40})
    assert judge(short.trajectory(), short.evidence(), SLUICE_1, count).reason is Reason.KEPT
    assert len(asked) == 1  # the opening, which is the same in every chat
    assert judge(long.trajectory(), long.evidence(), SLUICE_1, count).reason is Reason.TOKEN_BUDGET
    assert [size for size in asked if size > SLUICE_1.token_budget] == [max(asked)]


@pytest.mark.parametrize(
    ("payload", "reason"),
    [(b"[]", Reason.EMPTY), (b"[{", Reason.MALFORMED), (b"{}", Reason.MALFORMED), (b'[{"a": NaN}]', Reason.BARE_NAN)],
)
def test_what_cannot_be_judged_is_named(payload: bytes, reason: Reason) -> None:
    rejected = judge(parse(payload, ExecutionKind.LEGACY), Evidence(), SLUICE_1, few_tokens)
    assert (rejected.outcome, rejected.reason) == (Outcome.REJECTED, reason)
    assert rejected.signals["failed_gates"] == [reason.value]
    assert (rejected.structural_class is StructuralClass.NONE) == (reason is not Reason.BARE_NAN)


def test_a_bare_nan_is_rejected_and_still_classified() -> None:
    run = agentic_run()
    run.steps[0]["nan"] = float("nan")
    rejected = verdict(run)
    assert (rejected.reason, rejected.structural_class) == (Reason.BARE_NAN, StructuralClass.AGENTIC)


def test_the_papers_rules_ask_for_a_reasoning_score_and_know_no_loop() -> None:
    looping = agentic_run((FIND, FIND, FIND, RECOMMEND, TERMINATE))
    assert verdict(looping, PAPER_2606_10064).reason is Reason.REASONING_UNJUDGED
    assert verdict(looping, PAPER_2606_10064, reasoning_score=0.9).outcome is Outcome.KEPT
    assert verdict(agentic_run(), PAPER_2606_10064, success=False).outcome is Outcome.REJECTED


def episode(*calls: dict[str, Any], rules: RuleSet = SLUICE_1, **fields: Any) -> Verdict:
    feedback = {"termination_code": "placed_order", "outcome": "completed", "passed": True, "query": "a bag", **fields}
    interaction = [{"calls": [{"observation": {"ok": True}, **call}]} for call in calls]
    payload = json.dumps({**feedback, "interaction": interaction}).encode()
    return judge(parse(payload, ExecutionKind.ENVPACK), Evidence(), rules, few_tokens)


SEARCH = {"tool_name": "search", "args": {"q": "bag"}, "observation": {"items": [{"product_id": "p1"}]}}
ORDER = {"tool_name": "place_test_order", "args": {"product_id": "p1", "sku": "s"}}


def test_a_passed_episode_is_kept_apart() -> None:
    kept = episode(SEARCH, ORDER)
    assert (kept.outcome, kept.structural_class) == (Outcome.KEPT, StructuralClass.UNKNOWN)
    assert row_config(kept) is Config.UNATTRIBUTED
    assert {call.rule for call in kept.calls} == {"no_inference_log"}


@pytest.mark.parametrize(
    ("rejected", "outcome", "reason"),
    [
        (episode(), Outcome.REJECTED, Reason.EMPTY),
        (episode(SEARCH, ORDER, outcome="environment_error"), Outcome.REJECTED, Reason.HARNESS_FAULT),
        (episode(SEARCH, {**ORDER, "observation": None}), Outcome.REJECTED, Reason.UNPAIRED_CALL),
        (episode(SEARCH, ORDER, ORDER), Outcome.REJECTED, Reason.RECOMMEND_COUNT),
        (episode(SEARCH, {**ORDER, "args": {}}), Outcome.REJECTED, Reason.UNPARSEABLE_ARGUMENTS),
        (episode(SEARCH, termination_code="step_limit"), Outcome.REJECTED, Reason.NO_TERMINAL_ACTION),
        (episode(SEARCH, ORDER, passed=None), Outcome.REJECTED, Reason.UNJUDGED),
        (episode(SEARCH, ORDER, passed=False), Outcome.KEPT_NEGATIVE, Reason.NOT_SUCCESSFUL),
        (episode(SEARCH, SEARCH, SEARCH, ORDER), Outcome.REJECTED, Reason.LOOP),
        (episode(ORDER), Outcome.REJECTED, Reason.UNGROUNDED_ID),
        (episode(SEARCH, {**ORDER, "args": {"abstain": True}}, termination_code="declined"), Outcome.KEPT, Reason.KEPT),
    ],
)
def test_episodes_have_gates_of_their_own(rejected: Verdict, outcome: Outcome, reason: Reason) -> None:
    assert (rejected.outcome, rejected.reason) == (outcome, reason)


def test_the_apis_word_on_an_episode_goes_before_the_payloads() -> None:
    payload = json.dumps({"termination_code": "placed_order", "passed": True, "interaction": [{"calls": [ORDER]}]})
    evidence = Evidence(judgement=Judgement(success=False))
    judged = judge(parse(payload.encode(), ExecutionKind.ENVPACK), evidence, SLUICE_1, few_tokens)
    assert "not_successful" in judged.signals["failed_gates"]


def test_the_rules_say_when_evidence_disagrees_and_how_an_episode_ends() -> None:
    run = agentic_run()
    # 40 % longer than the payload states: more than a quarter of it, less than the whole.
    seconds = {"execution_seconds": run.seconds * 1.4 + 0.2}
    loose = replace(SLUICE_1, evidence=EvidenceRule(time_share=1.0))
    assert verdict(run, **seconds).reason is Reason.CONTRADICTED
    assert verdict(run, loose, **seconds).reason is Reason.KEPT
    strict = replace(SLUICE_1, episode_endings=("declined",))
    assert episode(SEARCH, ORDER, rules=strict).reason is Reason.NO_TERMINAL_ACTION
    own_fault = replace(SLUICE_1, episode_faults=())
    assert episode(SEARCH, ORDER, rules=own_fault, outcome="environment_error").reason is Reason.KEPT


def test_a_row_whose_code_carried_out_a_plan_says_so_in_its_signals() -> None:
    run = Run()
    run.reply(json.dumps({"query": FIND[1]["q"], "range": FIND[1]["price"], "best": RECOMMEND[1]["product_ids"]}))
    run.step("", FIND)
    run.step("", RECOMMEND, TERMINATE)
    found = verdict(run)
    # "11" has two characters, and says nothing in that many replies: the recommendation is not lifted.
    assert (found.structural_class, found.signals["lift"], found.signals["lifted"]) == (
        "sub_task",
        "part",
        [[0, 0, [0]]],
    )
    assert "lift" not in verdict(agentic_run()).signals
