"""Explanations: every call in true time with its issuer and grounds, and nothing said where content is withheld."""

import json

import pytest

from service.domain.agent_code.code_scan import CodeScan, Dispatch, Finding, FindingKind
from service.domain.attribution.evidence import Evidence
from service.domain.attribution.provenance import StructuralClass, Trust
from service.domain.attribution.thoughts import ThinkSource
from service.domain.attribution.trust import Contradiction, Missing
from service.domain.filter.explanation import Entry, Explanation, explain
from service.domain.filter.gates import Reason
from service.domain.filter.rules import SLUICE_1
from service.domain.filter.structure import judge
from service.domain.filter.wording import (
    WHY_CLASS,
    WHY_CONTRADICTED,
    WHY_ISSUER,
    WHY_REASON,
    WHY_TRUST,
    WHY_UNSUPPORTED,
)
from service.domain.trajectory import ExecutionKind, parse
from tests.domain.dialogues import FIND, RECOMMEND, TERMINATE, VIEW, Run


def tagged(*calls: tuple[str, dict]) -> str:
    return "".join(
        f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>" for name, arguments in calls
    )


def explained(run: Run, evidence: Evidence | None = None, *, with_content: bool = True) -> Explanation:
    known = run.evidence() if evidence is None else evidence
    trajectory = run.trajectory()
    verdict = judge(trajectory, known, SLUICE_1, len)
    return explain(trajectory, known, verdict, SLUICE_1, with_content=with_content)


def mixed() -> Run:
    """The model searches; code looks at the products, recommends one and ends."""
    run = Run()
    run.reply(f"I look for bags. {tagged(FIND)}")
    run.step("I look for bags.", FIND)
    run.step("Code looks.", VIEW)
    run.step("", RECOMMEND, TERMINATE)
    return run


def shape(entry: Entry) -> tuple[str, int | None, str | None]:
    return entry.kind, entry.step, entry.issuer


def test_a_mixed_row_shows_who_made_each_call_in_order_of_time():
    told = explained(mixed())
    assert (told.outcome, told.decided.name, told.structural_class.name) == ("rejected", "class_mixed", "mixed")
    by_kind = [shape(entry) for entry in told.entries if entry.kind != "think"]
    assert by_kind == [
        # The log files the first search under no step of its own, and the view's one step early.
        ("reply", 0, None),
        ("search", 0, None),
        ("call", 0, "model"),
        ("search", 1, None),
        ("call", 1, "harness"),
        ("call", 2, "harness"),
        ("call", 2, "harness"),
    ]
    call = next(entry for entry in told.entries if entry.kind == "call")
    assert (call.inference, call.what) == (0, 'find_product({"q":"waist bag","price":"180-505"})')
    # The reply took 100 ms from the start, the search 10 more; the step was stamped a millisecond later.
    assert [entry.seconds for entry in told.entries[:2]] == [0.1, 0.11]
    assert call.seconds == 0.111


def test_a_reply_stands_before_the_step_that_its_call_is_in_whatever_the_stamps_say():
    """An agent that builds all steps at its end: each reply is told where its call is."""
    run = Run()
    for call in (FIND, RECOMMEND):
        run.reply(tagged(call))
    for call in (FIND, RECOMMEND):
        run.step("", call)
    told = explained(run)
    kinds = [(entry.kind, entry.step) for entry in told.entries if entry.kind in ("reply", "call")]
    assert kinds == [("reply", 0), ("call", 0), ("reply", 1), ("call", 1)]


def test_without_content_only_calls_and_their_issuers_are_told():
    told = explained(mixed(), with_content=False)
    assert [entry.issuer for entry in told.entries] == ["model", "harness", "harness", "harness"]
    assert {(entry.kind, entry.what, entry.seconds) for entry in told.entries} == {("call", None, None)}
    assert (told.failed, told.contradictions, told.unsupported) == ((), (), ())
    assert "bag" not in str(told)


def test_what_code_carried_out_of_a_reply_is_marked():
    run = Run()
    run.reply(json.dumps({"query": FIND[1]["q"], "range": FIND[1]["price"]}))
    run.step("", FIND)
    run.step("", RECOMMEND, TERMINATE)
    told = explained(run)
    # The recommendation is stated nowhere, so a part is left.
    assert [entry.lifted_from for entry in told.entries if entry.kind == "call"] == [(0,), (), ()]
    assert (told.structural_class.name, told.lift) == ("sub_task", "part")


def test_findings_of_a_scan_are_told_by_line():
    scan = CodeScan(dispatch=Dispatch.CODE, findings=(Finding(kind=FindingKind.CONSTANT_THINK, line=12, name="think"),))
    told = explained(mixed(), Evidence(judgement=mixed().evidence().judgement, code=scan))
    assert [(ground.name, ground.why) for ground in told.findings] == [
        ("dispatch", "the released code dispatches calls by: code"),
        ("constant_think", "line 12: think"),
    ]


def test_long_texts_are_cut():
    run = Run()
    run.step("word " * 1_000, FIND)
    (think,) = [entry for entry in explained(run).entries if entry.kind == "think"]
    assert think.what is not None
    assert len(think.what) == 301


def test_a_payload_without_steps_is_explained_too():
    nothing = parse(b"[]", ExecutionKind.LEGACY)
    told = explain(nothing, Evidence(), judge(nothing, Evidence(), SLUICE_1, len), SLUICE_1)
    assert (told.decided.name, told.entries) == ("empty", ())


@pytest.mark.parametrize(
    ("names", "wording"),
    [
        (Reason, WHY_REASON),
        (StructuralClass, WHY_CLASS),
        (Trust, WHY_TRUST),
        (Contradiction, WHY_CONTRADICTED),
        (Missing, WHY_UNSUPPORTED),
    ],
)
def test_every_name_has_its_words(names: type, wording: dict[str, str]):
    assert {str(name) for name in names} == set(wording)


def test_a_thought_says_how_it_stands_in_a_reply():
    run = Run()
    run.reply(f"I look for bags. {tagged(FIND)}")
    run.step("I look for bags.", FIND)
    run.reply(f"It is\n\n  the second one. {tagged(RECOMMEND)}")
    run.step("It is the second one.", RECOMMEND)
    run.reply(tagged(TERMINATE))
    run.step("Nobody said this.", TERMINATE)
    thinks = [entry for entry in explained(run).entries if entry.kind == "think"]
    assert [(entry.rule, entry.issuer) for entry in thinks] == [
        ("think_verbatim", "model"),
        ("think_near_verbatim", "model"),
        ("think_not_said", "unknown"),
    ]
    assert [entry.why for entry in thinks] == [WHY_ISSUER[entry.rule] for entry in thinks]


def test_every_source_of_a_thought_has_words():
    assert {f"think_{source}" for source in ThinkSource} <= set(WHY_ISSUER)
