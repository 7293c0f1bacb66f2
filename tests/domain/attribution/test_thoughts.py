"""Think text, case by case: what a logged reply says of it, nearly says, does not say, or may have said."""

import json
from typing import Any

import msgspec
import pytest

from service.domain.attribution.provenance import Issuer, attribute
from service.domain.attribution.thoughts import ThinkSource
from tests.domain.dialogues import (
    FIND,
    VIEW,
    Run,
    agentic_run,
    attributed,
    issued,
    scripted_run,
    sub_task_run,
    tagged,
)

MODEL, HARNESS, UNKNOWN = Issuer.MODEL, Issuer.HARNESS, Issuer.UNKNOWN


def think(run: Run) -> list[str | None]:
    return [None if source is None else source.value for source in attributed(run).thinks]


def test_think_text_is_the_models_where_a_reply_says_it():
    run = Run()
    run.reply(tagged("I search\nfirst.", FIND))
    run.step("I search\nfirst.", FIND)
    run.step("I  search first.", FIND)
    run.step("Processing.", FIND)
    run.step("", FIND)
    assert think(run) == ["verbatim", "near_verbatim", "not_said", None]
    assert attributed(run).think_verbatim == (True, True, False, None)


@pytest.mark.parametrize("text", ['It is "large" \N{EN DASH}\nso I look.', "C:\\bags, 腰包 👜"])
def test_think_text_that_was_spelled_as_json_on_its_way_is_near(text: str):
    run = Run()
    run.reply(json.dumps({"thought": text, "action": "find_product", "action_input": FIND[1]}))
    run.step(text, FIND)
    assert think(run) == ["near_verbatim"]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_think_text_of_a_model_that_thinks_natively_is_its_own(name: str):
    run = Run()
    run.reply(None, native=[FIND])
    run.log[0]["response"]["choices"][0]["message"][name] = "I look for bags."
    run.step("I look for bags.", FIND)
    assert think(run) == ["verbatim"]
    run.log[0]["response"]["choices"][0]["message"][name] = ["of no known type"]
    assert think(run) == ["not_said"]
    assert issued(run) == [("model", "reply_holds_call")]


def test_think_text_is_unknown_where_its_reply_may_be_missing():
    run = Run()
    run.step("Before.", FIND)
    run.dropped_reply()
    run.step("After.", VIEW)
    assert think(run) == ["not_said", "unknown"]
    assert attributed(run, inference_total=9).thinks == (ThinkSource.UNKNOWN,) * 2
    assert attributed(run).think_verbatim == (False, None)


def test_a_scripted_agent_is_known_to_have_written_its_own_think_text():
    assert think(scripted_run()) == ["not_said"] * 4


@pytest.mark.parametrize("build", [agentic_run, sub_task_run, scripted_run])
def test_losing_a_reply_never_turns_said_into_not_said(build: Any):
    run = build()
    whole, evidence = run.trajectory(), run.evidence()
    before = attribute(whole, evidence).thinks
    for lost in range(len(whole.inferences)):
        kept = tuple(line for index, line in enumerate(whole.inferences) if index != lost)
        after = attribute(msgspec.structs.replace(whole, inferences=kept), evidence).thinks
        assert all(other in (one, ThinkSource.UNKNOWN) for one, other in zip(before, after, strict=True))
