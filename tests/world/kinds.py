"""Agents of further kinds than the demo's, each a way to drive the demo's shopper: how a filter meets strangers.

They leave behind what SN15's sandbox would write of them; what they are worth is for the tests to say.
"""

import json
import random
from collections.abc import Callable
from typing import Any

from service.world.agents import (
    NATIVE_PROMPT_CHARS,
    REACT_PROMPT_CHARS,
    Agent,
    Harness,
    Session,
    each_turn,
)
from service.world.legacy_log import LegacyLog, Reply, xml
from service.world.problems import Problem
from service.world.search import Search
from service.world.shopper import Turn
from service.world.tools import Tools, direct

Executed = list[dict[str, Any]]
Kind = Callable[[Session], None]
MODEL = "some/model"
START_MS = 1_780_000_000_000.0
LONG = "I weigh every product against every wish, one after the other, and note what I find. " * 30
"""A reply with this in it is over 2,000 characters: the log drops it whole."""


def played(kind: Kind, problem: Problem, search: Search, *, voice: str = "planner", **habits: float) -> dict[str, Any]:
    """The envelope of one run of an agent of this kind."""
    agent = Agent("x", Harness.REACT, voice, habits.pop("skill", 0.9), MODEL, **habits)
    rng = random.Random(f"{kind.__name__}/{problem.problem_id}")
    log = LegacyLog(problem.query, problem.problem_id, rng, START_MS)
    session = Session(agent, problem, direct(search), log, rng)
    kind(session)
    return session.envelope()


def _react_prompt(session: Session) -> int:
    return REACT_PROMPT_CHARS + session.prompt_chars


def verbose(session: Session) -> None:
    """A ReAct loop around a model that mostly thinks at length."""

    def handle(turn: Turn) -> Executed:
        reasoning = LONG if session.rng.random() < 0.6 else None
        reply = Reply(xml(turn.think, turn.calls, turn.response), reasoning=reasoning)
        session.infer(_react_prompt(session), reply, {})
        return session.act(turn)

    each_turn(session, handle)


def post_hoc(session: Session) -> None:
    """Native tool calls, and all steps built when the run is over."""
    done: list[tuple[Turn, Executed]] = []

    def handle(turn: Turn) -> Executed:
        session.infer(NATIVE_PROMPT_CHARS + session.prompt_chars, Reply(turn.think, tuple(turn.calls)), {})
        executed = [session.tools.execute(name, parameters) for name, parameters in turn.calls]
        session.prompt_chars += len(json.dumps(executed))
        done.append((turn, executed))
        return executed

    each_turn(session, handle)
    for turn, executed in done:
        session.log.step(turn.think, executed, turn.response)


def parallel(session: Session) -> None:
    """Several calls in one reply: a search comes with its next page."""

    def handle(turn: Turn) -> Executed:
        more = [(name, {**arguments, "page": 2}) for name, arguments in turn.calls if name == "find_product"]
        both = Turn(turn.think, [*turn.calls, *more], turn.response)
        session.infer(_react_prompt(session), Reply(xml(*both)), {})
        return session.act(both)[: len(turn.calls)]

    each_turn(session, handle)


def rewritten(session: Session) -> None:
    """The reply spells arguments otherwise than the client executes them: order, white space, numbers as text."""

    def handle(turn: Turn) -> Executed:
        calls = []
        for name, arguments in turn.calls:
            spelled = {key: f" {value} " if isinstance(value, str) else str(value) for key, value in arguments.items()}
            calls.append({"arguments": dict(reversed(spelled.items())), "name": name})
        blocks = "".join(f"<tool_call>\n{json.dumps(call, indent=2)}\n</tool_call>\n" for call in calls)
        session.infer(_react_prompt(session), Reply(f"<think>{turn.think}</think>\n{blocks}"), {})
        return session.act(turn)

    each_turn(session, handle)


def impatient(session: Session) -> None:
    """A ReAct loop whose every second request fails and is asked again."""
    asked = 0

    def handle(turn: Turn) -> Executed:
        nonlocal asked
        asked += 1
        if asked % 2:
            session.log.infer_failed(MODEL, {})
        session.infer(_react_prompt(session), Reply(xml(*turn)), {})
        return session.act(turn)

    each_turn(session, handle)


def sloppy(session: Session) -> None:
    """The model never says what it recommends in a form that can be run; code recommends what it saw last."""

    def handle(turn: Turn) -> Executed:
        ends = turn.calls and turn.calls[0][0] in ("recommend_product", "terminate")
        said = "I am done here." if ends else xml(*turn)
        session.infer(_react_prompt(session), Reply(said), {})
        return session.act(turn)

    each_turn(session, handle)


def narrator(session: Session) -> None:
    """Code does everything; a model is told what was done and asked to speak as if it had decided it."""

    def handle(turn: Turn) -> Executed:
        executed = [session.tools.execute(name, parameters) for name, parameters in turn.calls]
        told = f"I looked at the request again and decided. {turn.think}"
        shown = sum(len(json.dumps(call["result"])) for call in executed)
        session.infer(200 + shown + len(session.problem.query), Reply(told), {})
        session.log.step(told, executed, turn.response)
        return executed

    each_turn(session, handle)


def careful_forger(session: Session) -> None:
    """Code does everything and writes the log of a model that was never asked: counts, sizes and times all fit."""

    def handle(turn: Turn) -> Executed:
        # The log's clock runs on as if the reply had been waited for: the forger sleeps.
        session.log.infer(MODEL, _react_prompt(session), Reply(xml(*turn)), {})
        return session.act(turn)

    each_turn(session, handle)


def bypasser(session: Session) -> None:
    """An honest agent that talks to model and catalogue through a client of its own: nothing is logged."""
    session.tools = Tools(session.get)

    def handle(turn: Turn) -> Executed:
        session.log.clock_ms += session.rng.uniform(400, 2_000)
        return session.act(turn)

    each_turn(session, handle)


def half_bypasser(session: Session) -> None:
    """The model is asked past the client, the catalogue through it."""

    def handle(turn: Turn) -> Executed:
        session.log.clock_ms += session.rng.uniform(400, 2_000)
        return session.act(turn)

    each_turn(session, handle)
