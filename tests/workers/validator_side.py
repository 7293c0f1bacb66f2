"""A validator's own folder and its proxy's log, made of what a recorded archive holds."""

import gzip
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
from sqlalchemy import Engine, text

from service.domain.attribution.evidence import Evidence
from service.domain.sn15.judgement import Judgement
from service.replay.recorded import Archive, EpisodeItem, LegacyItem, Run
from service.store.corpus import trajectories
from service.store.corpus.trajectories import NewTrajectory
from service.store.engine import transaction
from service.store.harvest import ledger, listings
from service.store.harvest.ledger import ExpectedItem
from service.store.models import AgentVersion, EvaluationRun, Problem

NOW = datetime(2026, 5, 6, tzinfo=UTC)
LEDGER_IDS = text("SELECT ledger_id, item_key FROM harvest_ledger WHERE eval_run_id = :run")


def envelope(item: LegacyItem) -> dict[str, Any]:
    """The line that the sandbox wrote before the item was uploaded and reported."""
    dialogue = json.loads(gzip.decompress(item.packed or gzip.compress(b"[]"))) or None
    update = item.update
    reported = update.get("status")
    return {
        "problem_id": item.problem_id,
        "status": "SUCCESS" if dialogue else ("FAILED" if reported == "SUCCESS" else reported),
        "execution_time": update.get("execution_time"),
        "inference_failure_count": update.get("inference_failure_count") or 0,
        "inference_total": update.get("inference_total") or 0,
        "error": None,
        "dialogue": dialogue,
    }


def result(run: Run, item: EpisodeItem) -> dict[str, Any]:
    """The row that the episode runner wrote."""
    feedback = json.loads(gzip.decompress(item.packed))
    return {
        "eval_run_id": run.eval_run_id,
        "task_id": item.task_id,
        "outcome": feedback["outcome"],
        "verdict_correct": feedback["passed"],
        "score": feedback["paid_reward"],
    }


def spelled(row: dict[str, Any]) -> bytes:
    return json.dumps(row).encode() + b"\n"


def legacy_runs(archive: Archive) -> list[Run]:
    return [run for run in archive.runs.values() if run.execution_kind == "legacy_shoppingbench"]


def envpack_runs(archive: Archive) -> list[Run]:
    return [run for run in archive.runs.values() if run.execution_kind == "envpack"]


def recorded(run: Run) -> list[LegacyItem]:
    """The items of a legacy run about which the sandbox wrote a line."""
    return [item for item in run.items if isinstance(item, LegacyItem) and item.packed is not None]


def write_run(folder: Path, run: Run) -> Path:
    """The log of one legacy run; returns the file."""
    path = folder / f"eval_{run.eval_run_id}" / "output.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(spelled(envelope(item)) for item in recorded(run)))
    return path


def write_episodes(folder: Path, run: Run) -> Path:
    """The results of one envpack run; returns the file."""
    path = folder / "environment-runs" / run.eval_run_id / "episode_results.jsonl"
    path.parent.mkdir(parents=True)
    items = [item for item in run.items if isinstance(item, EpisodeItem)]
    path.write_bytes(b"".join(spelled(result(run, item)) for item in items))
    return path


def requests(run: Run) -> list[dict[str, Any]]:
    """The requests that the dialogues of a run claim, in order of time."""
    lines = [
        call
        for item in recorded(run)
        for step in envelope(item)["dialogue"] or []
        for call in step["extra_info"].get("proxy_calls", [])
    ]
    return sorted(lines, key=lambda call: call["timestamp"])


def access_line(call: dict[str, Any], agent: str = "python-requests/2.32") -> str:
    """How nginx logs one answered request."""
    query = f"?{urlencode(call['params'])}" if call.get("params") else ""
    # What the server sends is compact; what the agent's client logs has spaces in it.
    body = json.dumps(call["response"], separators=(",", ":")) if "response" in call else " " * call["response_length"]
    at = datetime.fromtimestamp(call["timestamp"] // 1000, UTC)
    return (
        f"172.18.0.5 - - [{at:%d/%b/%Y:%H:%M:%S} +0000] "
        f'"{call["method"]} {call["path"]}{query} HTTP/1.1" 200 {len(body)} "-" "{agent}"\n'
    )


def write_access_log(path: Path, runs: Iterable[Run]) -> None:
    """The proxy's log of these runs."""
    calls = [call for run in runs for call in requests(run) if call["status_code"] is not None]
    calls.sort(key=lambda call: call["timestamp"])
    path.write_text("".join(access_line(call) for call in calls))


def judgement(item: LegacyItem | EpisodeItem) -> Judgement:
    """What the source says of an item."""
    if isinstance(item, EpisodeItem):
        passed = {"passed": True, "failed": False}.get(item.row.get("verdict_status") or "")
        return Judgement(status=item.row.get("status"), success=passed, paid_reward=item.row.get("paid_reward"))
    update = item.update
    return Judgement(
        status=update.get("status"),
        score=update.get("score"),
        inference_total=update.get("inference_total"),
        inference_failure_count=update.get("inference_failure_count"),
        execution_seconds=update.get("execution_time"),
    )


def release(engine: Engine, run: Run) -> None:
    """Store a run's items as if the source had released them and they had been fetched."""
    kind, keys = run.execution_kind, {key_of(item): item for item in run.items if item.packed is not None}
    agent = AgentVersion(agent_version_id=run.agent_version_id, agent_name="agent", family="family", source={})
    listed = EvaluationRun(
        eval_run_id=run.eval_run_id,
        agent_version_id=run.agent_version_id,
        phase=run.phase,
        kind=kind,
        status="SUCCESS",
        is_over=True,
        counts=True,
        source={},
    )
    with transaction(engine) as session:
        listings.save_agents(session, [agent])
        listings.save_runs(session, [listed])
        listings.save_problems(session, [Problem(problem_id=key, kind=kind, category="product") for key in keys])
        ledger.expect(session, [ExpectedItem(run.eval_run_id, key, key, None, {}) for key in keys], NOW)
    with transaction(engine) as session:
        due = session.execute(LEDGER_IDS, {"run": run.eval_run_id}).all()
        trajectories.add(session, [_fetched(run, keys[key], number) for number, key in due])


def key_of(item: LegacyItem | EpisodeItem) -> str:
    return item.problem_id if isinstance(item, LegacyItem) else item.task_id


def _fetched(run: Run, item: LegacyItem | EpisodeItem, ledger_id: int) -> NewTrajectory:
    known = Evidence(judgement=judgement(item))
    return NewTrajectory(
        ledger_id=ledger_id,
        eval_run_id=run.eval_run_id,
        item_key=key_of(item),
        problem_id=key_of(item),
        kind=run.execution_kind,
        payload=gzip.decompress(item.packed or b""),
        evidence_digest=known.digest,
        evidence=msgspec.to_builtins(known),
    )
