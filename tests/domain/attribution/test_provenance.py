"""Who issued a call: by content, in order, and `harness` only on positive evidence."""

import json
import random
import re
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.attribution.evidence import Evidence
from service.domain.attribution.provenance import Issuer, Provenance, StructuralClass, Trust, attribute
from service.domain.attribution.trust import Contradiction, Missing
from service.domain.trajectory import ExecutionKind, Judgement, Trajectory, parse
from tests.domain.dialogues import (
    FIND,
    RECOMMEND,
    RESULTS,
    TERMINATE,
    VIEW,
    WHOLE_RUN,
    Call,
    Run,
    agentic_run,
    echo_run,
    scripted_run,
    sub_task_run,
    tagged,
)


def attributed(run: Run, **judgement: object) -> Provenance:
    return attribute(run.trajectory(), run.evidence(**judgement))


def issuers(run: Run, **judgement: object) -> list[str]:
    return [call.issuer.value for call in attributed(run, **judgement).calls]


def parallel_run() -> Run:
    """Several calls a reply, executed in one step."""
    run = Run()
    for calls in ((FIND, VIEW), (RECOMMEND, TERMINATE)):
        run.reply(tagged("Both.", *calls))
        run.step("Both.", *calls)
    return run


def verbose_run() -> Run:
    """An honest agent, half of whose replies are too long for the log."""
    run = Run()
    for number, call in enumerate(WHOLE_RUN):
        if number % 2:
            run.dropped_reply()
        else:
            run.reply(tagged("Short.", call))
        run.step("Long.", call)
    return run


def narrator_run() -> Run:
    """Code decides everything; the model tells of it at the end."""
    run = scripted_run()
    run.reply("I searched for bags and chose 11.")
    return run


def forged_log_run() -> Run:
    """Code writes the log of a model: each reply claims 300 ms, in a run that took 0.08 s."""
    run = Run()
    for call in WHOLE_RUN:
        run.reply(tagged("t", call), timestamp=run.now_ms + 1, duration_ms=300.0)
        run.now_ms -= 99
        run.step("t", call)
    return run


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (agentic_run, StructuralClass.AGENTIC),
        (parallel_run, StructuralClass.AGENTIC),
        (verbose_run, StructuralClass.UNKNOWN),
        (narrator_run, StructuralClass.SUB_TASK),
        (sub_task_run, StructuralClass.SUB_TASK),
        (scripted_run, StructuralClass.SCRIPTED),
        (echo_run, StructuralClass.ECHOED),
    ],
)
def test_each_kind_of_agent_has_its_class(build: Callable[[], Run], expected: StructuralClass) -> None:
    provenance = attributed(build())
    assert provenance.structural_class is expected
    assert provenance.trust is Trust.CLAIMED
    assert provenance.contradictions == ()


def test_no_steps_have_no_class_and_contradict_nothing() -> None:
    provenance = attribute(Trajectory(kind=agentic_run().trajectory().kind), agentic_run().evidence())
    assert provenance.structural_class is StructuralClass.NONE
    assert provenance.trust is Trust.CLAIMED


def spelled(text: str) -> tuple[str, list[Call]]:
    return text, []


@pytest.mark.parametrize(
    ("text", "native"),
    [
        spelled(
            '<tool_call>{"name": "find_product", "parameters": {"q": "waist bag", "price": "180-505"}}</tool_call>'
        ),
        spelled(
            '<tool_call>[{"name": "find_product", "arguments": {"price": "180-505", "q": "waist bag"}}]</tool_call>'
        ),
        spelled(
            '<tool_call>{"name":"find_product","arguments":"{\\"q\\":\\"waist  bag\\",\\"price\\":\\"180-505\\"}"}'
        ),
        spelled('```json\n[{"name": "find_product", "parameters": {"q": "waist bag ", "price": "180-505"}}]\n```'),
        spelled('{"name": "find_product", "parameters": {"q": "waist bag", "price": "180-505", "page": null}}'),
        spelled("<tool_call>[]</tool_call>, no: " + tagged("", FIND)),
        spelled('<tool_call>{"function": {"name": "find_product", "arguments": ' + json.dumps(FIND[1]) + "}}"),
        ("I search.", [FIND]),
    ],
)
def test_a_call_is_found_however_it_is_spelled(text: str, native: list[Call]) -> None:
    run = Run()
    run.reply(text, native=native)
    run.step("", FIND)
    assert issuers(run) == ["model"]


@pytest.mark.parametrize(
    ("emitted", "executed"),
    [
        ({"product_ids": ["11", "12"]}, {"product_ids": "11, 12"}),
        ({"product_ids": [11, 12]}, {"product_ids": "11,12"}),
        ({"product_ids": 11}, {"product_ids": "11"}),
        ({"product_ids": "11", "page": 1.0}, {"page": "1", "product_ids": "11"}),
        ({"product_ids": "11", "needs": {"a": 1}}, {"product_ids": "11", "needs": '{"a": 1}'}),
    ],
)
def test_arguments_that_mean_the_same_are_the_same(emitted: dict, executed: dict) -> None:
    run = Run()
    run.reply(tagged("", ("recommend_product", emitted)))
    run.step("", ("recommend_product", executed))
    assert issuers(run) == ["model"]


