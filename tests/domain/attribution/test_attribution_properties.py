"""What must never change who issued a call: ids, spelling, order of filing, other lines; and what evidence is for."""

import copy
import json
import random
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.attribution.evidence import Evidence
from service.domain.attribution.provenance import Issuer, Provenance, Trust, attribute
from service.domain.trajectory import ExecutionKind, Judgement, parse
from service.world.agents import Agent, Harness
from service.world.catalogue import generate_catalogue
from service.world.problems import generate_problems
from service.world.search import Search
from tests.world import kinds
from tests.world.kinds import MODEL, START_MS, played

Envelope = dict[str, Any]
KINDS = (
    *(kinds.verbose, kinds.post_hoc, kinds.parallel, kinds.rewritten, kinds.impatient),
    *(kinds.sloppy, kinds.narrator, kinds.careful_forger, kinds.bypasser, kinds.half_bypasser),
)
HARNESSES = (
    *(Harness.REACT, Harness.NATIVE, Harness.MIXED, Harness.SUB_TASK),
    *(Harness.SCRIPTED, Harness.ECHOED, Harness.FORGED),
)
ORDER = {Trust.CONTRADICTED: 0, Trust.CLAIMED: 1, Trust.WITNESSED: 2}


@cache
def envelopes() -> tuple[Envelope, ...]:
    """Two runs of each kind of agent."""
    catalogue = generate_catalogue(15, families=150)
    search, problems = Search(catalogue), generate_problems(catalogue, 15, 6)[:2]
    found = [played(kind, problem, search) for kind in KINDS for problem in problems]
    for harness in HARNESSES:
        agent = Agent("x", harness, "planner", 0.9, MODEL, flaw_rate=0.5, outage_rate=0.1, reasoning_rate=0.1)
        for problem in problems:
            envelope = agent.run(problem, search, random.Random(f"{harness}/{problem.problem_id}"), START_MS)
            assert envelope is not None
            found.append(envelope)
    return tuple(found)


def attributed(envelope: Envelope, text: str | None = None, **changes: Any) -> Provenance:
    payload = json.dumps(envelope["dialogue"]) if text is None else text
    judgement = Judgement(
        status="SUCCESS",
        inference_total=envelope["inference_total"] or None,
        execution_seconds=envelope["execution_time"],
    )
    evidence = Evidence(judgement=msgspec.structs.replace(judgement, **changes))
    return attribute(parse(payload.encode(), ExecutionKind.LEGACY), evidence)


def lines(dialogue: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for step in dialogue for line in step["extra_info"].get("proxy_calls", [])]


some = st.integers(0, 2 * len(KINDS + HARNESSES) - 1).map(lambda index: copy.deepcopy(envelopes()[index]))


def test_every_issuer_and_grade_is_among_the_runs():
    found = [attributed(envelope) for envelope in envelopes()]
    assert {call.issuer for one in found for call in one.calls} == set(Issuer)
    assert {one.trust for one in found} >= {Trust.CLAIMED, Trust.CONTRADICTED}


@given(some, st.text(max_size=9), st.booleans())
def test_ids_do_not_matter(envelope: Envelope, name: str, all_alike: bool):
    before = attributed(envelope)
    for number, step in enumerate(envelope["dialogue"]):
        step["extra_info"]["step"] = 7 * number
        for call in step["completion"]["message"].get("tool_call", []):
            call["tool_call_id"] = name if all_alike else f"{name}{number}"
    for number, line in enumerate(lines(envelope["dialogue"])):
        message = ((line.get("response") or {}) if isinstance(line.get("response"), dict) else {}).get("choices")
        for native in (message[0]["message"].get("tool_calls") or []) if message else []:
            native["id"] = f"{name}{number}"
    assert attributed(envelope) == before


@given(some, st.randoms(use_true_random=False), st.booleans())
def test_how_json_is_spelled_does_not_matter(envelope: Envelope, chance: random.Random, escaped: bool):
    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            names = list(value)
            chance.shuffle(names)
            return {name: shuffled(value[name]) for name in names}
        return [shuffled(item) for item in value] if isinstance(value, list) else value

    text = json.dumps(shuffled(envelope["dialogue"]), indent=chance.choice([None, 1]), ensure_ascii=escaped)
    assert attributed(envelope, text) == attributed(envelope)


@given(some, st.randoms(use_true_random=False))
def test_where_the_executor_filed_a_line_does_not_matter(envelope: Envelope, chance: random.Random):
    before = attributed(envelope)
    logged = lines(envelope["dialogue"])
    for step in envelope["dialogue"]:
        step["extra_info"].pop("proxy_calls", None)
    for line in sorted(logged, key=lambda line: line["timestamp"]):
        step = chance.choice(envelope["dialogue"])
        step["extra_info"].setdefault("proxy_calls", []).append(line)
    # Lines of one millisecond keep their order only within a step.
    if len({line["timestamp"] for line in logged}) == len(logged):
        assert attributed(envelope) == before


@given(some, st.sampled_from(["/health", "/v1/models", "/budget"]), st.integers(0, 10_000))
def test_requests_to_neither_model_nor_catalogue_do_not_matter(envelope: Envelope, path: str, at: int):
    before = attributed(envelope)
    first = min((line["timestamp"] for line in lines(envelope["dialogue"])), default=0)
    line = {"kind": "summary", "method": "GET", "path": path, "timestamp": first + at, "status_code": 200}
    envelope["dialogue"][0]["extra_info"].setdefault("proxy_calls", []).append(line)
    assert attributed(envelope) == before


@given(some, st.data())
def test_losing_a_line_or_a_count_only_ever_takes_certainty_away(envelope: Envelope, data: st.DataObject):
    before = attributed(envelope)
    for step in envelope["dialogue"]:
        kept = [line for line in step["extra_info"].get("proxy_calls", []) if data.draw(st.integers(0, 4))]
        step["extra_info"]["proxy_calls"] = kept
    lost = data.draw(st.sampled_from([{}, {"inference_total": None, "status": None}, {"execution_seconds": None}]))
    after = attributed(envelope, **lost)
    for one, other in zip(before.calls, after.calls, strict=True):
        assert other.issuer in (one.issuer, Issuer.UNKNOWN)
    if before.trust is not Trust.CONTRADICTED:
        assert ORDER[after.trust] <= ORDER[before.trust]


@pytest.mark.parametrize("index", range(2 * len(KINDS + HARNESSES)))
def test_without_any_log_and_report_nothing_is_known_but_what_came_after_the_end(index: int):
    envelope = copy.deepcopy(envelopes()[index])
    for step in envelope["dialogue"]:
        step["extra_info"]["proxy_calls"] = []
    after = attributed(envelope, inference_total=None, status=None, execution_seconds=None)
    assert {call.issuer for call in after.calls if call.rule != "after_terminate"} <= {Issuer.UNKNOWN}
