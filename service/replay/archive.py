"""Read a folder of recorded races into an Archive. It judges nothing and keeps bytes as they were written.

Two layouts: agent folders directly below the root (one completed race; rows of suite v3 are the qualifying run), or
`archive.json` beside `<race>/<agent>/`. Ids that a folder does not give are derived from names, so they never change.
"""

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from service.errors import ErrorCode, SluiceError
from service.replay.recorded import (
    ENVPACK,
    LEGACY,
    QUALIFYING,
    RACE,
    RACE_COMPLETE,
    AgentVersion,
    Archive,
    EpisodeItem,
    LegacyItem,
    Race,
    Run,
    Suite,
    derived_id,
)

_PUBLIC_SUITE = "v3"
"""In a folder without phases, the suite whose problems (and rewards) were public: the qualifying one."""
_UNDATED_START = datetime(2026, 5, 4, 19, 0, tzinfo=UTC)
"""Stands for a start the folder does not give: the hour at which a race of that time began."""
_RACE_LENGTH = timedelta(hours=8)
_GZIP_LEVEL = 6


class _Place(NamedTuple):
    """Where an agent folder belongs."""

    folder: Path
    race: Race
    described: dict[str, Any]


def read_archive(directory: Path) -> Archive:
    """Index a recorded folder.

    Raises:
        SluiceError: BAD_INPUT when the folder holds no recorded race.
    """
    described = directory / "archive.json"
    archive = Archive()
    if described.is_file():
        places = list(_described_places(archive, directory, json.loads(described.read_bytes())))
    else:
        places = list(_bare_places(archive, directory))
    if not places:
        raise SluiceError(ErrorCode.BAD_INPUT, f"{directory} holds no recorded race", directory=str(directory))
    for place in places:
        _read_agent(archive, place)
    return archive


def _bare_places(archive: Archive, directory: Path) -> Iterator[_Place]:
    race = Race(
        slug=directory.name,
        race_id=derived_id("race", directory.name),
        race_number=1,
        suite_id=3,
        status=RACE_COMPLETE,
        execution_kind=LEGACY,
        created_at=_UNDATED_START - timedelta(hours=16),
        started_at=_UNDATED_START,
        completed_at=_UNDATED_START + _RACE_LENGTH,
    )
    archive.races[race.race_id] = race
    archive.suites[3] = Suite(3, 3, LEGACY, is_active=True, environment=None)
    for folder in _agent_folders(directory):
        yield _Place(folder, race, {})


def _described_places(archive: Archive, directory: Path, description: dict[str, Any]) -> Iterator[_Place]:
    for row in description.get("suites", []):
        suite = Suite(
            suite_id=row["suite_id"],
            suite_version=row.get("suite_version", row["suite_id"]),
            execution_kind=row.get("execution_kind", LEGACY),
            is_active=row.get("is_active", False),
            environment=row.get("environment"),
        )
        archive.suites[suite.suite_id] = suite
    agents = description.get("agents", {})
    for row in description.get("races", []):
        race = _race(row)
        archive.races[race.race_id] = race
        archive.suites.setdefault(
            race.suite_id, Suite(race.suite_id, race.suite_id, race.execution_kind, is_active=False, environment=None)
        )
        for folder in _agent_folders(directory / race.slug):
            yield _Place(folder, race, agents.get(folder.name, {}))


def _race(row: dict[str, Any]) -> Race:
    started = _moment(row.get("race_started_at"))
    return Race(
        slug=row["slug"],
        race_id=row.get("race_id") or derived_id("race", row["slug"]),
        race_number=row.get("race_number"),
        suite_id=row["suite_id"],
        status=row.get("status", RACE_COMPLETE),
        execution_kind=row.get("execution_kind", LEGACY),
        created_at=(started or _UNDATED_START) - timedelta(hours=16),
        started_at=started,
        completed_at=_moment(row.get("race_completed_at")),
        seed_commitment=row.get("seed_commitment"),
    )


def _agent_folders(directory: Path) -> list[Path]:
    wanted = ("scores.jsonl.gz", "episodes.jsonl.gz")
    if not directory.is_dir():
        return []
    return sorted(child for child in directory.iterdir() if any((child / name).is_file() for name in wanted))


def _read_agent(archive: Archive, place: _Place) -> None:
    agent = _agent_version(place)
    archive.agents.setdefault(agent.agent_version_id, agent)
    if (place.folder / "episodes.jsonl.gz").is_file():
        _read_episodes(archive, place, agent.agent_version_id)
    else:
        _read_problems(archive, place, agent.agent_version_id)


def _agent_version(place: _Place) -> AgentVersion:
    slug, described = place.folder.name, place.described
    return AgentVersion(
        agent_version_id=described.get("agent_version_id") or derived_id("agent_version", slug),
        agent_id=described.get("agent_id") or derived_id("agent", slug),
        agent_name=described.get("agent_name") or slug,
        miner_hotkey=described.get("miner_hotkey") or _hotkey("miner", slug),
        version_number=described.get("version_number") or 1,
        suite_id=place.race.suite_id,
        submitted_at=place.race.created_at,
        code=_agent_code(place.folder),
        code_available_at=_moment(described.get("code_available_at")),
    )


def _agent_code(folder: Path) -> bytes | None:
    for path in (folder / "agent.py", folder.parent.parent / "agent_code" / f"{folder.name}.py"):
        if path.is_file():
            return path.read_bytes()
    return None


