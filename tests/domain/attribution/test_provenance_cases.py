"""Attribution, case by case: each way in which an agent's log and steps can lie apart, and what is then said."""

import json
from typing import Any

import msgspec
import pytest

from service.domain.attribution.pairing import Match
from service.domain.attribution.provenance import CallProvenance, Issuer, StructuralClass, attribute
from service.domain.attribution.trust import Contradiction
from service.domain.trajectory import Defect, ExecutionKind, parse
from tests.domain.dialogues import (
    FIND,
    PRODUCTS,
    RECOMMEND,
    TERMINATE,
    VIEW,
    WHOLE_RUN,
    Call,
    Run,
    agentic_run,
    attributed,
    issued,
    scripted_run,
    sub_task_run,
    tagged,
)

MODEL, HARNESS, UNKNOWN = Issuer.MODEL, Issuer.HARNESS, Issuer.UNKNOWN


def find(q: str, **more: Any) -> Call:
    return "find_product", {"q": q, **more}


def test_a_held_call_names_its_reply_its_match_and_its_search():
    first, second, *_ = attributed(agentic_run()).calls
    assert first == CallProvenance(
        step=0,
        call=0,
        issuer=MODEL,
        trust=first.trust,
        rule="reply_holds_call",
        inference=0,
        match=Match.EXACT,
        search=0,
    )
    assert (second.inference, second.search) == (1, 1)


def test_a_call_that_no_reply_holds_names_the_replies_before_it():
    calls = attributed(sub_task_run()).calls
    # one reply, after the first step
    assert [call.replies_before for call in calls] == [0, 1, 1, 1]
    assert {call.inference for call in calls} == {None}


def test_replies_are_told_in_true_time_though_the_log_files_them_a_step_early():
    run = agentic_run()
    filed = [len(step["extra_info"].get("proxy_calls", [])) for step in json.loads(run.payload())]
    assert filed[-1] == 0  # every line but those of the first step stands one step early
    assert [call.inference for call in attributed(run).calls] == [0, 1, 2, 3]


def test_what_is_not_known_is_not_written_down():
    recommend = attributed(agentic_run()).calls[2]
    assert set(msgspec.to_builtins(recommend)) == {"step", "call", "issuer", "trust", "rule", "inference", "match"}
    assert len(msgspec.json.encode(recommend)) < 130


@pytest.mark.parametrize(
    ("emitted", "expected"),
    [
        (FIND, Match.EXACT),
        (("find_product", dict(reversed(FIND[1].items()))), Match.EXACT),
        (find(" waist  bag", price="180-505"), Match.NORMALISED),
        (find("waist bag", price="180-505", page=1), Match.NORMALISED),
    ],
)
def test_a_match_says_how_far_it_had_to_go(emitted: Call, expected: Match):
    run = Run()
    run.reply(tagged("", emitted))
    run.step("", FIND)
    (call,) = attributed(run).calls
    assert (call.issuer, call.match) == (MODEL, expected)


def test_a_failed_inference_and_the_same_again_is_one_decision():
    run = Run()
    run.failed_reply()
    run.reply(tagged("", FIND))
    run.step("", FIND)
    (call,) = attributed(run).calls
    assert (call.issuer, call.inference) == (MODEL, 1)


def test_a_reply_asked_for_twice_counts_for_one_call():
    run = Run()
    run.reply(tagged("", FIND))
    run.reply(tagged("", FIND))
    run.step("", FIND)
    run.reply(tagged("", TERMINATE))
    run.step("", TERMINATE)
    assert [call.inference for call in attributed(run).calls] == [0, 2]


def test_identical_calls_share_an_id_and_are_told_apart_by_order():
    run = agentic_run((FIND, VIEW, FIND, VIEW))
    calls = attributed(run).calls
    assert [call.inference for call in calls] == [0, 1, 2, 3]
    assert [call.search for call in calls] == [0, 1, 2, 3]


def test_code_that_asked_first_does_not_take_the_reply_of_a_later_equal_call():
    run = Run()
    run.step("Searching.", FIND)
    run.reply(tagged("", FIND))
    run.step("", FIND)
    assert issued(run) == [("harness", "log_whole_no_reply"), ("model", "reply_holds_call")]


def test_steps_built_at_the_end_keep_the_order_of_the_replies():
    run = Run()
    for call in (FIND, FIND, TERMINATE):
        run.reply(tagged("", call))
    for call in (FIND, FIND, TERMINATE):
        run.step("", call)
    assert [call.inference for call in attributed(run).calls] == [0, 1, 2]


def test_stamps_of_another_clock_do_not_outweigh_what_replies_say():
    run = agentic_run()
    for step in run.steps:
        step["extra_info"]["timestamp"] = -5_000
    assert attributed(run).structural_class is StructuralClass.AGENTIC


