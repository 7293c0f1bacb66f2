"""Small runs of agents as the executor writes them: steps stamped after their tools, log lines filed a step early."""

import json
from collections.abc import Sequence
from typing import Any

from service.domain.attribution.evidence import Evidence
from service.domain.attribution.provenance import Provenance, attribute
from service.domain.trajectory import ExecutionKind, Judgement, Trajectory, parse

Call = tuple[str, dict[str, Any]]

FIND: Call = ("find_product", {"q": "waist bag", "price": "180-505"})
VIEW: Call = ("view_product_information", {"product_ids": "11,12"})
RECOMMEND: Call = ("recommend_product", {"product_ids": "11"})
TERMINATE: Call = ("terminate", {"status": "success"})
WHOLE_RUN = (FIND, VIEW, RECOMMEND, TERMINATE)

PRODUCTS = [
    {"product_id": name, "title": f"Waist bag {name} " + "with a long and winding title " * 6, "price": 200.0}
    for name in ("11", "12", "13")
]
RESULTS: dict[str, Any] = {
    "find_product": PRODUCTS,
    "view_product_information": PRODUCTS[:2],
    "recommend_product": "Having recommended the products to the user: 11.",
    "terminate": "The interaction has been completed with status: success",
}
PATHS = {name: f"/search/{name}" for name in ("find_product", "view_product_information")}
QUERY = "Looking for a waist bag from 180 to 505 PHP."


class Run:
    """One run of an agent. The clock starts at 0 ms; a reply takes 100 ms, a search 10 ms."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.history_chars = len(QUERY)
        self.steps: list[dict[str, Any]] = []
        self.log: list[dict[str, Any]] = []

    def reply(self, text: str | None, *, native: Sequence[Call] = (), **log: Any) -> None:
        """A model's reply, with a prompt that holds all results so far (4 characters a token) unless told otherwise."""
        self.now_ms += 100
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if native:
            message["tool_calls"] = [
                {"id": "x", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
                for name, arguments in native
            ]
        usage = {"prompt_tokens": self.history_chars // 4 + 20, "completion_tokens": len(text or "") // 4 + 20}
        line = {
            "kind": "summary",
            "path": "/inference/chat/completions",
            "timestamp": self.now_ms,
            "duration_ms": 100.0,
            "status_code": 200,
            "json_data": {"model": "m"},
            "response": {"choices": [{"message": message}], "usage": usage},
        }
        self.log.append({**line, **log})

    def dropped_reply(self) -> None:
        """A reply over 2,000 characters, of which the log keeps the length alone."""
        self.reply(None, response_truncated=True, response_length=2_100)
        del self.log[-1]["response"]

    def failed_reply(self) -> None:
        """A request that got no answer."""
        self.reply(None, status_code=None)
        del self.log[-1]["response"]

    def step(self, think: str, *calls: Call, logged: bool = True, results: dict[str, Any] = RESULTS) -> None:
        """Execute calls and write the step."""
        done = []
        for name, arguments in calls:
            if name in PATHS:
                self.now_ms += 10
                if logged:
                    self.log.append(self._search(name, arguments, results[name]))
            done.append({"name": name, "parameters": arguments, "tool_call_id": "id", "result": results[name]})
            self.history_chars += len(json.dumps(results[name]))
        self.now_ms += 1
        message = {"think": think, **({"tool_call": done} if done else {})}
        extra = {"step": len(self.steps) + 1, "query": QUERY, "timestamp": self.now_ms, "problem_id": "p"}
        self.steps.append({"completion": {"content": "", "message": message}, "extra_info": extra})

    def _search(self, name: str, arguments: dict[str, Any], result: list[dict[str, Any]]) -> dict[str, Any]:
        params = {key: value.replace(" ", "+") for key, value in arguments.items()}
        line = {"kind": "summary", "path": PATHS[name], "timestamp": self.now_ms, "duration_ms": 10.0}
        found = [product["product_id"] for product in result]
        return {**line, "status_code": 200, "params": params, "response_truncated": True, "result_product_ids": found}

    def payload(self) -> bytes:
        """The uploaded object."""
        steps = [{**step, "extra_info": {**step["extra_info"], "proxy_calls": []}} for step in self.steps]
        for line in self.log:
            early = [step for step in steps if step["extra_info"]["timestamp"] <= line["timestamp"]]
            (early or steps)[-1 if early else 0]["extra_info"]["proxy_calls"].append(line)
        steps[0]["extra_info"]["execution_time"] = self.seconds
        return json.dumps(steps).encode()

    @property
    def seconds(self) -> float:
        """Execution time."""
        return self.now_ms / 1000 + 0.05

    def trajectory(self) -> Trajectory:
        """The payload, read."""
        return parse(self.payload(), ExecutionKind.LEGACY)

    def evidence(self, **judgement: Any) -> Evidence:
        """What the API would report of a successful run: a null count where there was none."""
        total = sum(line["path"].startswith("/inference") for line in self.log)
        reported = {
            "status": "SUCCESS",
            "success": True,
            "score": 1.0,
            "inference_total": total or None,
            "execution_seconds": self.seconds,
        }
        return Evidence(judgement=Judgement(**{**reported, **judgement}))


def tagged(think: str, *calls: Call) -> str:
    """A reply in the reference agent's format."""
    listed = json.dumps([{"name": name, "parameters": arguments} for name, arguments in calls])
    return f"<think>{think}</think>\n<tool_call>{listed}</tool_call>"


def agentic_run(calls: tuple[Call, ...] = WHOLE_RUN) -> Run:
    """The model emits one call a reply, and each is executed."""
    run = Run()
    for number, call in enumerate(calls):
        think = f"Thought {number} about {call[0]}."
        run.reply(tagged(think, call))
        run.step(think, call)
    return run


def sub_task_run() -> Run:
    """Code decides; the model ranks candidates in between."""
    run = Run()
    run.step("Searching.", FIND)
    run.reply('{"choice": 0, "product_id": "11", "reason": "best title"}')
    for call in WHOLE_RUN[1:]:
        run.step("Next.", call)
    return run


def scripted_run() -> Run:
    """Code decides and asks no model."""
    run = Run()
    for call in WHOLE_RUN:
        run.step("Processing.", call)
    return run


def echo_run() -> Run:
    """Code decides, then asks the model to repeat its choice: prompts hold nothing but the words to repeat."""
    run = Run()
    for call in WHOLE_RUN:
        words = tagged("I decide.", call)
        run.reply(words)
        run.log[-1]["response"]["usage"]["prompt_tokens"] = len(words) // 4
        run.step("I decide.", call)
    return run


def attributed(run: Run, **judgement: Any) -> Provenance:
    """Who issued the calls of a run, with what its agent reported of it."""
    return attribute(run.trajectory(), run.evidence(**judgement))


def issued(run: Run) -> list[tuple[str, str]]:
    """Issuer and rule of each call."""
    return [(call.issuer.value, call.rule) for call in attributed(run).calls]
