"""Ways a run can go wrong under SN15's sandbox, one by hash of the problem id. It makes no run that succeeds."""

import hashlib
from typing import Any

from service.world.legacy_log import LegacyLog, Reply
from service.world.tools import Tools

TIMEOUT_SECONDS = 300.0


def crash(problem_id: str, log: LegacyLog, tools: Tools) -> dict[str, Any] | None:
    """The envelope of a run that failed, None where the sandbox could not even write a line."""
    manner = int(hashlib.sha256(problem_id.encode()).hexdigest(), 16) % 8
    found = tools.execute("find_product", {"q": log.query.split(",")[0]})
    log.infer("Qwen/Qwen3-32B-TEE", 40, Reply("OK"), {"temperature": 0.0, "stream": False})
    log.step("Looking at results.", [found])
    if manner == 0:
        return _failed(problem_id, log, "RuntimeError", "agent crashed on purpose")
    if manner == 1:
        return _failed(problem_id, log, "RuntimeError", "Process exited with code 3 but produced no result")
    if manner == 2:
        timeout = _failed(problem_id, log, "TimeoutError", f"Execution exceeded timeout of {TIMEOUT_SECONDS}s")
        return timeout | {"status": "TIMED_OUT", "execution_time": TIMEOUT_SECONDS}
    if manner == 3:
        return None
    returned = _failed(problem_id, log, "", "") | {"status": "SUCCESS", "error": None}
    if manner == 4:
        return returned
    dialogue = log.dialogue()
    if manner in (5, 6):
        dialogue[0]["nan"] = float("nan")
    bare = {"completion": {"message": {"think": "x" * 50}}, "extra_info": {"problem_id": problem_id}}
    return returned | {"dialogue": [*dialogue, bare]}


def _failed(problem_id: str, log: LegacyLog, kind: str, message: str) -> dict[str, Any]:
    return {
        "problem_id": problem_id,
        "status": "FAILED",
        "execution_time": log.execution_seconds,
        "inference_failure_count": log.failed_inferences,
        "inference_total": log.inferences,
        "error": {"type": kind, "message": message},
        "dialogue": None,
    }
