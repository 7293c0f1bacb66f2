"""Writes small recorded folders, by hand: each file in the shape that SN15's own code leaves it in.

Of the two agents of a legacy race, `steady` answers everything; `brittle` leaves one of each kind of wreck.
"""

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

LEGACY_SUITE = 4
ENVPACK_SUITE = 9
QUALIFYING_PROBLEMS = 3
RACE_PROBLEMS = 5
EPISODES = 2
ENVIRONMENT = {
    "display_name": "Small market",
    "catalog_epoch": "market-1",
    "contract_version": "2",
    "runtime_version": "3.3.0",
    "result_schema_version": "1",
}
WRECKS = ("no_envelope", "failed", "null_dialogue", "bare_nan", "fine")
"""What becomes of `brittle`'s race problems, in order: four objects, two of them `[]`, one with a bare NaN."""


def problem_id(number: int) -> str:
    return str(uuid5(NAMESPACE_URL, f"problem/{number}"))


def dialogue(number: int, think: object = "I look.") -> list[dict[str, Any]]:
    call = {"name": "find_product", "parameters": {"q": f"thing {number}"}, "tool_call_id": "abcd1234", "result": []}
    return [
        {
            "completion": {"reasoning_content": "", "content": "", "message": {"think": think, "tool_call": [call]}},
            "extra_info": {"step": 1, "query": f"Find thing {number}", "timestamp": 1_778_000_000_000},
        }
    ]