def test_calls_may_be_executed_in_another_order_than_they_were_said():
    run = Run()
    run.reply(tagged("", FIND, VIEW, RECOMMEND))
    run.step("", RECOMMEND, FIND, VIEW)
    assert [call.inference for call in attributed(run).calls] == [0, 0, 0]


@pytest.mark.parametrize("native", [True, False])
def test_other_alphabets_are_matched_escaped_or_not(native: bool):
    call = find("túi đeo 腰包 👜")
    run = Run()
    run.reply(None if native else tagged("", call), native=[call] if native else [])
    run.step("", call)
    escaped, plain = (json.dumps(json.loads(run.payload()), ensure_ascii=ascii).encode() for ascii in (True, False))
    for payload in (escaped, plain):
        (found,) = attribute(parse(payload, ExecutionKind.LEGACY), run.evidence()).calls
        assert (found.issuer, found.match) == (MODEL, Match.EXACT)


@pytest.mark.parametrize(
    "text",
    [
        f"Thought: bags.\nAction: find_product\nAction Input: {json.dumps(FIND[1])}",
        'find_product(q="waist bag", price="180-505")',
        f"<function=find_product>{json.dumps(FIND[1])}</function>",
        f'```json\n{{"tool": "find_product", "args": {json.dumps(FIND[1])}}}\n```',
    ],
)
def test_calls_as_text_of_any_usual_form_are_the_models(text: str):
    run = Run()
    run.reply(text)
    run.step("", FIND)
    assert issued(run) == [("model", "reply_holds_call")]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('I shall run find_product(q="waist bag", price="180-505") now.', "reply_unread"),
        ("find_product(waist bag, 180-505)", "reply_unread"),
        ('{"find_product": {"q": "waist bag", "price": "180-505"}}', "reply_mentions_call"),
        ("Let us use find_product with waist\n bag at 180-505.", "reply_mentions_call"),
    ],
)
def test_calls_in_a_form_that_cannot_be_read_exactly_are_nobodys(text: str, rule: str):
    run = Run()
    run.reply(text)
    run.step("", FIND, VIEW)
    assert issued(run) == [("unknown", rule), ("harness", "log_whole_no_reply")]


@pytest.mark.parametrize(
    "emitted",
    [
        ("find_product", {"keyword": "waist bag", "cost": "180-505"}),
        ("search", FIND[1]),
        ("functions.find_product", {"words": "waist bag", "price": "180-505"}),
    ],
)
def test_a_call_that_code_may_have_translated_is_nobodys(emitted: Call):
    run = Run()
    run.reply(tagged("", emitted))
    run.step("", FIND, VIEW)
    assert issued(run) == [("unknown", "reply_says_otherwise"), ("harness", "log_whole_no_reply")]


def test_what_code_does_with_an_id_that_the_model_viewed_is_the_codes():
    same = {"product_ids": "11"}
    run = Run()
    run.reply(tagged("", ("view_product_information", same)))
    run.step("", ("view_product_information", same), ("recommend_product", same))
    assert issued(run) == [("model", "reply_holds_call"), ("harness", "log_whole_no_reply")]


@pytest.mark.parametrize(
    ("emitted", "executed"),
    [(("find_product", {"query": "bag"}), find("bag")), (("recommend_product", {"product_id": 11}), RECOMMEND)],
)
def test_either_name_of_an_argument_is_the_same_argument(emitted: Call, executed: Call):
    run = Run()
    run.reply(tagged("", emitted))
    run.step("", executed)
    assert issued(run) == [("model", "reply_holds_call")]


def test_words_that_came_after_the_step_cannot_have_led_to_it():
    run = scripted_run()
    run.reply("I used find_product with waist bag at 180-505, then terminate with success.")
    assert {rule for _, rule in issued(run)} == {"log_whole_no_reply"}


def test_a_dropped_reply_that_came_too_late_holds_nothing():
    run = Run()
    run.step("", FIND)
    run.reply(tagged("", VIEW))
    run.step("", VIEW)
    run.dropped_reply()
    assert issued(run) == [("harness", "log_whole_no_reply"), ("model", "reply_holds_call")]


def test_a_stamp_of_whole_seconds_may_hide_a_reply_of_the_same_second():
    run = Run()
    run.failed_reply()
    run.now_ms = 9_400
    run.dropped_reply()
    run.step("", FIND)
    run.steps[0]["extra_info"]["timestamp"] = 9_000
    assert issued(run) == [("unknown", "reply_dropped")]