def test_other_arguments_are_another_call() -> None:
    run = Run()
    run.reply(tagged("", ("recommend_product", {"product_ids": "11"})))
    run.step("", ("recommend_product", {"product_ids": "12"}))
    assert issuers(run) == ["harness"]


def test_one_reply_may_carry_several_calls_and_each_counts_once() -> None:
    run = Run()
    run.reply(tagged("", FIND, VIEW))
    run.step("", FIND, VIEW, FIND)
    calls = attributed(run).calls
    assert [call.issuer for call in calls] == [Issuer.MODEL, Issuer.MODEL, Issuer.HARNESS]
    assert [call.inference for call in calls] == [0, 0, None]


def test_repeated_calls_are_paired_in_order() -> None:
    calls = attributed(agentic_run((FIND, FIND, FIND))).calls
    assert [call.inference for call in calls] == [0, 1, 2]


def test_content_wins_over_time_when_steps_are_built_at_the_end() -> None:
    run = Run()
    for call in WHOLE_RUN:
        run.reply(tagged("", call))
    for call in WHOLE_RUN:
        run.step("", call)
    assert issuers(run) == ["model"] * 4


def test_a_dropped_reply_may_hold_any_call_after_it_and_none_before() -> None:
    run = Run()
    run.step("", FIND)
    run.dropped_reply()
    run.step("", VIEW)
    assert issuers(run) == ["harness", "unknown"]


def test_a_failed_reply_holds_nothing() -> None:
    run = Run()
    run.failed_reply()
    run.step("", FIND)
    assert issuers(run) == ["harness"]


def test_a_call_in_a_reply_that_cannot_be_read_is_unknown() -> None:
    run = Run()
    run.reply('<tool_call>[{"name": "find_product", "parameters": {"q": "waist</tool_call>')
    run.step("", FIND, TERMINATE)
    assert issuers(run) == ["unknown", "harness"]


def test_a_call_in_a_format_of_the_agents_own_is_unknown() -> None:
    run = Run()
    run.reply("Action: find_product\nAction Input: q = waist  bag; price = 180-505")
    run.step("", FIND, VIEW)
    assert issuers(run) == ["unknown", "harness"]


def test_a_readable_call_does_not_hide_an_unreadable_one() -> None:
    run = Run()
    run.reply('<tool_call>{"name": "terminate", "parameters": {"status": "success"}} {"name": "find_product", "param')
    run.step("", FIND, TERMINATE)
    assert issuers(run) == ["unknown", "model"]


def test_what_comes_after_terminate_is_the_harness() -> None:
    run = agentic_run((FIND, TERMINATE))
    run.step("Auto-recommending.", RECOMMEND)
    assert issuers(run) == ["model", "model", "harness"]
    assert attributed(run).structural_class is StructuralClass.MIXED


def test_without_a_reported_count_nothing_is_the_harness() -> None:
    run = sub_task_run()
    provenance = attribute(run.trajectory(), Evidence())
    assert {call.issuer for call in provenance.calls} == {Issuer.UNKNOWN}
    assert Missing.COUNT in provenance.unsupported


def test_a_null_count_beside_a_report_means_zero() -> None:
    provenance = attributed(agentic_run(), inference_total=None)
    assert provenance.contradictions == (Contradiction.INFERENCE_COUNT,)
    assert provenance.structural_class is StructuralClass.FORGED


def test_a_client_that_bypasses_the_log_is_unknown_not_scripted() -> None:
    run = Run()
    for call in WHOLE_RUN:
        run.step("", call, logged=False)
    provenance = attributed(run)
    assert provenance.structural_class is StructuralClass.UNKNOWN
    assert Missing.SEARCHES in provenance.unsupported


def test_a_log_that_outlasts_the_execution_is_forged() -> None:
    # four replies of 100 ms and two searches of 10 ms span 0.42 s: no such log fits into 0.05 s
    assert attributed(agentic_run(), execution_seconds=0.05).contradictions == (
        Contradiction.EXECUTION_TIME,
        Contradiction.LOG_OUTLASTS_EXECUTION,
    )


def test_replies_that_take_longer_than_the_run_are_forged() -> None:
    provenance = attributed(forged_log_run())
    assert provenance.contradictions == (Contradiction.LOG_OUTLASTS_EXECUTION,)
    assert provenance.structural_class is StructuralClass.FORGED


def test_logged_replies_without_any_logged_search_contradict() -> None:
    run = Run()
    for call in WHOLE_RUN:
        run.reply(tagged("", call))
        run.step("", call, logged=False)
    assert attributed(run).contradictions == (Contradiction.SEARCHES_NOT_LOGGED,)


