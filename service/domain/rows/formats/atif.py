"""ATIF v1.7, the Agent Trajectory Interchange Format: one document a row. Reading it is `domain.wire.atif`'s.

Steps are numbered from 1 without a gap; results name the call they answer. What a row does not know (times, costs) is
left out rather than made up.
"""

from collections.abc import Sequence
from typing import Any

from service.domain.attribution.provenance import Issuer
from service.domain.rows.chat import Message
from service.domain.rows.formats.turns import arguments, words
from service.domain.rows.records import Row

VERSION = "ATIF-v1.7"


def document(row: Row) -> dict[str, Any]:
    """The row as one ATIF document."""
    agent: dict[str, Any] = {"name": row.agent_version_id, "version": row.agent_version_id}
    if row.teacher_model is not None:
        agent["model_name"] = row.teacher_model
    steps = _steps(row.messages)
    return {
        "schema_version": VERSION,
        "session_id": row.row_id,
        "trajectory_id": row.row_id,
        "agent": agent,
        "steps": steps,
        "final_metrics": {"total_steps": len(steps)},
        "extra": {
            "trajectory_key": row.trajectory_key,
            "problem_id": row.problem_id,
            "cluster_id": row.cluster_id,
            "config": row.config.value,
            "trust": row.trust,
            "rules": row.rules,
            "prompt_source": row.prompt_source,
            "tools_source": row.tools_source,
            "licence": row.licence,
        },
    }


def _steps(messages: Sequence[Message]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "tool":
            results = steps[-1].setdefault("observation", {"results": []})["results"]
            results.append({"source_call_id": message.tool_call_id, "content": message.content})
        else:
            steps.append({"step_id": len(steps) + 1, **_step(message)})
    return steps


def _step(message: Message) -> dict[str, Any]:
    if message.role != "assistant":
        return {"source": message.role, "message": message.content}
    said = words(message)
    step: dict[str, Any] = {"source": "agent", "message": said.text}
    if said.think:
        step["reasoning_content"] = said.think
    if message.tool_calls:
        step["tool_calls"] = [
            {"tool_call_id": use.id, "function_name": use.function.name, "arguments": _object(arguments(use))}
            for use in message.tool_calls
        ]
    if message.issuer == Issuer.MODEL and message.reconstructed is False:
        step["llm_call_count"] = 1  # its words are those of one logged reply; of any other step nobody can say
    step["extra"] = {"issuer": message.issuer, "train": message.train, "weight": message.weight}
    return step


def _object(given: Any) -> dict[str, Any]:
    """The format wants an object; what an agent wrote otherwise stands under a key of its own."""
    return given if isinstance(given, dict) else {"_raw": given}
