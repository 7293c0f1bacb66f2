"""Every harness leaves the evidence of its class, in the exact shape and with the quirks of the recorded runs."""

import json
import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote_plus

import pytest

from service.world.agents import Agent, Harness
from service.world.catalogue import generate_catalogue
from service.world.legacy_log import BODY_CHARS, INFERENCE_PATH
from service.world.problems import Problem, generate_problems
from service.world.search import Search
from service.world.shopper import Flaw
from service.world.tools import FIND_PATH, tool_call_id

START_MS = 1_780_000_000_000.0


class World:
    """A small world and runs in it."""

    def __init__(self) -> None:
        self.search = Search(generate_catalogue(15, families=150))
        self.problems = generate_problems(self.search.catalogue, 15, 24)

    def envelopes(self, harness: Harness, **habits: Any) -> list[dict[str, Any]]:
        agent = Agent("x", harness, habits.pop("voice", "planner"), habits.pop("skill", 0.9), "some/model", **habits)
        return [envelope for problem in self.problems if (envelope := self.run(agent, problem)) is not None]

    def run(self, agent: Agent, problem: Problem) -> dict[str, Any] | None:
        return agent.run(problem, self.search, random.Random(problem.problem_id), START_MS)


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def steps(envelope: dict[str, Any]) -> list[dict[str, Any]]:
    return envelope["dialogue"] or []


def tool_calls(envelope: dict[str, Any]) -> list[dict[str, Any]]:
    return [call for step in steps(envelope) for call in step["completion"]["message"].get("tool_call", [])]


def proxy_calls(envelope: dict[str, Any], path: str) -> list[dict[str, Any]]:
    logged = [call for step in steps(envelope) for call in step["extra_info"].get("proxy_calls", [])]
    return [call for call in logged if call["path"].startswith(path)]


