"""What a legacy run leaves behind: SN15's dialogue with proxy calls, byte shape and quirks as its sandbox writes them.

It records; it decides nothing. Time is simulated from a seeded start. The quirks are kept on purpose, since readers
must survive them: a call is filed under the last step stamped before it ended (so mostly one step early), bodies over
2,000 JSON characters are dropped whole, the query of a search is encoded twice, the first step carries the execution
time.
"""

import json
import random
from dataclasses import dataclass, field
from typing import Any

from service.world.tools import FIND_PATH, Get

BODY_CHARS = 2_000
"""JSON characters above which a logged body is dropped."""
INFERENCE_PATH = "/inference/chat/completions"
CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Reply:
    """What the language model answered: text, native calls or both."""

    content: str
    native_calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    reasoning: str | None = None


@dataclass(slots=True)
class LegacyLog:
    """The log of one run of one problem, and its simulated clock."""

    query: str
    problem_id: str
    rng: random.Random
    clock_ms: float
    started_ms: float = field(init=False)
    inferences: int = 0
    failed_inferences: int = 0
    _steps: list[dict[str, Any]] = field(default_factory=list)
    _calls: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.started_ms = self.clock_ms

    def recording(self, get: Get) -> Get:
        """The transport `get`, with every request logged and timed."""

        def recorded(path: str, params: dict[str, Any]) -> Any:
            result = get(path, params)
            call = self._call("GET", path, self.rng.uniform(5, 45), params=params)
            self._attach(call, result)
            if "response_truncated" in call and path == FIND_PATH:
                call["result_product_ids"] = [row["product_id"] for row in result]
            return result

        return recorded

    def infer(self, model: str, prompt_chars: int, reply: Reply, request: dict[str, Any]) -> None:
        """Log one answered inference; `request` is what was asked beside the messages, which the log leaves out."""
        tokens = max(_chars(reply) // CHARS_PER_TOKEN, 1)
        duration = 400 + tokens * self.rng.uniform(9, 14)
        call = self._call("POST", INFERENCE_PATH, duration, json_data={"model": model, **request})
        self.inferences += 1
        self._attach(call, self._body(model, prompt_chars // CHARS_PER_TOKEN, tokens, reply))

    def infer_failed(self, model: str, request: dict[str, Any]) -> None:
        """Log an inference that got no answer: no status, no body."""
        self._call("POST", INFERENCE_PATH, 2_000 + self.rng.uniform(3, 20), json_data={"model": model, **request})
        self._calls[-1]["status_code"] = None
        self.inferences += 1
        self.failed_inferences += 1

    def step(self, think: str, calls: list[dict[str, Any]], response: str = "") -> None:
        """Record one dialogue step of executed calls, stamped now."""
        self.clock_ms += self.rng.choice((0.2, 1.1))
        self._steps.append(dialogue_step(think, calls, response, self.query, len(self._steps) + 1, int(self.clock_ms)))

    def dialogue(self) -> list[dict[str, Any]]:
        """The steps, with every proxy call filed where SN15's executor files it."""
        for step in self._steps:
            step["extra_info"].setdefault("problem_id", self.problem_id)
        if self._steps:
            self._steps[0]["extra_info"]["execution_time"] = self.execution_seconds
        for call in self._calls:
            earlier = [step for step in self._steps if step["extra_info"]["timestamp"] <= call["timestamp"]]
            home = (earlier or self._steps[:1])[-1:]
            for step in home:
                step["extra_info"].setdefault("proxy_calls", []).append(call)
        return self._steps

    @property
    def execution_seconds(self) -> float:
        """Seconds from start to now."""
        return round((self.clock_ms - self.started_ms) / 1000 + 0.004, 6)

    def _call(self, method: str, path: str, duration_ms: float, **extra: Any) -> dict[str, Any]:
        self.clock_ms += duration_ms
        stamp = {"timestamp": int(self.clock_ms), "duration_ms": round(duration_ms, 1), "status_code": 200}
        self._calls.append({"kind": "summary", "method": method, "path": path, **stamp, **extra})
        return self._calls[-1]

    def _attach(self, call: dict[str, Any], body: Any) -> None:
        length = len(json.dumps(body))
        if length > BODY_CHARS:
            call |= {"response_truncated": True, "response_length": length}
        else:
            call["response"] = body

    def _body(self, model: str, prompt_tokens: int, completion_tokens: int, reply: Reply) -> dict[str, Any]:
        calls = [
            {
                "id": f"call_{self.rng.getrandbits(40):010x}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(parameters)},
            }
            for name, parameters in reply.native_calls
        ]
        message = {
            "role": "assistant",
            "content": reply.content,
            "reasoning_content": reply.reasoning,
            "tool_calls": calls or None,
        }
        finish = "tool_calls" if calls else "stop"
        return {
            "id": f"chatcmpl-{self.rng.getrandbits(96):024x}",
            "object": "chat.completion",
            "created": int(self.clock_ms // 1000),
            "model": model,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "total_tokens": prompt_tokens + completion_tokens,
                "prompt_tokens_details": None,
            },
        }


def dialogue_step(
    think: str, calls: list[dict[str, Any]], response: str, query: str, number: int, timestamp_ms: int
) -> dict[str, Any]:
    """One step as SN15's agent interface builds it; empty parts are left out."""
    parts = {"think": think, "tool_call": calls, "response": response}
    return {
        "completion": {
            "reasoning_content": "",
            "content": xml(think, [(call["name"], call["parameters"]) for call in calls], response),
            "message": {name: part for name, part in parts.items() if part},
        },
        "extra_info": {"step": number, "query": query, "timestamp": timestamp_ms},
    }


def xml(think: str, calls: list[tuple[str, dict[str, Any]]], response: str = "") -> str:
    """A turn in ShoppingBench's tags."""
    listed = json.dumps([{"name": name, "parameters": parameters} for name, parameters in calls])
    tags = [("think", think), ("tool_call", listed if calls else ""), ("response", response)]
    return "\n".join(f"<{tag}>{text}</{tag}>" for tag, text in tags if text)


def _chars(reply: Reply) -> int:
    calls = sum(len(f"{name}{parameters}") for name, parameters in reply.native_calls)
    return len(reply.content) + len(reply.reasoning or "") + calls
