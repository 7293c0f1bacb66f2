"""Runs before the validator's own proxy log: an honest agent is confirmed, a careful forger is found out."""

import json
from typing import Any

import pytest

from service.domain.attribution.evidence import Evidence
from service.domain.attribution.provenance import Provenance, StructuralClass, Trust, attribute
from service.domain.attribution.trust import Contradiction
from service.domain.attribution.witness import Rival, Served, Span, claims, compare
from service.domain.trajectory import ExecutionKind, Judgement, parse
from service.world.catalogue import generate_catalogue
from service.world.problems import generate_problems
from service.world.search import Search
from tests.world import kinds
from tests.world.kinds import played

CATALOGUE = generate_catalogue(15, families=150)
SEARCH = Search(CATALOGUE)
PROBLEMS = generate_problems(CATALOGUE, 15, 5)
ALWAYS = Span(0, 4_000_000_000_000)


def told(envelope: dict[str, Any], *, asks_model: bool, busy: bool = False) -> Provenance:
    """The attribution beside the log of a proxy that served the searches, and the model only where it was asked."""
    payload = json.dumps(envelope["dialogue"]).encode()
    claimed = claims(payload)
    served = [
        Served(one.end_ms - 1, 1, None, one.path, one.arguments, one.status, one.characters, None, None)
        for one in claimed
        if one.has_reply and (one.is_search or asks_model or busy)
    ]
    rivals = [Rival(ALWAYS, is_same_problem=False)] if busy else []
    record = compare(claimed, served, ALWAYS, rivals)
    judgement = Judgement(
        status="SUCCESS", inference_total=envelope["inference_total"], execution_seconds=envelope["execution_time"]
    )
    return attribute(parse(payload, ExecutionKind.LEGACY), Evidence(judgement=judgement, witness=(record,)))


@pytest.mark.parametrize("kind", [kinds.parallel, kinds.post_hoc, kinds.impatient, kinds.rewritten])
def test_an_honest_agent_is_witnessed(kind: kinds.Kind):
    for problem in PROBLEMS:
        provenance = told(played(kind, problem, SEARCH), asks_model=True)
        assert (provenance.trust, provenance.structural_class) == (Trust.WITNESSED, StructuralClass.AGENTIC)


def test_a_careful_forger_is_contradicted_by_the_log_of_the_proxy():
    for problem in PROBLEMS:
        provenance = told(played(kinds.careful_forger, problem, SEARCH), asks_model=False)
        assert provenance.contradictions == (Contradiction.REPLY_NOT_SERVED,)
        assert provenance.structural_class is StructuralClass.FORGED


def test_where_others_asked_at_the_same_moments_nobody_is_witnessed_and_nobody_accused():
    for kind in (kinds.careful_forger, kinds.parallel):
        provenance = told(played(kind, PROBLEMS[0], SEARCH), asks_model=kind is kinds.parallel, busy=True)
        assert (provenance.trust, provenance.contradictions) == (Trust.CLAIMED, ())
