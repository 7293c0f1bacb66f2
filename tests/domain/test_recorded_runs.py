"""The filter on the recorded runs, judged without their labels: what each agent's trajectories come out as."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from service.domain.attribution.evidence import Evidence
from service.domain.attribution.provenance import Issuer
from service.domain.filter.rules import SLUICE_1
from service.domain.filter.structure import Verdict, judge
from service.domain.trajectory import ExecutionKind, Judgement, parse
from service.tokenizer import TOKEN_COUNT_METHOD, qwen_token_counter

pytestmark = pytest.mark.shared

CLASSES = {
    "crash_mixed": {"none": 36, "sub_task": 7},
    "hybrid_native": {"mixed": 60},
    "native_tools": {"agentic": 75},
    "ref_flaky": {"agentic": 30},
    "ref_good": {"agentic": 239, "none": 1},
    "ref_hallucinate": {"agentic": 60},
    # mixed: the reference agent itself recommends when the model never did
    "ref_malformed": {"agentic": 31, "mixed": 17, "none": 27},
    "ref_mid": {"agentic": 105},
    "ref_repeats": {"agentic": 42, "mixed": 17, "none": 1},
    "regex_zero": {"scripted": 119, "none": 1},
    "slow_mixed": {"none": 25, "scripted": 5},
    "spoof_echo": {"echoed": 74, "none": 1},
    "spoof_inline": {"forged": 60},
    "sub_classify": {"sub_task": 119, "none": 1},
    "sub_extract_score": {"sub_task": 75},
}
OUTCOMES = {
    "crash_mixed": {"empty": 36, "bare_nan": 7},
    "hybrid_native": {"class_mixed": 50, "not_successful": 10},
    "native_tools": {"kept": 75},
    "ref_flaky": {"kept": 30},
    "ref_good": {"kept": 234, "kept_negative": 5, "empty": 1},
    "ref_hallucinate": {"kept": 24, "kept_negative": 2, "not_successful": 34},
    "ref_malformed": {
        "kept": 4,
        "empty": 27,
        "recommend_count": 17,
        "not_successful": 13,
        "defective_format": 8,
        "class_mixed": 4,
        "think_then_stop": 1,
        "loop": 1,
    },
    "ref_mid": {"kept": 98, "kept_negative": 7},
    "ref_repeats": {"not_successful": 36, "loop": 21, "class_mixed": 2, "empty": 1},
    "regex_zero": {"not_successful": 63, "class_scripted": 56, "empty": 1},
    "slow_mixed": {"empty": 25, "recommend_count": 5},
    "spoof_echo": {"not_successful": 38, "class_echoed": 36, "empty": 1},
    "spoof_inline": {"not_successful": 31, "contradicted": 29},
    "sub_classify": {"class_sub_task": 68, "not_successful": 51, "empty": 1},
    "sub_extract_score": {"class_sub_task": 65, "not_successful": 10},
}
"""Reason of each reject; kept rows under their outcome."""


class Judged(NamedTuple):
    successful: bool
    verdict: Verdict


def lines(path: Path) -> Iterator[dict]:
    with gzip.open(path, "rt") as rows:
        yield from map(json.loads, rows)


@pytest.fixture(scope="module")
def judged(shared_data: Path) -> dict[str, list[Judged]]:
    count_tokens = qwen_token_counter(TOKEN_COUNT_METHOD)
    found: dict[str, list[Judged]] = {}
    for folder in sorted(path for path in (shared_data / "runs").iterdir() if path.is_dir()):
        reports = {row["problem_id"]: row for row in lines(folder / "progress_updates.jsonl.gz")}
        rows = found.setdefault(folder.name, [])
        for envelope in lines(folder / "output.jsonl.gz"):
            report = reports[envelope["problem_id"]]
            judgement = Judgement(
                status=report["status"],
                score=report["score"],
                reasoning_score=report["reasoning_score"],
                inference_total=report["inference_total"],
                inference_failure_count=report["inference_failure_count"],
                execution_seconds=report["execution_time"],
            )
            payload = json.dumps(envelope["dialogue"] or []).encode()
            trajectory = parse(payload, ExecutionKind.LEGACY)
            verdict = judge(trajectory, Evidence(judgement=judgement), SLUICE_1, count_tokens)
            rows.append(Judged(report["status"] == "SUCCESS", verdict))
    return found


def test_every_object_has_one_verdict(judged: dict[str, list[Judged]]) -> None:
    assert sum(map(len, judged.values())) == 1_228
    assert sum(row.verdict.structural_class == "none" for rows in judged.values() for row in rows) == 93


def test_classes_by_agent(judged: dict[str, list[Judged]]) -> None:
    table = {agent: dict(Counter(row.verdict.structural_class for row in rows)) for agent, rows in judged.items()}
    assert table == CLASSES


def test_outcomes_by_agent(judged: dict[str, list[Judged]]) -> None:
    def label(verdict: Verdict) -> str:
        return verdict.reason if verdict.outcome == "rejected" else verdict.outcome

    table = {agent: dict(Counter(label(row.verdict) for row in rows)) for agent, rows in judged.items()}
    assert table == OUTCOMES


def test_honest_agents_keep_their_successes(judged: dict[str, list[Judged]]) -> None:
    for agent in ("ref_good", "ref_mid", "ref_flaky", "native_tools"):
        successes = [row.verdict.outcome for row in judged[agent] if row.successful]
        assert successes.count("kept") / len(successes) >= 0.95


def test_every_hybrid_row_shows_the_calls_of_its_code(judged: dict[str, list[Judged]]) -> None:
    for row in judged["hybrid_native"]:
        assert {call.issuer for call in row.verdict.calls} == {Issuer.MODEL, Issuer.HARNESS}