def emitted(envelope: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(name, canonical arguments) of every call found in a kept reply."""
    for call in proxy_calls(envelope, INFERENCE_PATH):
        if "response" not in call:
            continue
        message = call["response"]["choices"][0]["message"]
        for native in message.get("tool_calls") or []:
            yield native["function"]["name"], canonical(json.loads(native["function"]["arguments"]))
        _, found, rest = (message["content"] or "").partition("<tool_call>")
        for tagged in json.loads(rest.partition("</tool_call>")[0]) if found else []:
            yield tagged["name"], canonical(tagged["parameters"])


def canonical(arguments: Any) -> str:
    return json.dumps(arguments, sort_keys=True)


def emission(envelope: dict[str, Any]) -> float:
    """Share of the dialogue's calls that some reply contains."""
    calls = tool_calls(envelope)
    said = set(emitted(envelope))
    return sum((call["name"], canonical(call["parameters"])) in said for call in calls) / len(calls)


def prompt_tokens(envelope: dict[str, Any]) -> list[int]:
    replies = [call for call in proxy_calls(envelope, INFERENCE_PATH) if "response" in call]
    return [call["response"]["usage"]["prompt_tokens"] for call in replies]


@pytest.mark.parametrize("harness", [Harness.REACT, Harness.NATIVE])
def test_agentic_runs_emit_every_call_and_their_prompts_grow_with_history(world: World, harness: Harness) -> None:
    for envelope in world.envelopes(harness):
        assert emission(envelope) == 1.0
        assert envelope["inference_total"] == len(proxy_calls(envelope, INFERENCE_PATH)) == len(steps(envelope))
        prompts = prompt_tokens(envelope)
        assert prompts == sorted(prompts)
        observed = sum(len(json.dumps(call["result"])) for call in tool_calls(envelope)) // 4
        assert prompts[-1] - prompts[0] >= 0.8 * (observed - 60)  # the last observation has no prompt after it
        native = any("tools" in call["json_data"] for call in proxy_calls(envelope, INFERENCE_PATH))
        assert native is (harness is Harness.NATIVE)


def test_mixed_runs_emit_the_searches_but_not_the_recommendation(world: World) -> None:
    for envelope in world.envelopes(Harness.MIXED):
        said = {name for name, _ in emitted(envelope)}
        assert "find_product" in said
        assert not said & {"recommend_product", "terminate"}
        assert 0 < emission(envelope) < 1


def test_sub_task_runs_infer_but_emit_nothing(world: World) -> None:
    for envelope in world.envelopes(Harness.SUB_TASK):
        inferences = proxy_calls(envelope, INFERENCE_PATH)
        assert 0 < len(inferences) < len(steps(envelope))
        assert emission(envelope) == 0
        assert all(call["json_data"]["response_format"] == {"type": "json_object"} for call in inferences)


def test_scripted_runs_search_and_never_infer(world: World) -> None:
    for envelope in world.envelopes(Harness.SCRIPTED):
        assert envelope["inference_total"] == 0
        assert not proxy_calls(envelope, INFERENCE_PATH)
        assert proxy_calls(envelope, FIND_PATH)


def test_echoed_runs_emit_every_call_from_prompts_that_do_not_hold_the_history(world: World) -> None:
    for envelope in world.envelopes(Harness.ECHOED):
        assert emission(envelope) == 1.0
        assert max(prompt_tokens(envelope)) < 400
        assert min(len(json.dumps(steps(envelope))) // 4, 500) > 400


def test_forged_runs_claim_inferences_that_counts_and_times_deny(world: World) -> None:
    for envelope in world.envelopes(Harness.FORGED):
        inferences = proxy_calls(envelope, INFERENCE_PATH)
        assert len(inferences) == len(steps(envelope))
        assert envelope["inference_total"] == 0
        assert sum(call["duration_ms"] for call in inferences) / 1000 > 10 * envelope["execution_time"]
        assert not proxy_calls(envelope, "/search")
        assert {call["tool_call_id"] for call in tool_calls(envelope)} == {"xxxxxxxx"}


def test_crashing_runs_fail_in_every_way(world: World) -> None:
    agent = Agent("x", Harness.CRASHING, "terse", 0.5, "some/model")
    problems = generate_problems(generate_catalogue(15, families=400), 15, 90)
    envelopes = [world.run(agent, problem) for problem in problems]
    written = [envelope for envelope in envelopes if envelope is not None]
    assert len(written) < len(envelopes)
    assert {envelope["status"] for envelope in written} == {"SUCCESS", "FAILED", "TIMED_OUT"}
    assert any(envelope["status"] == "SUCCESS" and envelope["dialogue"] is None for envelope in written)
    assert any("NaN" in json.dumps(envelope) for envelope in written)
    assert all(not envelope["dialogue"] for envelope in written if envelope["status"] != "SUCCESS")


def test_calls_are_filed_under_the_last_step_stamped_before_they_ended(world: World) -> None:
    early = total = 0
    for envelope in world.envelopes(Harness.REACT):
        stamps = [step["extra_info"]["timestamp"] for step in steps(envelope)]
        for index, step in enumerate(steps(envelope)):
            for call in step["extra_info"].get("proxy_calls", []):
                passed = [place for place, stamp in enumerate(stamps) if stamp <= call["timestamp"]]
                assert index == (passed[-1] if passed else 0)
                true = next(place for place, stamp in enumerate(stamps) if stamp >= call["timestamp"])
                early += index < true
                total += true > 0
        assert len(steps(envelope)[-1]["extra_info"].get("proxy_calls", [])) <= 1
        assert stamps == sorted(stamps)
    # A call that ends in the millisecond of its own step's stamp stays there; all others come a step early.
    assert early / total > 0.6


def test_large_bodies_are_dropped_whole_and_searches_keep_their_ids(world: World) -> None:
    dropped = 0
    for envelope in world.envelopes(Harness.NATIVE, reasoning_rate=0.4):
        for call in proxy_calls(envelope, "/"):
            assert ("response" in call) is not call.get("response_truncated", False)
            if "response" in call:
                assert len(json.dumps(call["response"])) <= BODY_CHARS
            else:
                assert call["response_length"] > BODY_CHARS
                assert ("result_product_ids" in call) is (call["path"] == FIND_PATH)
                dropped += call["path"] == INFERENCE_PATH
    assert dropped


def test_steps_and_searches_have_the_recorded_shape(world: World) -> None:
    (envelope, *_) = world.envelopes(Harness.REACT)
    first, *others = steps(envelope)
    assert set(first["completion"]) == {"reasoning_content", "content", "message"}
    assert first["extra_info"]["execution_time"] == envelope["execution_time"] > 0
    assert all("execution_time" not in step["extra_info"] for step in others)
    assert [step["extra_info"]["step"] for step in steps(envelope)] == list(range(1, len(others) + 2))
    finds = [call for call in tool_calls(envelope) if call["name"] == "find_product"]
    logged = proxy_calls(envelope, FIND_PATH)
    assert [unquote_plus(call["params"]["q"]) for call in logged] == [call["parameters"]["q"] for call in finds]
    assert all("+" in call["params"]["q"] for call in logged)
    for call in tool_calls(envelope):
        assert call["tool_call_id"] == tool_call_id(call["name"], call["parameters"])


def test_an_unanswered_inference_has_no_status_and_counts_as_a_failure(world: World) -> None:
    envelopes = world.envelopes(Harness.REACT, outage_rate=0.3)
    for envelope in envelopes:
        failed = [call for call in proxy_calls(envelope, INFERENCE_PATH) if call["status_code"] is None]
        assert len(failed) == envelope["inference_failure_count"]
        assert not any("response" in call or "response_truncated" in call for call in failed)
    assert sum(envelope["inference_failure_count"] for envelope in envelopes) > 0


def test_flaws_show_and_clean_runs_have_none(world: World) -> None:
    def flaws(envelope: dict[str, Any]) -> set[Flaw]:
        calls = [(call["name"], canonical(call["parameters"])) for call in tool_calls(envelope)]
        names = [name for name, _ in calls]
        finds = [call for call in tool_calls(envelope) if call["name"] == "find_product"]
        seen = {row["product_id"] for call in finds for row in call["result"]}
        recommendations = [call for call in tool_calls(envelope) if call["name"] == "recommend_product"]
        answers = [call["parameters"]["product_ids"] for call in recommendations]
        invented = {product_id for answer in answers for product_id in answer.split(",") if product_id} - seen
        shown = {
            Flaw.LOOP: max(map(calls.count, calls)) >= 3,
            Flaw.TWO_RECOMMENDATIONS: names.count("recommend_product") == 2,
            Flaw.INVENTED_ID: bool(invented),
            Flaw.UNKNOWN_TOOL: "search_products" in names,
            Flaw.STOPS_THINKING: names[-1] != "terminate",
        }
        return {flaw for flaw, is_shown in shown.items() if is_shown}

    assert all(flaws(envelope) == set() for envelope in world.envelopes(Harness.REACT))
    spoiled = [flaws(envelope) for envelope in world.envelopes(Harness.REACT, flaw_rate=1.0)]
    assert all(len(found) == 1 for found in spoiled)
    assert set().union(*spoiled) == set(Flaw)
