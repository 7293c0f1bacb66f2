"""What is read from a recorded folder: counts, bytes as they were written, ids that never change."""

import gzip
import json
from pathlib import Path

import pytest

from service.errors import SluiceError
from service.replay.archive import read_archive
from service.replay.recorded import Archive, LegacyItem
from tests.replay.recording import (
    EPISODES,
    LEGACY_SUITE,
    QUALIFYING_PROBLEMS,
    dialogue,
    problem_id,
    write_legacy_agent,
    write_lines,
)


def objects(archive: Archive) -> list[bytes]:
    return [gzip.decompress(item.packed) for item in archive.legacy.values() if item.packed is not None]


def test_counts_of_the_generated_folder(recording: Path) -> None:
    archive = read_archive(recording)
    # 2 legacy races x 2 agents x (3 + 5) problems; brittle leaves no envelope for one of them in either race.
    assert len(archive.legacy) == 32
    assert len(objects(archive)) == 30
    assert len(archive.episodes) == 2 * EPISODES
    assert archive.object_count == 34
    # failed and null dialogue, once in either race.
    assert objects(archive).count(b"[]") == 4
    assert sum(b"NaN" in payload for payload in objects(archive)) == 2


def test_the_suite_shows_qualifying_problems_only(recording: Path) -> None:
    suite = read_archive(recording).suites[LEGACY_SUITE]
    assert sorted(suite.problems) == sorted(problem_id(number) for number in range(QUALIFYING_PROBLEMS))
    assert all("reward" in metadata and "query" in metadata for metadata in suite.problems.values())


def test_object_bytes_are_those_of_the_recorded_line(tmp_path: Path) -> None:
    # A bare NaN, an escape and the spacing must come out as they went in.
    steps = '[{"think": NaN, "title": "\\u3010caf\\u00e9", "price": 1.50}]'
    folder = tmp_path / "agent"
    write_lines(folder / "scores.jsonl.gz", [{"problem_id": problem_id(1), "suite": "v3"}])
    line = f'{{"problem_id": "{problem_id(1)}", "status": "SUCCESS", "dialogue": {steps}}}\n'
    (folder / "output.jsonl.gz").write_bytes(gzip.compress(line.encode()))
    assert objects(read_archive(tmp_path)) == [steps.replace("1.50", "1.5").encode()]


def test_the_last_envelope_counts_and_bad_lines_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "agent"
    write_legacy_agent(folder, 10, brittle=False)
    envelope = {"problem_id": problem_id(10), "status": "SUCCESS", "dialogue": dialogue(99)}
    written = gzip.decompress((folder / "output.jsonl.gz").read_bytes())
    torn = written + b"\0\0" + json.dumps(envelope).encode() + b"\n" + b'{"problem_id": "cut sh\n' + b"[1]\n"
    (folder / "output.jsonl.gz").write_bytes(gzip.compress(torn))
    archive = read_archive(tmp_path)
    [item] = [item for (_, name), item in archive.legacy.items() if name == problem_id(10)]
    assert isinstance(item, LegacyItem)
    assert item.packed is not None
    assert json.loads(gzip.decompress(item.packed)) == dialogue(99)
    assert archive.unreadable_lines == 2


def test_ids_depend_on_names_alone(recording: Path) -> None:
    first, second = read_archive(recording), read_archive(recording)
    assert list(first.runs) == list(second.runs)
    assert first.legacy == second.legacy


def test_a_folder_without_races_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SluiceError, match="BAD_INPUT"):
        read_archive(tmp_path)


@pytest.mark.shared
def test_counts_of_the_recorded_runs(shared_data: Path) -> None:
    archive = read_archive(shared_data / "runs")
    # 1,245 scored problems of 15 agents; crash_mixed has no envelope for 17 of its 60.
    assert len(archive.legacy) == 1245
    assert archive.object_count == 1228
    # 85 FAILED or TIMED_OUT envelopes and 8 null dialogues.
    assert objects(archive).count(b"[]") == 93
    assert sum(b"NaN" in payload for payload in objects(archive)) == 7
    # ref_flaky and slow_mixed ran the public suite only: in no race, yet with a qualifying run each.
    [race_id] = archive.races
    assert len(archive.qualifiers(race_id)) == 13
    assert len(archive.agents) == 15
    assert len(archive.suites[3].problems) == 30
    assert archive.unreadable_lines == 0
