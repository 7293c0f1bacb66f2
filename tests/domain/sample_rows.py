"""Generated trajectories, verdicts and rows, as one race might leave them. Not fixtures: tests say what they need."""

import json

from service.domain.attribution.evidence import Evidence
from service.domain.attribution.provenance import CallProvenance, Issuer, StructuralClass, Trust
from service.domain.canonical import digest
from service.domain.filter.rules import SLUICE_1
from service.domain.filter.structure import Outcome, Reason, Verdict, judge
from service.domain.leaks.leakage import ProblemFacts
from service.domain.rows.candidates import candidate
from service.domain.rows.records import Row, RowSource, as_plain, build_row, row_line
from service.domain.rows.spec import SnapshotSpec
from service.domain.rows.splits import Config, Split
from service.domain.trajectory import ExecutionKind, Inference, Step, ToolCall, Trajectory, parse

SPEC = SnapshotSpec(
    rules="sluice-1/1",
    rules_digest="r",
    leak_plan_digest="l",
    pool_plan_digest="p",
    audit_digest="a",
    benchmarks_digest="b",
)


def shopping_trajectory(query: str = "a red kettle", product: str = "77") -> Trajectory:
    """Search (its reply logged), view (reply dropped by the log), recommend and terminate (one native reply)."""
    return Trajectory(
        kind=ExecutionKind.LEGACY,
        query=query,
        steps=(
            Step(
                index=0,
                think="I look for kettles.",
                calls=(ToolCall(name="find_product", arguments={"q": "red kettle"}, result=[{"product_id": product}]),),
            ),
            Step(
                index=1,
                think="I check it.",
                calls=(
                    ToolCall(
                        name="view_product_information", arguments={"product_ids": product}, result=[{"colour": "red"}]
                    ),
                ),
            ),
            Step(
                index=2,
                think="It fits.",
                calls=(
                    ToolCall(name="recommend_product", arguments={"product_ids": product}, result="Having recommended"),
                    ToolCall(name="terminate", arguments={"status": "success"}, result="done"),
                ),
            ),
        ),
        inferences=(
            Inference(
                timestamp_ms=1,
                model="teacher-a",
                content='<think>Kettles first.</think>\n<tool_call>[{"name": "find_product"}]</tool_call>',
            ),
            Inference(timestamp_ms=2, model="teacher-a", dropped=True, response_length=2400),
            Inference(timestamp_ms=3, model="teacher-b", content="It fits."),
        ),
    )


def shopping_verdict(config: Config = Config.AGENTIC, trust: Trust = Trust.CLAIMED) -> Verdict:
    """The model issued all calls but the second, whose reply the log dropped."""
    agentic = config is Config.AGENTIC
    issuers = [
        (0, 0, Issuer.MODEL, 0),
        (1, 0, Issuer.UNKNOWN, None),
        (2, 0, Issuer.MODEL, 2),
        (2, 1, Issuer.MODEL, 2),
    ]
    return Verdict(
        outcome=Outcome.KEPT,
        reason=Reason.KEPT,
        structural_class=StructuralClass.AGENTIC if agentic else StructuralClass.UNKNOWN,
        trust=trust,
        calls=tuple(
            CallProvenance(step=step, call=call, issuer=issuer, trust=trust, rule="test", inference=inference)
            for step, call, issuer, inference in issuers
        ),
        answer=("77",),
        signals={},
    )


def problem(problem_id: str = "p1", query: str | None = "a red kettle", confirmed: bool = True) -> ProblemFacts:
    return ProblemFacts(
        problem_id=problem_id,
        kind=ExecutionKind.LEGACY.value,
        category="product",
        query=query,
        query_confirmed=confirmed,
        gold_ids=frozenset({"77"}),
    )


def source(eval_run_id: str = "run-1", family: str = "family-1") -> RowSource:
    return RowSource(
        eval_run_id=eval_run_id,
        agent_version_id="agent-1",
        agent_family=family,
        miner_hotkey="5Hot",
        race_id="race-1",
        cluster_id="p1",
        rules="sluice-1/1",
        rules_digest="0" * 64,
        reasoning_score=None,
        difficulty=None,
    )


def make_row(number: int = 1, config: Config = Config.AGENTIC) -> Row:
    """A row of its own run; tokens are counted as characters, to keep these tests quick."""
    trajectory = shopping_trajectory(query=f"a red kettle for {number} people", product=str(number))
    return build_row(
        trajectory,
        shopping_verdict(config),
        problem(f"p{number}", trajectory.query),
        source(f"run-{number}"),
        len,
    )


def to_a_row(payload: bytes, kind: ExecutionKind, evidence: Evidence | None = None) -> Verdict:
    """Everything that is done between a payload and the line of a snapshot, kept or not."""
    trajectory = parse(payload, kind)
    verdict = judge(trajectory, evidence or Evidence(), SLUICE_1, len)
    candidate("k", "f", problem(), trajectory, verdict, split=Split.TRAIN)
    row = build_row(trajectory, verdict, problem(query=None), source(), len)
    assert json.loads(row_line(row)) == json.loads(json.dumps(as_plain(row)))
    digest(verdict)
    return verdict