def _read_problems(archive: Archive, place: _Place, agent_version_id: str) -> None:
    problems = {row["problem_id"]: row for row in _rows(archive, place.folder / "problems.jsonl.gz")}
    updates = {row["problem_id"]: row for row in _rows(archive, place.folder / "progress_updates.jsonl.gz")}
    packed = _packed_dialogues(archive, place.folder / "output.jsonl.gz")
    suite = archive.suites[place.race.suite_id]
    by_phase: dict[str, list[LegacyItem]] = defaultdict(list)
    for row in _rows(archive, place.folder / "scores.jsonl.gz"):
        problem_id = row["problem_id"]
        phase = row.get("phase") or (QUALIFYING if row.get("suite") == _PUBLIC_SUITE else RACE)
        problem = problems.get(problem_id, {})
        by_phase[phase].append(
            LegacyItem(
                problem_id=problem_id,
                category=problem.get("category") or row.get("category"),
                update=updates.get(problem_id, {"status": "PENDING"}),
                packed=packed.get(problem_id),
            )
        )
        if phase == QUALIFYING and problem:
            hidden = ("problem_id", "suite", "phase")
            suite.problems[problem_id] = {key: value for key, value in problem.items() if key not in hidden}
    for phase, items in by_phase.items():
        _add_run(archive, place, agent_version_id, phase, LEGACY, tuple(items))


def _packed_dialogues(archive: Archive, path: Path) -> dict[str, bytes]:
    """problem_id -> the object: gzip of the dialogue list, `[]` where there is none.

    The last envelope of a problem counts.
    `json` both ways is what the uploader does: a bare NaN stays bare, and the bytes are those of the recorded line.
    """
    packed: dict[str, bytes] = {}
    for envelope in _rows(archive, path):
        if "problem_id" not in envelope:
            archive.unreadable_lines += 1
            continue
        dialogue = envelope.get("dialogue") if envelope.get("status") == "SUCCESS" else None
        packed[envelope["problem_id"]] = _gzip(json.dumps(dialogue or []).encode())
    return packed


def _read_episodes(archive: Archive, place: _Place, agent_version_id: str) -> None:
    suite = archive.suites[place.race.suite_id]
    by_run: dict[tuple[str, str | None], list[EpisodeItem]] = defaultdict(list)
    for line in _rows(archive, place.folder / "episodes.jsonl.gz"):
        phase, row, feedback = line.get("phase", RACE), line["item"], line["feedback"]
        task_id = feedback.get("task_id") or row["item_id"]
        episode_result_id = (
            row.get("episode_result_id")
            or feedback.get("episode_result_id")
            or derived_id("episode", place.race.slug, place.folder.name, phase, task_id)
        )
        feedback = feedback | {"episode_result_id": episode_result_id, "task_id": task_id}
        by_run[phase, row.get("eval_run_id")].append(
            EpisodeItem(episode_result_id, task_id, row, _gzip(json.dumps(feedback).encode()))
        )
        if phase == QUALIFYING:
            family = feedback.get("family") or row.get("family") or ""
            suite.tasks[task_id] = {"task_id": task_id, "family": family, "goal_text": feedback.get("query") or ""}
    for (phase, eval_run_id), items in by_run.items():
        _add_run(archive, place, agent_version_id, phase, ENVPACK, tuple(items), eval_run_id)


def _add_run(
    archive: Archive,
    place: _Place,
    agent_version_id: str,
    phase: str,
    kind: str,
    items: tuple[LegacyItem, ...] | tuple[EpisodeItem, ...],
    eval_run_id: str | None = None,
) -> None:
    race = place.race
    start = race.started_at or _UNDATED_START
    if phase == QUALIFYING:
        start = race.created_at + timedelta(hours=1)
    hotkeys = [item.row.get("validator_hotkey") for item in items if isinstance(item, EpisodeItem)]
    hotkeys.append(place.described.get("validator_hotkey"))
    archive.add(
        Run(
            eval_run_id=eval_run_id or derived_id("run", race.slug, place.folder.name, phase),
            agent_version_id=agent_version_id,
            suite_id=race.suite_id,
            validator_hotkey=next((str(key) for key in hotkeys if key), _hotkey("validator", race.slug)),
            phase=phase,
            race_id=race.race_id if phase == RACE else None,
            execution_kind=kind,
            claimed_at=start,
            completed_at=start + timedelta(hours=1),
            items=items,
        )
    )


def _rows(archive: Archive, path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a gzip'd JSONL file; NUL bytes are dropped, lines that still do not parse are counted."""
    if not path.is_file():
        return
    with gzip.open(path, "rb") as lines:
        for line in lines:
            text = line.replace(b"\0", b"").strip()
            if not text:
                continue
            try:
                row = json.loads(text)
            except ValueError:
                row = None
            if isinstance(row, dict):
                yield row
            else:
                archive.unreadable_lines += 1


def _gzip(payload: bytes) -> bytes:
    return gzip.compress(payload, _GZIP_LEVEL, mtime=0)


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _hotkey(role: str, name: str) -> str:
    """A synthetic address, plainly not one of the chain."""
    return f"5{role.capitalize()}{re.sub('[^A-Za-z0-9]', '', name)}".ljust(48, "x")[:48]