def write_lines(path: Path, rows: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def write_legacy_agent(folder: Path, first_race_problem: int, *, brittle: bool) -> None:
    qualifying = list(range(QUALIFYING_PROBLEMS))
    race = list(range(first_race_problem, first_race_problem + RACE_PROBLEMS))
    problems, scores, updates, envelopes = [], [], [], []
    for number in qualifying + race:
        wreck = WRECKS[number - first_race_problem] if brittle and number in race else "fine"
        fine = wreck in ("fine", "bare_nan")
        name = problem_id(number)
        reward = {"product_id": str(1000 + number), "title": [f"Thing {number}"]}
        problems.append(
            {"problem_id": name, "query": f"Find thing {number}", "category": "Product", "reward": reward, "suite": "x"}
        )
        phase = "QUALIFYING" if number in qualifying else "RACE"
        scores.append({"problem_id": name, "category": "product", "suite": "x", "phase": phase})
        status = {"failed": "FAILED", "no_envelope": "TIMED_OUT", "null_dialogue": "TIMED_OUT"}.get(wreck, "SUCCESS")
        updates.append(
            {
                "problem_id": name,
                "status": status,
                "score": 1.0 if fine else 0.0,
                "score_components_summary": None,
                "reasoning_score": None,
                "inference_failure_count": 0 if fine else None,
                "inference_total": 2 if fine else None,
                "execution_time": 1.5 if fine else None,
            }
        )
        if wreck == "no_envelope":
            continue
        steps = dialogue(number, float("nan")) if wreck == "bare_nan" else dialogue(number)
        envelopes.append(
            {
                "problem_id": name,
                "status": "FAILED" if wreck == "failed" else "SUCCESS",
                "execution_time": 1.5,
                "inference_failure_count": 0,
                "inference_total": 2,
                "error": None,
                "dialogue": steps if fine else None,
            }
        )
    write_lines(folder / "problems.jsonl.gz", problems)
    write_lines(folder / "scores.jsonl.gz", scores)
    write_lines(folder / "progress_updates.jsonl.gz", updates)
    write_lines(folder / "output.jsonl.gz", envelopes)


def write_envpack_agent(folder: Path) -> None:
    rows = []
    for phase in ("QUALIFYING", "RACE"):
        for number in range(EPISODES):
            task = f"TF8-composed-{phase[0]}{number}"
            call = {"call_id": "1", "tool_name": "search", "args": {"q": "lamp"}, "observation": {"hits": []}}
            rows.append(
                {
                    "phase": phase,
                    "item": {
                        "item_id": task,
                        "item_kind": "envpack_episode",
                        "status": "completed",
                        "family": "composed",
                        "verdict_status": "passed" if number == 0 else "failed",
                        "paid_reward": 1.0 if number == 0 else 0.0,
                        "step_count": 1,
                    },
                    "feedback": {
                        "schema_version": "oro.episode_feedback.v1",
                        "task_id": task,
                        "family": "composed",
                        "phase": phase,
                        "outcome": "completed",
                        "step_count": 1,
                        "tool_call_count": 1,
                        "search_call_count": 1,
                        "termination_code": "placed_order",
                        "query": f"A lamp, please ({number})",
                        "passed": number == 0,
                        "paid_reward": 1.0 if number == 0 else 0.0,
                        "interaction": [{"step_index": 0, "turn": 0, "calls": [call], "message": None}],
                        "observable_issues": [],
                    },
                }
            )
    write_lines(folder / "episodes.jsonl.gz", rows)


def seed_commitment(number: int) -> dict[str, Any]:
    """A record whose hashes hold; its signature is no beacon's."""
    secret, signature = bytes([number]) * 32, bytes([number]) * 48
    randomness = hashlib.sha256(signature).digest()
    return {
        "scheme": "commit-then-beacon",
        "secret_sha256": hashlib.sha256(secret).hexdigest(),
        "drand_chain_hash": "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971",
        "drand_offset_seconds": 0,
        # The first of June 2026, 19:00 UTC is 1780340400 in Unix time: 87537033 s after round 1, or 29179011 rounds.
        "drand_round": 29179012 + 28800 * (number - 1),
        "drand_round_time": f"2026-06-0{number}T19:00:00+00:00",
        "committed_at": f"2026-06-0{number}T03:00:00+00:00",
        "drand_signature": signature.hex(),
        "drand_randomness": randomness.hex(),
        "secret": secret.hex(),
        "world_seed": hashlib.sha256(secret + randomness).hexdigest(),
        "world_pack_sha256": "ab" * 32,
        "rejected_attempts": [{"attempt": 0, "reason": "too easy", "archive_sha256": "cd" * 32}],
    }


def race_row(slug: str, number: int, suite_id: int, status: str, kind: str) -> dict[str, Any]:
    over = status == "RACE_COMPLETE"
    return {
        "slug": slug,
        "race_id": str(uuid5(NAMESPACE_URL, slug)),
        "race_number": number,
        "suite_id": suite_id,
        "status": status,
        "race_started_at": f"2026-06-0{number}T19:00:00+00:00",
        "race_completed_at": f"2026-06-0{number + 1}T03:00:00+00:00" if over else None,
        "execution_kind": kind,
        "seed_commitment": None if number == 1 else seed_commitment(number),
    }


def write_recording(directory: Path) -> Path:
    """Three races: legacy and complete, legacy and running, envpack and complete. The first has no seed commitment.

    A legacy agent has 3 + 5 items: `steady` 8 objects, `brittle` 7. So 2 x 16 + 4 items and 2 x 15 + 4 objects.
    """
    legacy, envpack = "legacy_shoppingbench", "envpack"
    races = [
        race_row("monday", 1, LEGACY_SUITE, "RACE_COMPLETE", legacy),
        race_row("tuesday", 2, LEGACY_SUITE, "RACE_RUNNING", legacy),
        race_row("market", 3, ENVPACK_SUITE, "RACE_COMPLETE", envpack),
    ]
    agents = {}
    for slug, first in (("monday", 10), ("tuesday", 20)):
        for name in ("steady", "brittle"):
            agent = f"{slug}_{name}"
            agents[agent] = {"agent_version_id": str(uuid5(NAMESPACE_URL, agent)), "agent_name": name}
            write_legacy_agent(directory / slug / agent, first, brittle=name == "brittle")
    (directory / "monday" / "monday_steady" / "agent.py").write_text("def agent_main(problem):\n    return []\n")
    write_envpack_agent(directory / "market" / "trader")
    suites = [
        {"suite_id": LEGACY_SUITE, "suite_version": 4, "execution_kind": legacy, "is_active": False},
        {
            "suite_id": ENVPACK_SUITE,
            "suite_version": 9,
            "execution_kind": envpack,
            "is_active": True,
            "environment": ENVIRONMENT,
        },
    ]
    described = {"suites": suites, "races": races, "agents": agents}
    (directory / "archive.json").write_text(json.dumps(described))
    return directory
