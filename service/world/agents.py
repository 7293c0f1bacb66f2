"""Scripted agents: the same shopper run by harnesses that differ in who decides, who dispatches and what is logged.

Each run drives the world's search and returns the envelope SN15's sandbox would write. An agent never scores itself
and reads no clock. What tells the classes apart is left where it is left in the wild: in replies, prompt sizes, counts
and times.
"""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from service.world.crashes import crash
from service.world.legacy_log import BODY_CHARS, INFERENCE_PATH, LegacyLog, Reply, dialogue_step, xml
from service.world.problems import Problem
from service.world.search import Search
from service.world.shopper import VOICES, Flaw, Mind, Turn, shop
from service.world.tools import Get, Tools, direct

REACT_PROMPT_CHARS = 7_200
NATIVE_PROMPT_CHARS = 160
ECHO_PROMPT_CHARS = 90
"""Characters of the instructions around the query; each is divided by four for the reported tokens."""
_TEXT = {"temperature": 0.0, "stream": False}
_JSON = {**_TEXT, "response_format": {"type": "json_object"}, "max_tokens": 200}
_FIELDS: dict[str, dict[str, str]] = {
    "find_product": {"q": "string", "page": "integer", "shop_id": "string", "price": "string", "service": "string"},
    "view_product_information": {"product_ids": "string"},
    "recommend_product": {"product_ids": "string"},
    "terminate": {"status": "string"},
    "calculate_voucher": {"product_prices": "string"},
    "check_product_match": {"product_id": "string", "requirements": "string"},
}
_TOOL_SCHEMAS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": name.replace("_", " "),
            "parameters": {"type": "object", "properties": {field: {"type": kind} for field, kind in fields.items()}},
        },
    }
    for name, fields in _FIELDS.items()
]
_NATIVE = {"tools": _TOOL_SCHEMAS, "tool_choice": "auto", "temperature": 0.2, "max_tokens": 1500}


class Harness(StrEnum):
    """Who decides and who dispatches."""

    REACT = "react"
    """The model writes every call in tags."""
    NATIVE = "native"
    """The model makes every call as a native tool call."""
    MIXED = "mixed"
    """The model searches and views; code recommends."""
    SUB_TASK = "sub_task"
    """Code dispatches; the model classifies what a search returned."""
    SCRIPTED = "scripted"
    """No model at all."""
    ECHOED = "echoed"
    """Code decides; the model is told to repeat the call."""
    FORGED = "forged"
    """No model; a log of one is made up."""
    CRASHING = "crashing"
    """Fails in every way a sandbox can."""


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent version's code, as far as behaviour goes."""

    slug: str
    harness: Harness
    voice: str
    skill: float
    model: str
    flaw_rate: float = 0.0
    """Chance that a run shows one of the flaws."""
    outage_rate: float = 0.0
    """Chance per inference that the first try gets no answer."""
    reasoning_rate: float = 0.0
    """Chance per inference that a long native reasoning makes the reply too large to be logged."""

    def run(self, problem: Problem, search: Search, rng: random.Random, start_ms: float) -> dict[str, Any] | None:
        """The envelope of one run; None when the sandbox wrote no line for it."""
        log = LegacyLog(problem.query, problem.problem_id, rng, start_ms)
        session = Session(self, problem, direct(search), log, rng)
        if self.harness is Harness.CRASHING:
            return crash(problem.problem_id, session.log, session.tools)
        _HARNESSES[self.harness](session)
        return session.envelope()


class Session:
    """One run in progress: the mind, its tools and the log."""

    def __init__(self, agent: Agent, problem: Problem, get: Get, log: LegacyLog, rng: random.Random) -> None:
        self.agent = agent
        self.problem = problem
        self.get = get
        self.log = log
        self.rng = rng
        self.tools = Tools(log.recording(get))
        self.prompt_chars = len(problem.query)
        self.forged: list[dict[str, Any]] | None = None

    def mind(self) -> Mind:
        """The shopper of this run, with its flaw if it drew one."""
        flaw = self.rng.choice(list(Flaw)) if self.rng.random() < self.agent.flaw_rate else None
        return shop(self.problem, VOICES[self.agent.voice], self.agent.skill, flaw, self.rng)

    def infer(self, prompt_chars: int, reply: Reply, request: dict[str, Any]) -> None:
        """Ask the model, once more if the first try fails."""
        if self.rng.random() < self.agent.outage_rate:
            self.log.infer_failed(self.agent.model, request)
        self.log.infer(self.agent.model, prompt_chars, reply, request)

    def act(self, turn: Turn) -> list[dict[str, Any]]:
        """Execute a turn's calls and record it as a step."""
        executed = [self.tools.execute(name, parameters) for name, parameters in turn.calls]
        self.log.step(turn.think, executed, turn.response)
        self.prompt_chars += len(xml(turn.think, turn.calls, turn.response)) + len(json.dumps(executed))
        return executed

    def envelope(self) -> dict[str, Any]:
        """What the sandbox writes for a run that returned."""
        return {
            "problem_id": self.problem.problem_id,
            "status": "SUCCESS",
            "execution_time": self.log.execution_seconds,
            "inference_failure_count": self.log.failed_inferences,
            "inference_total": self.log.inferences,
            "error": None,
            "dialogue": self.log.dialogue() if self.forged is None else self.forged,
        }


