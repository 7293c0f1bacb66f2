"""Recorded values as ORO's public API writes them (field names of oro-sdk 7.0.2).

It decides nothing but what an embargo hides.
"""

from datetime import datetime, timedelta
from typing import Any

from service.replay.recorded import (
    ENVPACK,
    QUALIFYING,
    RACE,
    AgentVersion,
    Archive,
    EpisodeItem,
    LegacyItem,
    Race,
    Run,
    Suite,
)

Json = dict[str, Any]
REVEALED_WITH_RACE = ("secret", "world_seed", "world_pack_sha256", "rejected_attempts")
"""Fields of a seed commitment that are published when the race is over; the beacon's are there before."""


def moment(value: datetime | None) -> str | None:
    """ISO-8601 with offset."""
    return value.isoformat() if value else None


def race(archive: Archive, row: Race) -> Json:
    """RacePublic; winner and spread are null while the race is in flight."""
    qualifiers = archive.qualifiers(row.race_id)
    scores = [run.score for _, run in qualifiers]
    top_half = scores[: max(1, len(scores) // 2)]
    shown = not row.in_flight and bool(qualifiers)
    winner, best = qualifiers[0] if qualifiers else (None, None)
    return {
        "race_id": row.race_id,
        "suite_id": row.suite_id,
        "status": row.status,
        "race_number": row.race_number,
        "qualifying_closes_at": moment(row.started_at),
        "race_started_at": moment(row.started_at),
        "race_completed_at": None if row.in_flight else moment(row.completed_at),
        "winner_agent_version_id": winner.agent_version_id if shown and winner else None,
        "winner_agent_name": winner.agent_name if shown and winner else None,
        "winner_score": best.score if shown and best else None,
        "qualifying_threshold": None,
        "qualifier_count": len(qualifiers),
        "scored_count": len(qualifiers),
        "top50_mean": sum(top_half) / len(top_half) if shown else None,
        "top50_std": None,
        "created_at": moment(row.created_at),
        "projected_completion_at": moment(row.completed_at) if row.in_flight else None,
    }


def qualifiers(archive: Archive, row: Race) -> list[Json]:
    """RaceQualifierPublic rows; scores and ranks are null while the race is in flight."""
    return [
        {
            "agent_version_id": agent.agent_version_id,
            "qualification_type": "SCORED",
            "agent_name": agent.agent_name,
            "miner_hotkey": agent.miner_hotkey,
            "version_number": agent.version_number,
            "qualifying_score": qualifying_score(archive, agent),
            "race_score": None if row.in_flight else run.score,
            "race_rank": None if row.in_flight else rank,
            "is_discarded": agent.is_discarded,
            "weighted_score": None,
            "window": None,
        }
        for rank, (agent, run) in enumerate(archive.qualifiers(row.race_id), 1)
    ]


def seed_commitment(row: Race) -> Json | None:
    """RaceSeedCommitmentResponse; what the reveal publishes is null while the race is in flight."""
    if row.seed_commitment is None:
        return None
    shown = {"race_id": row.race_id, "revealed": not row.in_flight, **row.seed_commitment}
    return shown | dict.fromkeys(REVEALED_WITH_RACE) if row.in_flight else shown


def qualifying_score(archive: Archive, agent: AgentVersion) -> float | None:
    """The score of its first qualifying run; None where it has none."""
    runs = archive.runs_of.get(agent.agent_version_id, [])
    return next((run.score for run in runs if run.phase == QUALIFYING), None)


def agent_version(archive: Archive, agent: AgentVersion, released_at: datetime) -> Json:
    """AgentVersionPublic."""
    return {
        "agent_version_id": agent.agent_version_id,
        "agent_id": agent.agent_id,
        "agent_name": agent.agent_name,
        "miner_hotkey": agent.miner_hotkey,
        "version_number": agent.version_number,
        "submitted_at": moment(agent.submitted_at),
        "released_at": moment(released_at),
        "code_available_at": moment(released_at),
        "suite_id": agent.suite_id,
        "latest_final_score": qualifying_score(archive, agent),
    }


def agent_status(
    archive: Archive, agent: AgentVersion, released_at: datetime | None, code_available_at: datetime | None
) -> Json:
    """AgentVersionStatus; a hidden version may say when its code becomes public."""
    runs = archive.runs_of.get(agent.agent_version_id, [])
    race_scores = [run.score for run in runs if run.phase == RACE and not archive.withheld(run)]
    return {
        "agent_version_id": agent.agent_version_id,
        "agent_name": agent.agent_name,
        "miner_hotkey": agent.miner_hotkey,
        "version_number": agent.version_number,
        "submitted_at": moment(agent.submitted_at),
        "state": "DISCARDED" if agent.is_discarded else "ELIGIBLE",
        "suite_id": agent.suite_id,
        "required_successes": 1,
        "success_count": len(runs),
        "active_count": 0,
        "is_closed": True,
        "final_score": qualifying_score(archive, agent),
        "race_score": race_scores[-1] if race_scores else None,
        "reasoning_coefficient": None,
        "release_state": "RELEASED" if released_at else "HIDDEN",
        "code_available_at": moment(code_available_at),
        "is_active_qualifier": False,
    }


def run(archive: Archive, row: Run) -> Json:
    """EvaluationRunPublic."""
    totals = [item.update.get("inference_total") or 0 for item in row.items if isinstance(item, LegacyItem)]
    in_race = archive.races[row.race_id] if row.race_id else None
    return {
        "eval_run_id": row.eval_run_id,
        "agent_version_id": row.agent_version_id,
        "suite_id": row.suite_id,
        "validator_hotkey": row.validator_hotkey,
        "status": row.status,
        "claimed_at": moment(row.claimed_at),
        "lease_expires_at": moment(row.completed_at + timedelta(minutes=5)),
        "is_included": row.is_included,
        "completed_at": moment(row.completed_at),
        "invalidated_at": moment(row.invalidated_at),
        "validator_score": row.score,
        "reasoning_quality": None,
        "reasoning_coefficient": None,
        "score_components_summary": None,
        "inference_total": sum(totals) if totals else None,
        "phase": row.phase,
        "race_id": row.race_id,
        "race_number": in_race.race_number if in_race else None,
    }


def run_detail(archive: Archive, row: Run) -> Json:
    """EvaluationRunDetail with its items."""
    agent = archive.agents[row.agent_version_id]
    return {
        "eval_run_id": row.eval_run_id,
        "agent_version_id": row.agent_version_id,
        "agent_name": agent.agent_name,
        "validator_hotkey": row.validator_hotkey,
        "status": row.status,
        "version_number": agent.version_number,
        "claimed_at": moment(row.claimed_at),
        "score": None if archive.withheld(row) else row.score,
        "completed_at": moment(row.completed_at),
        "is_included": row.is_included,
        "invalidated_at": moment(row.invalidated_at),
        "execution_kind": row.execution_kind,
        "environment": archive.suites[row.suite_id].environment,
        "items": run_items(archive, row),
    }


def run_items(archive: Archive, row: Run) -> Json:
    """EvaluationItemsRead: without its items while the race is in flight."""
    released = not archive.withheld(row)
    return {
        "eval_run_id": row.eval_run_id,
        "execution_kind": row.execution_kind,
        "detail_released": released,
        "persisted_item_count": len(row.items),
        "expected_item_count": len(row.items),
        "items": [_item(row, item) for item in row.items] if released else [],
    }


def _item(row: Run, item: LegacyItem | EpisodeItem) -> Json:
    identity: Json = {"eval_run_id": row.eval_run_id, "validator_hotkey": row.validator_hotkey}
    if isinstance(item, EpisodeItem):
        named: Json = {"item_id": item.task_id, "item_kind": "envpack_episode", "status": "SUCCESS"}
        return named | item.row | identity | {"episode_result_id": item.episode_result_id}
    status = item.update.get("status", "PENDING")
    named = {"item_id": item.problem_id, "item_kind": "legacy_problem", "status": status, "score": item.score}
    return named | identity


def generated_result(archive: Archive, row: Run) -> Json:
    """GeneratedEvaluationResultRead of an envpack run."""
    items = run_items(archive, row)
    identity = {
        "eval_run_id": row.eval_run_id,
        "agent_version_id": row.agent_version_id,
        "suite_id": row.suite_id,
        "validator_hotkey": row.validator_hotkey,
        "status": row.status,
        "completed_at": moment(row.completed_at),
        "score": row.score if items["detail_released"] else None,
        "execution_kind": ENVPACK,
        "environment": archive.suites[row.suite_id].environment,
        "detail_released": items["detail_released"],
    }
    return {"identity": identity, "items": items}


def problem_progress(row: Run, item: LegacyItem) -> Json:
    """ProblemProgressEntry: what the backend received for one problem. It never names the query."""
    update = item.update
    result = {
        "eval_run_id": row.eval_run_id,
        "validator_hotkey": row.validator_hotkey,
        "status": update.get("status", "PENDING"),
        "score": update.get("score"),
        "score_components": update.get("score_components_summary"),
        "reasoning_score": update.get("reasoning_score"),
        "updated_at": moment(item.updated_at or row.completed_at),
        "inference_failure_count": update.get("inference_failure_count"),
        "inference_total": update.get("inference_total"),
        "execution_time": update.get("execution_time"),
    }
    return {
        "problem_id": item.problem_id,
        "category": item.category,
        "phase": row.phase,
        "race_id": row.race_id,
        "validator_results": [result],
    }


def suite(row: Suite) -> Json:
    """SuitePublic."""
    return {
        "suite_id": row.suite_id,
        "suite_version": row.suite_version,
        "is_active": row.is_active,
        "execution_kind": row.execution_kind,
        "environment": row.environment,
        "benchmark_name": None,
        "benchmark_number": None,
    }


def suite_with_problems(row: Suite) -> Json:
    """SuiteWithProblemsResponse: the qualifying suite with its gold; race problems are in no suite."""
    problems = [
        {"problem_id": problem_id, "suite_id": row.suite_id, "metadata": metadata}
        for problem_id, metadata in sorted(row.problems.items())
    ]
    tasks = [task for _, task in sorted(row.tasks.items())]
    return {"suite": suite(row), "problems": problems, "qualifying_tasks": tasks}