def test_a_stamp_from_before_the_log_tells_nothing_about_dropped_replies():
    run = Run()
    run.now_ms = 9_400
    run.dropped_reply()
    run.step("", FIND)
    run.steps[0]["extra_info"]["timestamp"] = 7
    assert issued(run) == [("unknown", "reply_dropped")]
    (call,) = attributed(run).calls
    assert call.replies_before is None


def test_a_log_with_lines_that_cannot_be_read_shows_no_harness():
    run = sub_task_run()
    whole = run.trajectory()
    torn = msgspec.structs.replace(whole, defects=(Defect.BAD_PROXY_CALL,))
    assert {call.rule for call in attribute(torn, run.evidence()).calls} == {"log_unread"}
    assert {call.issuer for call in attribute(whole, run.evidence()).calls} == {HARNESS}


def test_recommend_and_terminate_leave_no_line_and_need_none():
    calls = attributed(agentic_run()).calls
    assert [call.search for call in calls[2:]] == [None, None]
    assert [call.issuer for call in calls[2:]] == [MODEL, MODEL]


def test_searches_hidden_inside_one_tool_are_no_proof_of_a_sub_task():
    same_shop: Call = ("find_products_in_same_shop", {"product_queries": "[]"})
    run = Run()
    run.reply(tagged("", same_shop))
    for page in range(6):
        run.step("", find(f"bag {page}"))  # the tool's own searches: logged, and not calls of the dialogue
    run.steps.clear()
    run.step("", same_shop, results={"find_products_in_same_shop": {"found": True, "products": PRODUCTS}})
    run.reply(tagged("", RECOMMEND, TERMINATE))
    run.step("", RECOMMEND, TERMINATE)
    provenance = attributed(run)
    assert len(run.trajectory().searches) == 6
    assert {call.search for call in provenance.calls} == {None}
    assert provenance.structural_class is StructuralClass.AGENTIC
    assert provenance.contradictions == provenance.unsupported == ()


def test_hidden_searches_that_are_shown_as_calls_are_those_of_code():
    run = Run()
    run.reply(tagged("", find("bag")))
    run.step("", find("bag"), find("bag", page="2"))
    assert issued(run) == [("model", "reply_holds_call"), ("harness", "log_whole_no_reply")]


def test_a_call_after_terminate_in_the_same_step_is_the_harness():
    run = agentic_run((FIND,))
    run.reply(tagged("", TERMINATE))
    run.step("", TERMINATE, RECOMMEND)
    assert issued(run)[1:] == [("model", "reply_holds_call"), ("harness", "after_terminate")]


def test_a_reply_that_ends_first_and_recommends_then_has_said_both():
    run = Run()
    run.reply(tagged("", TERMINATE, RECOMMEND))
    run.step("", TERMINATE, RECOMMEND)
    assert issued(run) == [("model", "reply_holds_call")] * 2


def test_without_its_reply_a_call_after_terminate_in_the_same_step_is_unknown():
    run = Run()
    run.dropped_reply()
    run.step("", TERMINATE, RECOMMEND)
    run.step("", RECOMMEND)
    assert issued(run) == [("unknown", "reply_dropped")] * 2 + [("harness", "after_terminate")]


def test_replies_that_tell_of_calls_after_they_ran_are_an_echo():
    run = Run()
    for call in WHOLE_RUN:
        run.step("", call)
    for call in WHOLE_RUN:
        run.reply(tagged("I did this.", call))
    provenance = attributed(run)
    assert {call.issuer for call in provenance.calls} == {MODEL}
    assert provenance.structural_class is StructuralClass.ECHOED
    assert provenance.contradictions == ()


def test_a_search_that_code_made_ahead_does_not_make_an_echo_of_the_rest():
    run = Run()
    run.step("", FIND)
    run.steps.clear()
    for call in (FIND, VIEW, RECOMMEND, TERMINATE):
        run.reply(tagged("", call))
        run.step("", call)
    assert attributed(run).structural_class is StructuralClass.AGENTIC


def test_searches_logged_for_other_words_leave_a_run_unsupported():
    run = agentic_run((FIND, VIEW))
    for line in run.log:
        if line["path"].startswith("/search"):
            line["params"] = {"q": "shoes"}
    assert Contradiction.SEARCHES_NOT_LOGGED in attributed(run).contradictions


def test_replies_made_to_cost_time_are_left_unread():
    run = Run()
    for filler in ("<function=f>", "<think>", "find_product(", '{"name": [', "Action: find_product\n", "'"):
        run.reply(filler * (60_000 // len(filler)))
    for number in range(60):
        run.step("", find(str(number)), logged=False, results={"find_product": []})
    assert {rule for _, rule in issued(run)} == {"reply_unread"}  # none of it is read for further forms