def each_turn(session: Session, handle: Callable[[Turn], list[dict[str, Any]]]) -> None:
    """Drive the mind to its end; `handle` runs a turn and returns its executed calls."""
    mind = session.mind()
    turn = next(mind, None)
    while turn is not None:
        results = [call["result"] for call in handle(turn)]
        try:
            turn = mind.send([result if isinstance(result, (list, dict)) else [] for result in results])
        except StopIteration:
            return


def _react(session: Session) -> None:
    def handle(turn: Turn) -> list[dict[str, Any]]:
        session.infer(REACT_PROMPT_CHARS + session.prompt_chars, _tagged(session, turn), _TEXT)
        return session.act(turn)

    each_turn(session, handle)


def _native(session: Session) -> None:
    def handle(turn: Turn) -> list[dict[str, Any]]:
        reply = Reply(turn.think, tuple(turn.calls), _reasoning(session))
        session.infer(NATIVE_PROMPT_CHARS + session.prompt_chars, reply, _NATIVE)
        return session.act(turn)

    each_turn(session, handle)


def _mixed(session: Session) -> None:
    def handle(turn: Turn) -> list[dict[str, Any]]:
        if turn.calls and turn.calls[0][0] in ("find_product", "view_product_information"):
            reply = Reply(turn.think, tuple(turn.calls))
            session.infer(NATIVE_PROMPT_CHARS + session.prompt_chars, reply, _NATIVE)
        return session.act(turn)

    each_turn(session, handle)


def _sub_task(session: Session) -> None:
    def handle(turn: Turn) -> list[dict[str, Any]]:
        executed = [session.tools.execute(name, parameters) for name, parameters in turn.calls]
        think = turn.think
        for call in executed:
            if call["name"] == "find_product" and call["result"]:
                think = _classify(session, call)
        session.log.step(think, executed, turn.response)
        return executed

    each_turn(session, handle)


def _classify(session: Session, call: dict[str, Any]) -> str:
    """Let the model choose among the rows; its reason becomes part of the step's text."""
    rows = call["result"][:6]
    best, worst = rows[0], rows[-1]
    reason = f"{best['product_id']} at {best['price']} PHP matches the title terms better than {worst['product_id']}"
    answer = json.dumps({"choice": 0, "product_id": best["product_id"], "reason": reason})
    session.infer(120 + len(session.problem.query) + len(json.dumps(rows)), Reply(answer), _JSON)
    return f"Search for '{call['parameters']['q']}' gave {len(call['result'])} results. {reason}"


def _scripted(session: Session) -> None:
    each_turn(session, session.act)


def _echoed(session: Session) -> None:
    def handle(turn: Turn) -> list[dict[str, Any]]:
        reply = Reply(xml(turn.think, turn.calls, turn.response))
        session.infer(ECHO_PROMPT_CHARS + len(reply.content), reply, _TEXT)
        return session.act(turn)

    each_turn(session, handle)


def _forged(session: Session) -> None:
    """Search without a log, then write the log of a model that was never asked: its times cannot have happened."""
    tools = Tools(session.get)
    steps: list[dict[str, Any]] = []

    def handle(turn: Turn) -> list[dict[str, Any]]:
        executed = [{**tools.execute(name, parameters), "tool_call_id": "x" * 8} for name, parameters in turn.calls]
        stamp = int(session.log.started_ms) + 6_000 * (len(steps) + 1)
        step = dialogue_step(turn.think, executed, turn.response, session.problem.query, len(steps) + 1, stamp)
        claim = {"role": "assistant", "content": xml(turn.think, turn.calls, turn.response)}
        step["extra_info"]["proxy_calls"] = [
            {
                "kind": "summary",
                "method": "POST",
                "path": INFERENCE_PATH,
                "timestamp": stamp - 400,
                "duration_ms": 4321.0,
                "status_code": 200,
                "json_data": {"model": session.agent.model},
                "response": {"choices": [{"message": claim}], "usage": {"completion_tokens": 88}},
            }
        ]
        step["extra_info"]["problem_id"] = session.problem.problem_id
        steps.append(step)
        session.log.clock_ms += session.rng.uniform(20, 60)
        return executed

    each_turn(session, handle)
    steps[0]["extra_info"]["execution_time"] = session.log.execution_seconds
    session.forged = steps


def _tagged(session: Session, turn: Turn) -> Reply:
    return Reply(xml(turn.think, turn.calls, turn.response), reasoning=_reasoning(session))


def _reasoning(session: Session) -> str | None:
    if session.rng.random() >= session.agent.reasoning_rate:
        return None
    return ("The request has several parts and I go through them one by one. " * 40)[:BODY_CHARS]


_HARNESSES: dict[Harness, Callable[[Session], None]] = {
    Harness.REACT: _react,
    Harness.NATIVE: _native,
    Harness.MIXED: _mixed,
    Harness.SUB_TASK: _sub_task,
    Harness.SCRIPTED: _scripted,
    Harness.ECHOED: _echoed,
    Harness.FORGED: _forged,
}
