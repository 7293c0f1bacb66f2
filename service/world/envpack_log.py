"""What an envpack episode leaves behind: `oro.episode_feedback.v1` and the public item row. It records, nothing more.

The public feedback holds no thoughts and no inference, so no one can tell from it who decided a call.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid5

SCHEMA = "oro.episode_feedback.v1"
_NAMESPACE = UUID("e9150de5-0000-5000-8000-736c75696365")


@dataclass(frozen=True, slots=True)
class Ending:
    """How an episode ended, in the words of the feedback's enums."""

    outcome: str
    termination_code: str
    passed: bool | None
    paid_reward: float | None
    failure_category: str | None


@dataclass(slots=True)
class EpisodeLog:
    """The trace of one episode."""

    task_id: str
    family: str
    query: str
    steps: list[dict[str, Any]] = field(default_factory=list)

    def step(self, calls: Sequence[dict[str, Any]], message: str | None = None, shopper: str | None = None) -> None:
        """Record one turn; calls as `call` makes them."""
        index = len(self.steps)
        named = [{"call_id": f"c{index}-{position}", **call} for position, call in enumerate(calls)]
        turn = {"step_index": index, "turn": index + 1, "calls": named}
        self.steps.append({**turn, "shopper_message": shopper, "message": message})

    def feedback(self, ending: Ending, phase: str, eval_run_id: str) -> dict[str, Any]:
        """The public projection of the episode."""
        calls = [call for step in self.steps for call in step["calls"]]
        errors = [call["error_code"] for call in calls if call["error_code"]]
        return {
            "schema_version": SCHEMA,
            "episode_result_id": self.result_id(eval_run_id),
            "task_id": self.task_id,
            "family": self.family,
            "phase": phase,
            "query": self.query,
            "outcome": ending.outcome,
            "passed": ending.passed,
            "paid_reward": ending.paid_reward,
            "failure_category": ending.failure_category,
            "termination_code": ending.termination_code,
            "step_count": len(self.steps),
            "tool_call_count": len(calls),
            "search_call_count": sum(call["tool_name"] == "search" for call in calls),
            "interaction": self.steps,
            "observable_issues": [{"code": code, "count": errors.count(code)} for code in sorted(set(errors))],
            "diagnostics_state": "available",
        }

    def item(self, ending: Ending, eval_run_id: str, validator_hotkey: str) -> dict[str, Any]:
        """The row of the episode in its evaluation run (EvaluationItemRead)."""
        judged = ending.passed is not None
        return {
            "item_id": self.task_id,
            "item_kind": "envpack_episode",
            "status": "SUCCESS" if judged else "FAILED",
            "eval_run_id": eval_run_id,
            "validator_hotkey": validator_hotkey,
            "family": self.family,
            "score": ending.paid_reward,
            "verdict_status": ("passed" if ending.passed else "failed") if judged else None,
            "paid_reward": ending.paid_reward,
            "check_summary": {"passed": 3 if ending.passed else 1, "failed": 0 if ending.passed else 2, "unknown": 0},
            "reward_summary": {"component_count": 1},
            "step_count": len(self.steps),
            "episode_result_id": self.result_id(eval_run_id),
        }

    def result_id(self, eval_run_id: str) -> str:
        """Id of this episode's result in a run."""
        return str(uuid5(_NAMESPACE, f"{eval_run_id}/{self.task_id}"))


def call(
    name: str, args: dict[str, Any], observation: Any, error_code: str | None = None, done: bool = False
) -> dict[str, Any]:
    """One traced tool call."""
    return {"tool_name": name, "args": args, "observation": observation, "done": done, "error_code": error_code}
