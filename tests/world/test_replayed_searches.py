"""The world's search asked again: what honest and dishonest runs in it show, and what that comes to as evidence."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from service.domain.attribution.evidence import Evidence
from service.domain.attribution.provenance import attribute
from service.domain.attribution.replaying import Replayed, replay
from service.domain.attribution.trust import Contradiction
from service.domain.trajectory import ExecutionKind, Judgement, parse
from service.world.catalogue import generate_catalogue
from service.world.problems import generate_problems
from service.world.search import Search
from tests.world import kinds
from tests.world.kinds import played

CATALOGUE = generate_catalogue(15, families=150)
SEARCH = Search(CATALOGUE)


def answer(tool: str, arguments: Mapping[str, str]) -> Sequence[str] | None:
    """The world's search; arguments it does not know are errors, of which it says nothing."""
    tools = {"find_product": SEARCH.find_product, "view_product_information": SEARCH.view_product_information}
    try:
        rows: list[dict[str, Any]] = tools[tool](**arguments)  # type: ignore[operator]
    except (KeyError, TypeError):
        return None
    return [row["product_id"] for row in rows]


def record(envelope: dict[str, Any]) -> dict[str, Any]:
    return replay(parse(json.dumps(envelope["dialogue"]).encode(), ExecutionKind.LEGACY), answer, "world-15")


@pytest.mark.parametrize("kind", [kinds.parallel, kinds.post_hoc, kinds.careful_forger, kinds.bypasser])
def test_real_results_are_found_again_whoever_asked(kind: kinds.Kind):
    for problem in generate_problems(CATALOGUE, 15, 4):
        told = record(played(kind, problem, SEARCH))
        assert Replayed.DIFFERS not in told["shown"] + told["logged"]
        assert Replayed.SAME in told["shown"]


def test_a_made_up_result_contradicts():
    (problem,) = generate_problems(CATALOGUE, 15, 1)
    envelope = played(kinds.parallel, problem, SEARCH)
    calls = [call for step in envelope["dialogue"] for call in step["completion"]["message"].get("tool_call", [])]
    shown = next(call for call in calls if call["name"] == "find_product" and call["result"])
    shown["result"] = shown["result"][1:]  # its best hit left out: what is left was logged too
    evidence = Evidence(judgement=Judgement(inference_total=envelope["inference_total"]), witness=(record(envelope),))
    trajectory = parse(json.dumps(envelope["dialogue"]).encode(), ExecutionKind.LEGACY)
    assert attribute(trajectory, evidence).contradictions == (Contradiction.RESULT_NOT_REPLAYED,)