def test_results_that_the_logged_search_did_not_give_contradict() -> None:
    run = Run()
    run.reply(tagged("", FIND))
    run.step("", FIND)
    run.steps[0]["completion"]["message"]["tool_call"][0]["result"] = [{"product_id": "99"}]
    assert attributed(run).contradictions == (Contradiction.RESULT_NOT_LOGGED,)


def test_a_reply_longer_than_its_tokens_contradicts() -> None:
    run = Run()
    run.reply("word " * 200)  # 1,000 characters
    run.log[0]["response"]["usage"]["completion_tokens"] = 2
    run.step("", FIND)
    assert attributed(run).contradictions == (Contradiction.REPLY_SIZE,)


def test_prompts_padded_to_one_size_are_unsupported() -> None:
    run = agentic_run()
    for line in run.log:
        if "response" in line:
            line["response"]["usage"]["prompt_tokens"] = 4_000
    provenance = attributed(run)
    assert provenance.structural_class is StructuralClass.AGENTIC
    assert provenance.unsupported == (Missing.PROMPT_GROWTH,)


def test_think_text_is_looked_up_in_replies() -> None:
    run = Run()
    run.reply(tagged("I search\nfirst.", FIND))
    run.step("I search first.", FIND)
    run.step("Invented.", TERMINATE)
    run.step("", TERMINATE)
    assert attributed(run).think_verbatim == (True, False, None)


ORDER = {Trust.CONTRADICTED: 0, Trust.CLAIMED: 1, Trust.WITNESSED: 2}
RUNS = (agentic_run, sub_task_run, scripted_run, echo_run)


def mixed_run(seed: int) -> Run:
    """Replies, drops, failures, repeats and calls of the harness, in any order."""
    draw = random.Random(seed)
    run = Run()
    for _ in range(draw.randint(1, 7)):
        call = draw.choice(WHOLE_RUN)
        match draw.randint(0, 5):
            case 0:
                run.dropped_reply()
            case 1:
                run.failed_reply()
            case 2:
                run.reply("I think about it.")
            case _:
                run.reply(tagged("Yes.", *[call] * draw.randint(1, 2)))
        if draw.random() < 0.8:
            run.step("Yes.", *[call] * draw.randint(1, 2), results=RESULTS)
    run.step("", TERMINATE)
    return run


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.data())
def test_removing_evidence_never_makes_a_case_stronger(seed: int, data: st.DataObject) -> None:
    """Inferences, searches and counts may go in any combination.

    Trust is compared from uncontradicted runs only: from two pieces that disagree, removing one ends the disagreement.
    """
    run = data.draw(st.sampled_from(RUNS))() if seed % 3 == 0 else mixed_run(seed)
    whole, evidence = run.trajectory(), run.evidence()
    less = msgspec.structs.replace(
        whole,
        inferences=tuple(line for line in whole.inferences if data.draw(st.booleans())),
        searches=tuple(line for line in whole.searches if data.draw(st.booleans())),
    )
    if data.draw(st.booleans()):
        evidence = Evidence(judgement=Judgement(execution_seconds=evidence.judgement.execution_seconds))
    before, after = attribute(whole, run.evidence()), attribute(less, evidence)
    for one, other in zip(before.calls, after.calls, strict=True):
        assert other.issuer in (one.issuer, Issuer.UNKNOWN), (one, other)
    if before.trust is Trust.CLAIMED:
        assert ORDER[after.trust] <= ORDER[before.trust]
    assert set(before.unsupported) - {Missing.PROMPT_GROWTH, Missing.PROMPT_SIZE, Missing.USAGE} <= set(
        after.unsupported
    )


@pytest.mark.parametrize("build", RUNS)
def test_renaming_ids_changes_no_attribution(build: Callable[[], Run]) -> None:
    run = build()
    # every 11 or 12 in a payload that stands after a quote, a comma or an escape is a product id
    renamed = re.sub(rb'(["\\,])1([123])(?=["\\,])', rb"\g<1>70000\g<2>", run.payload())
    assert b"700001,700002" in renamed
    assert attribute(parse(renamed, ExecutionKind.LEGACY), run.evidence()) == attributed(build())


@pytest.mark.parametrize("build", RUNS)
def test_reserialising_changes_no_attribution(build: Callable[[], Run]) -> None:
    run = build()
    respelled = json.dumps(json.loads(run.payload()), sort_keys=True, indent=1, ensure_ascii=False).encode()
    assert attribute(parse(respelled, ExecutionKind.LEGACY), run.evidence()) == attributed(build())


def test_evidence_has_a_digest_of_its_own() -> None:
    one = Evidence(judgement=Judgement(score=1.0))
    assert one.digest == Evidence(judgement=Judgement(score=1.0)).digest
    assert one.digest != msgspec.structs.replace(one, agent_code="x").digest
