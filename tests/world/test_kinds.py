"""Agents of further kinds before the filter: no stranger that only pretends is kept, and no honest one is accused."""

import json
from collections import Counter
from typing import Any

import msgspec
import pytest

from service.domain.agent_code.code_scan import CodeScan, Dispatch, Finding, FindingKind
from service.domain.attribution.evidence import Evidence
from service.domain.attribution.provenance import Issuer, StructuralClass, Trust
from service.domain.filter.rules import SLUICE_1
from service.domain.filter.structure import Outcome, Verdict, judge
from service.domain.trajectory import ExecutionKind, Judgement, parse
from service.world.catalogue import generate_catalogue
from service.world.judging import Judge
from service.world.problems import generate_problems
from service.world.search import Search
from tests.world import kinds
from tests.world.kinds import Kind, played

ACCUSED = {StructuralClass.MIXED, StructuralClass.SUB_TASK, StructuralClass.SCRIPTED, StructuralClass.ECHOED}
ACCUSED |= {StructuralClass.FORGED}


class World:
    """A small world, and verdicts on what agents of a kind do in it."""

    def __init__(self) -> None:
        catalogue = generate_catalogue(15, families=150)
        self.search = Search(catalogue)
        self.problems = generate_problems(catalogue, 15, 24)
        self._judge = Judge(catalogue)

    def verdicts(self, kind: Kind, **known: Any) -> list[Verdict]:
        return [self.verdict(envelope, **known) for envelope in self.envelopes(kind)]

    def envelopes(self, kind: Kind) -> list[dict[str, Any]]:
        return [played(kind, problem, self.search) for problem in self.problems]

    def verdict(self, envelope: dict[str, Any], **known: Any) -> Verdict:
        (problem,) = (one for one in self.problems if one.problem_id == envelope["problem_id"])
        success = self._judge.score(problem, envelope["dialogue"]).success
        judgement = Judgement(
            status="SUCCESS" if success else "FAILED",
            success=success,
            score=float(success),
            reasoning_score=0.7,
            inference_total=envelope["inference_total"] or None,
            inference_failure_count=envelope["inference_failure_count"] if envelope["inference_total"] else None,
            execution_seconds=envelope["execution_time"],
        )
        trajectory = parse(json.dumps(envelope["dialogue"]).encode(), ExecutionKind.LEGACY)
        return judge(trajectory, Evidence(judgement=judgement, **known), SLUICE_1, lambda text: len(text) // 4)


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def classes(verdicts: list[Verdict]) -> Counter[StructuralClass]:
    return Counter(verdict.structural_class for verdict in verdicts)


@pytest.mark.parametrize("kind", [kinds.post_hoc, kinds.parallel, kinds.rewritten, kinds.impatient])
def test_honest_agents_are_agentic_however_they_write_and_build_their_steps(world: World, kind: Kind):
    verdicts = world.verdicts(kind)
    assert set(classes(verdicts)) == {StructuralClass.AGENTIC}
    successes = [verdict for verdict in verdicts if "not_successful" not in verdict.signals["failed_gates"]]
    kept = [verdict for verdict in successes if verdict.outcome is Outcome.KEPT]
    assert len(successes) >= 10
    assert len(kept) >= 0.95 * len(successes)


def test_a_verbose_model_is_unknown_where_its_replies_were_dropped_and_never_accused(world: World):
    found = classes(world.verdicts(kinds.verbose))
    assert not ACCUSED & set(found)
    assert found[StructuralClass.UNKNOWN] > 12  # six of ten replies are dropped, and one is enough


@pytest.mark.parametrize("kind", [kinds.bypasser, kinds.half_bypasser])
def test_who_bypasses_the_logged_client_is_never_taken_for_agentic(world: World, kind: Kind):
    found = classes(world.verdicts(kind))
    assert StructuralClass.AGENTIC not in found
    assert StructuralClass.FORGED not in found


def test_an_agent_whose_every_request_went_past_the_client_is_unknown(world: World):
    assert set(classes(world.verdicts(kinds.bypasser))) == {StructuralClass.UNKNOWN}


def test_what_code_recommends_for_a_model_makes_the_row_mixed(world: World):
    for verdict in world.verdicts(kinds.sloppy):
        assert verdict.structural_class is StructuralClass.MIXED
        by_code = [call for call in verdict.calls if call.issuer is Issuer.HARNESS]
        assert len(by_code) == 2  # the recommendation and the end


def test_a_narrator_is_a_sub_task(world: World):
    found = classes(world.verdicts(kinds.narrator))
    assert StructuralClass.AGENTIC not in found
    assert set(found) <= {StructuralClass.SUB_TASK, StructuralClass.UNKNOWN}
    assert found[StructuralClass.SUB_TASK] >= 20


def test_a_careful_forger_is_claimed_until_its_code_is_released(world: World):
    without = world.verdicts(kinds.careful_forger)
    assert {verdict.trust for verdict in without} == {Trust.CLAIMED}
    assert set(classes(without)) == {StructuralClass.AGENTIC}


def test_released_code_of_an_honest_agent_changes_nothing(world: World):
    reads_replies = CodeScan(
        dispatch=Dispatch.MODEL,
        findings=(
            Finding(kind=FindingKind.MODEL_REQUEST, line=3, name="chat/completions"),
            Finding(kind=FindingKind.MODEL_DISPATCH, line=9, name="tool"),
        ),
    )
    released = world.verdicts(kinds.parallel, agent_code="0" * 64, code=reads_replies)
    assert released == world.verdicts(kinds.parallel)


def test_a_verdict_does_not_depend_on_ids_or_on_how_json_is_spelled(world: World):
    for envelope in world.envelopes(kinds.parallel)[:6]:
        verdict = world.verdict(envelope)
        renamed = json.loads(json.dumps(envelope))
        for step in renamed["dialogue"]:
            for call in step["completion"]["message"].get("tool_call", []):
                call["tool_call_id"] = "same"
                call["parameters"] = dict(reversed(call["parameters"].items()))
        assert msgspec.structs.replace(world.verdict(renamed), signals={}) == msgspec.structs.replace(
            verdict, signals={}
        )
