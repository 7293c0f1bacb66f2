"""The demo archive: byte-reproducible, in the recorded format, large and mixed enough to show every stage something."""

import gzip
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from oro_sdk.models import EpisodeFeedback, EvaluationItemRead

from service.world.demo import DemoSize, write_demo
from service.world.judging import GRADES, recommended

SMALL = DemoSize(families=150, race_problems=9, repeated=3, qualifying_problems=6, episodes=5)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("demo")
    write_demo(directory, 15, SMALL)
    return directory


def test_the_same_seed_writes_the_same_bytes(archive: Path, tmp_path: Path) -> None:
    write_demo(tmp_path, 15, SMALL)
    files = sorted(path.relative_to(archive) for path in archive.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert all((archive / path).read_bytes() == (tmp_path / path).read_bytes() for path in files)


def test_another_seed_writes_other_races(archive: Path, tmp_path: Path) -> None:
    write_demo(tmp_path, 16, SMALL)
    ids = [
        {race["race_id"] for race in json.loads((root / "archive.json").read_text())["races"]}
        for root in (archive, tmp_path)
    ]
    assert not ids[0] & ids[1]


def test_the_description_names_every_folder(archive: Path) -> None:
    described = json.loads((archive / "archive.json").read_text())
    assert [race["execution_kind"] for race in described["races"]] == ["legacy_shoppingbench"] * 2 + ["envpack"]
    assert {race["status"] for race in described["races"]} == {"RACE_COMPLETE"}
    folders = {path.parent.name for path in archive.glob("race-*/*/*.gz")}
    assert folders == set(described["agents"])
    for agent in described["agents"].values():
        assert agent["miner_hotkey"].startswith("5")
        assert len(agent["miner_hotkey"]) == 48
    versions = Counter(agent["agent_version_id"] for agent in described["agents"].values())
    assert max(versions.values()) == 2  # a second validator's run has a folder of its own


def test_every_row_refers_to_a_problem_and_every_object_to_a_row(archive: Path) -> None:
    for folder in sorted(path.parent for path in archive.glob("race-*/*/scores.jsonl.gz")):
        problems, scores, output, updates = (
            {row["problem_id"]: row for row in rows(folder / f"{name}.jsonl.gz")}
            for name in ("problems", "scores", "output", "progress_updates")
        )
        assert set(problems) == set(scores) == set(updates) >= set(output)
        for problem_id, row in scores.items():
            assert row["phase"] in ("QUALIFYING", "RACE")
            assert row["validator_status"] == updates[problem_id]["status"]
            assert (updates[problem_id]["status"] == "SUCCESS") is row["success"]
            assert (problem_id in output) is (row["envelope_status"] is not None)
        for problem_id, envelope in output.items():
            if envelope["dialogue"] and scores[problem_id]["success"]:
                gold = problems[problem_id]["reward"]
                golds = [target["product_id"] for target in (gold if isinstance(gold, list) else [gold])]
                assert recommended(envelope["dialogue"]) == golds


def test_counts_are_null_where_nothing_was_inferred_and_grades_where_nothing_was_judged(archive: Path) -> None:
    updates = [row for path in archive.glob("race-*/*/progress_updates.jsonl.gz") for row in rows(path)]
    grades = Counter(row["reasoning_score"] for row in updates)
    assert set(grades) <= {None, *GRADES}
    assert 0.05 < grades[None] / grades.total() < 0.5
    assert all(row["inference_total"] is None or row["inference_total"] > 0 for row in updates)
    assert all((row["score_components_summary"] is None) is (row["reasoning_score"] is None) for row in updates)
    silent = rows(archive / "race-1" / "gorse" / "progress_updates.jsonl.gz")
    assert {row["inference_total"] for row in silent} == {None}


def test_races_share_some_problems_and_none_with_the_public_suite(archive: Path) -> None:
    drawn: dict[str, set[str]] = defaultdict(set)
    for path in archive.glob("race-*/*/problems.jsonl.gz"):
        for row in rows(path):
            drawn["public" if row["phase"] == "QUALIFYING" else path.parts[-3]].add(row["problem_id"])
    assert {name: len(ids) for name, ids in drawn.items()} == {"public": 6, "race-1": 9, "race-2": 9}
    assert len(drawn["race-1"] & drawn["race-2"]) == 3
    assert not drawn["public"] & (drawn["race-1"] | drawn["race-2"])


def test_episodes_follow_the_public_feedback_schema(archive: Path) -> None:
    runs = Counter()
    for path in archive.glob("race-3/*/episodes.jsonl.gz"):
        for row in rows(path):
            item, feedback = row["item"], row["feedback"]
            assert item["episode_result_id"] == feedback["episode_result_id"]
            assert item["item_id"] == feedback["task_id"]
            assert feedback["schema_version"] == "oro.episode_feedback.v1"
            calls = [call for step in feedback["interaction"] for call in step["calls"]]
            assert feedback["tool_call_count"] == len(calls)
            assert {call["tool_name"] for call in calls} <= {"search", "filter", "message", "place_test_order"}
            placed = [call for call in calls if call["tool_name"] == "place_test_order"]
            assert (feedback["termination_code"] == "placed_order") is bool(placed)
            assert feedback["passed"] is not True or (placed[-1]["done"] and feedback["paid_reward"] == 1.0)
            runs[item["eval_run_id"]] += 1
    assert set(runs.values()) == {SMALL.episodes}
    assert len(runs) == 5  # four players, the first judged by two validators


def test_the_sdk_reads_every_episode_and_loses_nothing(archive: Path) -> None:
    for path in archive.glob("race-3/*/episodes.jsonl.gz"):
        for row in rows(path):
            assert EpisodeFeedback.from_dict(row["feedback"]).to_dict() == row["feedback"]
            assert EvaluationItemRead.from_dict(row["item"]).to_dict() == row["item"]


def test_the_full_demo_has_the_size_it_promises(tmp_path: Path) -> None:
    write_demo(tmp_path)
    scored = sum(len(rows(path)) for path in tmp_path.glob("race-*/*/scores.jsonl.gz"))
    played = sum(len(rows(path)) for path in tmp_path.glob("race-*/*/episodes.jsonl.gz"))
    assert (scored, played) == (17 * 60 + 4 * 30, 5 * 30)
    solvers: dict[str, set[str]] = defaultdict(set)
    for path in tmp_path.glob("race-*/*/scores.jsonl.gz"):
        for row in rows(path):
            if row["phase"] == "RACE" and row["success"]:
                solvers[row["problem_id"]].add(path.parent.name)
    assert len(solvers) == 100
    assert sum(len(agents) >= 3 for agents in solvers.values()) > 95
