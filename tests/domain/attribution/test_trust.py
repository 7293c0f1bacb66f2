"""What others than the agent say: the validator's proxy and sandbox, a search asked again, the released code."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.agent_code.code_scan import CodeScan, Dispatch, Finding, FindingKind
from service.domain.attribution.evidence import Evidence
from service.domain.attribution.provenance import Issuer, Provenance, StructuralClass, Trust, attribute
from service.domain.attribution.replaying import replay
from service.domain.attribution.trust import Contradiction
from service.domain.attribution.witness import Fit
from service.domain.trajectory import ExecutionKind, Judgement, Step, ToolCall, Trajectory, parse
from tests.domain.dialogues import (
    FIND,
    RECOMMEND,
    TERMINATE,
    WHOLE_RUN,
    Run,
    agentic_run,
    echo_run,
    scripted_run,
    sub_task_run,
    tagged,
)

LISTED = ["11", "12", "13"]
MODEL_CODE = CodeScan(
    dispatch=Dispatch.MODEL,
    findings=(Finding(FindingKind.MODEL_REQUEST, 3, "chat"), Finding(FindingKind.MODEL_DISPATCH, 9, "tool")),
)
CODE_CODE = CodeScan(
    dispatch=Dispatch.CODE,
    findings=(Finding(FindingKind.MODEL_REQUEST, 3, "chat"), Finding(FindingKind.CODE_DISPATCH, 9, "find_product")),
)
MODELLESS_CODE = CodeScan(dispatch=Dispatch.CODE, findings=(Finding(FindingKind.CODE_DISPATCH, 9, "find_product"),))
LOG_CODE = CodeScan(dispatch=Dispatch.CODE, findings=(Finding(FindingKind.TOUCHES_LOG, 2, "REQUEST_LOG_FILE"),))


def proxy(run: Run, reply: Fit = Fit.MATCHED, search: Fit = Fit.MATCHED, **last: Fit) -> dict[str, Any]:
    """A record that says the same of every line, but for the last one of a kind."""
    trajectory = run.trajectory()
    inferences = [reply.value] * len(trajectory.inferences)
    searches = [search.value] * len(trajectory.searches)
    for fits, fit in ((inferences, last.get("last_reply")), (searches, last.get("last_search"))):
        if fit is not None:
            fits[-1] = fit.value
    return {"kind": "proxy", "version": 1, "searches": searches, "inferences": inferences}


def envelope(grade: str, agrees: str | None, **scored: bool | None) -> dict[str, Any]:
    return {"kind": "envelope", "version": 1, "grade": grade, "agrees": agrees, "scored": scored}


def index(tool: str, arguments: Mapping[str, str]) -> Sequence[str] | None:
    """The search that `dialogues` simulates."""
    if tool == "view_product_information":
        return arguments["product_ids"].split(",")
    return LISTED if arguments["q"] == "waist bag" else []


def told(run: Run, *witness: dict[str, Any], code: CodeScan | None = None) -> Provenance:
    return attribute(run.trajectory(), msgspec.structs.replace(run.evidence(), witness=witness, code=code))


@pytest.mark.parametrize("build", [agentic_run, echo_run])
def test_requests_that_the_proxy_served_are_witnessed(build: Callable[[], Run]):
    run = build()
    provenance = told(run, proxy(run))
    assert provenance.trust is Trust.WITNESSED
    assert {call.trust for call in provenance.calls} == {Trust.WITNESSED}
    assert provenance.structural_class is told(run).structural_class  # that a reply came says nothing of who decided


def test_calls_of_code_are_witnessed_where_every_reply_is():
    run = sub_task_run()
    assert told(run, proxy(run)).trust is Trust.WITNESSED
    assert told(run, proxy(run, reply=Fit.AMBIGUOUS)).trust is Trust.CLAIMED
    run = scripted_run()
    assert told(run, proxy(run)).trust is Trust.WITNESSED


@pytest.mark.parametrize("fit", [Fit.AMBIGUOUS, Fit.NOT_COVERED, Fit.NO_REPLY])
def test_what_proves_less_leaves_a_call_claimed(fit: Fit):
    run = agentic_run()
    replies = told(run, proxy(run, last_reply=fit))
    assert [call.trust for call in replies.calls] == [Trust.WITNESSED] * 3 + [Trust.CLAIMED]
    assert replies.trust is Trust.CLAIMED
    searches = told(run, proxy(run, last_search=fit))
    # the second search is the view's, which is the second call
    assert [call.trust for call in searches.calls] == [Trust.WITNESSED, Trust.CLAIMED] + [Trust.WITNESSED] * 2
    assert searches.trust is Trust.CLAIMED
    assert replies.contradictions == searches.contradictions == ()


def test_ambiguous_lines_alone_are_never_a_witness():
    run = agentic_run()
    assert told(run, proxy(run, Fit.AMBIGUOUS, Fit.AMBIGUOUS)).trust is Trust.CLAIMED
    assert told(run, proxy(run, Fit.AMBIGUOUS, Fit.MATCHED)).trust is Trust.CLAIMED


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ({"last_reply": Fit.UNMATCHED}, Contradiction.REPLY_NOT_SERVED),
        ({"last_search": Fit.UNMATCHED}, Contradiction.SEARCH_NOT_SERVED),
        ({"last_reply": Fit.SIZE_DIFFERS}, Contradiction.SERVED_SIZE),
        ({"last_search": Fit.SIZE_DIFFERS}, Contradiction.SERVED_SIZE),
    ],
)
def test_what_the_proxy_never_served_contradicts(last: dict[str, Fit], expected: Contradiction):
    run = agentic_run()
    provenance = told(run, proxy(run, **last))
    assert provenance.contradictions == (expected,)
    assert provenance.trust is Trust.CONTRADICTED
    assert provenance.structural_class is StructuralClass.FORGED
    assert {call.trust for call in provenance.calls} == {Trust.CONTRADICTED}


@pytest.mark.parametrize(
    "record",
    [
        {"kind": "proxy", "searches": ["unmatched"], "inferences": ["unmatched"]},  # of other bytes
        {"kind": "proxy", "searches": "unmatched", "inferences": None},
        {"kind": "proxy"},
        {"kind": "search", "shown": ["differs"], "logged": []},
        {"kind": "search", "shown": None},
        {"kind": "envelope", "grade": [], "scored": ["execution_seconds"]},
        {"kind": ["proxy"]},
        {},
    ],
)
def test_records_about_other_bytes_or_of_no_known_shape_say_nothing(record: dict[str, Any]):
    run = agentic_run()
    assert told(run, record) == told(run)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (envelope("same", "both", execution_seconds=True, inference_total=True), ()),
        (envelope("conflict", "both"), ()),
        (envelope("conflict", "first", inference_total=None), ()),
        (envelope("unreadable", None), ()),
        (envelope("differs", "neither"), (Contradiction.RELEASE_NOT_SCORED,)),
        (envelope("conflict", "last"), (Contradiction.RELEASE_NOT_SCORED,)),
        (envelope("conflict", "neither"), (Contradiction.RELEASE_NOT_SCORED,)),
        (envelope("same", "both", inference_total=False), (Contradiction.REPORT_NOT_SCORED,)),
        (envelope("same", "both", execution_seconds=False), (Contradiction.REPORT_NOT_SCORED,)),
        (envelope("same", "both", status=False), ()),  # SN15 may decide that anew
    ],
)
def test_what_the_sandbox_wrote_and_scored(record: dict[str, Any], expected: tuple[Contradiction, ...]):
    provenance = told(agentic_run(), record)
    assert provenance.contradictions == expected
    # that the bytes are the sandbox's own does not make them true
    assert provenance.trust is (Trust.CONTRADICTED if expected else Trust.CLAIMED)


def test_bytes_of_an_episode_are_not_local_so_a_different_outcome_forges_nothing():
    episode = Trajectory(kind=ExecutionKind.ENVPACK, steps=(Step(index=0, calls=(ToolCall(name="s", arguments={}),)),))
    provenance = attribute(episode, Evidence(witness=(envelope("differs", "neither", success=False),)))
    assert provenance.contradictions == ()


def test_a_search_asked_again_confirms_what_is_shown():
    run = agentic_run()
    record = replay(run.trajectory(), index, "small")
    assert record == {
        "kind": "search",
        "version": 1,
        "index": "small",
        "shown": ["same", "same"],
        "logged": ["same", "same"],
    }
    # results alone do not show that a model asked for them; with its replies served they stand for the searches' lines
    assert told(run, record).trust is Trust.CLAIMED
    unsure = proxy(run, search=Fit.NOT_COVERED)
    assert told(run, unsure).trust is Trust.CLAIMED
    assert told(run, unsure, record).trust is Trust.WITNESSED


def test_results_that_the_search_does_not_give_contradict():
    def backwards(tool: str, arguments: Mapping[str, str]) -> Sequence[str]:
        return list(reversed(index(tool, arguments) or []))

    run = agentic_run()
    for answer in (backwards, lambda *_: [], lambda *_: [*LISTED, "14"]):
        record = replay(run.trajectory(), answer, "small")
        assert record["shown"] == record["logged"][:1] * 2 == ["differs"] * 2
        assert told(run, record).contradictions == (Contradiction.RESULT_NOT_REPLAYED,)


def test_a_call_that_nobody_can_attribute_is_never_witnessed():
    run = Run()
    run.reply("Let us use find_product with waist bag at 180-505.")
    run.step("", FIND)
    provenance = told(run, proxy(run))
    assert [(call.issuer, call.trust) for call in provenance.calls] == [(Issuer.UNKNOWN, Trust.CLAIMED)]
    assert provenance.trust is Trust.CLAIMED


def test_what_cannot_be_asked_again_is_not_compared():
    run = Run()
    run.reply(tagged("", FIND, FIND, RECOMMEND))
    run.step("", FIND, logged=False, results={"find_product": "Error: timed out"})
    run.step("", FIND)
    run.step("", RECOMMEND)
    record = replay(run.trajectory(), lambda tool, _: None if tool else LISTED, "small")
    assert record["shown"] == ["not_asked", "not_asked"]
    assert replay(run.trajectory(), index, "small")["shown"] == ["not_asked", "same"]


def test_code_that_touches_the_log_contradicts_what_is_logged():
    provenance = told(agentic_run(), code=LOG_CODE)
    assert Contradiction.CODE_TOUCHES_LOG in provenance.contradictions
    assert provenance.structural_class is StructuralClass.FORGED


def test_code_without_a_model_contradicts_replies():
    assert told(agentic_run(), code=MODELLESS_CODE).contradictions == (Contradiction.CODE_ASKS_NO_MODEL,)
    assert told(scripted_run(), code=MODELLESS_CODE).contradictions == ()
    run = scripted_run()
    run.failed_reply()
    assert told(run, code=MODELLESS_CODE).contradictions == ()


def test_code_that_decides_makes_an_echo_of_replies_that_hold_its_calls():
    provenance = told(agentic_run(), code=CODE_CODE)
    assert provenance.structural_class is StructuralClass.ECHOED
    assert provenance.trust is Trust.CLAIMED
    assert told(sub_task_run(), code=CODE_CODE).structural_class is StructuralClass.SUB_TASK


@pytest.mark.parametrize(
    "code",
    [
        MODEL_CODE,
        msgspec.structs.replace(CODE_CODE, dispatch=Dispatch.BOTH),
        CodeScan(is_readable=False),
        CodeScan(),
        msgspec.structs.replace(
            MODELLESS_CODE, findings=(*MODELLESS_CODE.findings, Finding(FindingKind.OBFUSCATED, 1, "exec"))
        ),
    ],
)
@pytest.mark.parametrize("build", [agentic_run, sub_task_run, scripted_run, echo_run])
def test_code_that_leaves_it_open_changes_nothing(build: Callable[[], Run], code: CodeScan):
    assert told(build(), code=code) == told(build())


def test_code_that_runs_replies_decides_what_dropped_replies_leave_open():
    run = Run()
    run.dropped_reply()
    run.step("", FIND)
    run.reply(tagged("", TERMINATE))
    run.step("", TERMINATE)
    assert [call.issuer for call in told(run).calls] == [Issuer.UNKNOWN, Issuer.MODEL]
    calls = told(run, code=MODEL_CODE).calls
    assert [(call.issuer, call.rule) for call in calls] == [
        (Issuer.MODEL, "code_runs_replies"),
        (Issuer.MODEL, "reply_holds_call"),
    ]
    both = msgspec.structs.replace(MODEL_CODE, dispatch=Dispatch.BOTH)
    assert told(run, code=both).calls[0].issuer is Issuer.UNKNOWN


def test_code_decides_nothing_where_the_log_has_a_gap():
    run = sub_task_run()
    for code in (MODEL_CODE, CODE_CODE):
        evidence = Evidence(judgement=Judgement(), code=code)
        assert {call.issuer for call in attribute(run.trajectory(), evidence).calls} == {Issuer.UNKNOWN}


EPISODE = (
    b'{"interaction": [{"step_index": 0, "calls": [{"call_id": "a", "tool_name": "search", "args": {"query": "bag"},'
    b' "observation": {"products": []}}]}]}'
)


@pytest.mark.parametrize(
    ("code", "issuer", "rule", "expected"),
    [
        (None, Issuer.UNKNOWN, "no_inference_log", StructuralClass.UNKNOWN),
        (MODEL_CODE, Issuer.MODEL, "code_runs_replies", StructuralClass.AGENTIC),
        (CODE_CODE, Issuer.HARNESS, "code_calls_tools", StructuralClass.SUB_TASK),
        (MODELLESS_CODE, Issuer.HARNESS, "code_calls_tools", StructuralClass.SCRIPTED),
        (CodeScan(dispatch=Dispatch.BOTH), Issuer.UNKNOWN, "no_inference_log", StructuralClass.UNKNOWN),
    ],
)
def test_released_code_alone_decides_an_episode(
    code: CodeScan | None, issuer: Issuer, rule: str, expected: StructuralClass
):
    provenance = attribute(parse(EPISODE, ExecutionKind.ENVPACK), Evidence(code=code))
    assert [(call.issuer, call.rule) for call in provenance.calls] == [(issuer, rule)]
    assert provenance.structural_class is expected
    assert provenance.contradictions == ()


ORDER = {Trust.CONTRADICTED: 0, Trust.CLAIMED: 1, Trust.WITNESSED: 2}
fits = st.sampled_from([Fit.MATCHED, Fit.MATCHED, Fit.AMBIGUOUS, Fit.NOT_COVERED, Fit.UNMATCHED])


@given(
    st.sampled_from([agentic_run, sub_task_run, scripted_run, echo_run]),
    st.tuples(fits, fits),
    st.sampled_from([None, None, MODEL_CODE, CODE_CODE]),
    st.data(),
)
def test_taking_testimony_away_never_makes_a_consistent_case_stronger(
    build: Callable[[], Run], said: tuple[Fit, Fit], code: CodeScan | None, data: st.DataObject
):
    run = build()
    records = [proxy(run, *said), replay(run.trajectory(), index, "small"), envelope("same", "both")]
    whole = told(run, *records, code=code)
    kept = [record for record in records if data.draw(st.booleans())]
    trajectory, evidence = run.trajectory(), run.evidence()
    if data.draw(st.booleans()):
        trajectory = msgspec.structs.replace(
            trajectory,
            inferences=tuple(line for line in trajectory.inferences if data.draw(st.booleans())),
            searches=tuple(line for line in trajectory.searches if data.draw(st.booleans())),
        )
    evidence = msgspec.structs.replace(evidence, witness=tuple(kept), code=code if data.draw(st.booleans()) else None)
    less = attribute(trajectory, evidence)
    for one, other in zip(whole.calls, less.calls, strict=True):
        assert other.issuer in (one.issuer, Issuer.UNKNOWN)
        if whole.trust is not Trust.CONTRADICTED:
            assert ORDER[other.trust] <= ORDER[one.trust]
    if whole.trust is not Trust.CONTRADICTED:
        assert ORDER[less.trust] <= ORDER[whole.trust]


words = st.sampled_from(["proxy", "search", "envelope", "matched", "unmatched", "differs", "", "x"])
KEYS = ["kind", "searches", "inferences", "shown", "logged", "grade", "scored"]


@given(st.dictionaries(st.sampled_from(KEYS), st.one_of(st.none(), words, st.lists(words, max_size=4))))
def test_no_record_stops_the_attribution(record: dict[str, Any]):
    told(agentic_run(), record)


def test_a_whole_run_has_all_its_requests_in_the_record():
    run = agentic_run(WHOLE_RUN)
    assert len(proxy(run)["inferences"]) == 4
    assert len(proxy(run)["searches"]) == 2
