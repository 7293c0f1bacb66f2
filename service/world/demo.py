"""The demo archive: generated races in the folder format the replay server reads. Same seed, same bytes.

Two completed legacy races over one public qualifying suite, and one completed envpack race. It plays and writes; what
the runs are worth is for the rest of Sluice to find out.
"""

import gzip
import hashlib
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from service.domain.sn15.commitment import QUICKNET, first_round, round_time
from service.domain.sn15.scoring import Category
from service.world.catalogue import generate_catalogue
from service.world.episodes import Player, Task, play, tasks
from service.world.judging import Judge
from service.world.problems import Problem, generate_problems, raw_problem
from service.world.roster import LEGACY_RACES, PLAYERS, Entry
from service.world.search import Search

LEGACY_SUITE, ENVPACK_SUITE = 3, 144
FIRST_RACE = datetime(2026, 5, 4, 19, 0, tzinfo=UTC)
RACE_LENGTH = timedelta(hours=8)
ENVIRONMENT = {
    "display_name": "Small shopping world",
    "catalog_epoch": "small-world-1",
    "contract_version": "2",
    "runtime_version": "3.3.0",
    "result_schema_version": "oro.environment_result.v3",
}
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_NAMESPACE = UUID("de300de5-0000-5000-8000-736c75696365")


@dataclass(frozen=True, slots=True)
class DemoSize:
    """How much to generate; problems per race, of which `repeated` come back in the next."""

    families: int = 420
    race_problems: int = 60
    repeated: int = 20
    qualifying_problems: int = 30
    episodes: int = 30


def write_demo(directory: Path, seed: int = 15, size: DemoSize = DemoSize()) -> None:
    """Write the archive into `directory`, which is created.

    Raises:
        SluiceError: BAD_INPUT when `size` asks for more problems than its catalogue can hold.
    """
    demo = _Demo(directory, seed, size)
    description = {"suites": _suites(), "races": [], "agents": {}}
    for number, entries in enumerate(LEGACY_RACES):
        demo.write_legacy_race(number, entries, description)
    demo.write_envpack_race(len(LEGACY_RACES), description)
    (directory / "archive.json").write_text(json.dumps(description, indent=1, sort_keys=True), encoding="utf-8")


class _Demo:
    """The world of one seed, and the folder it is written to."""

    def __init__(self, directory: Path, seed: int, size: DemoSize) -> None:
        self._directory = directory
        self._seed = seed
        self._size = size
        catalogue = generate_catalogue(seed, size.families)
        self._search = Search(catalogue)
        self._judge = Judge(catalogue)
        fresh = (size.race_problems - size.repeated) * (len(LEGACY_RACES) - 1)
        count = size.qualifying_problems + size.race_problems + fresh + 3 * size.episodes
        problems = generate_problems(catalogue, seed, count)
        random.Random(f"deal/{seed}").shuffle(problems)
        self._qualifying = _balanced(problems, size.qualifying_problems)
        self._pool = [problem for problem in problems if problem not in self._qualifying]
        self._tasks = tasks(self._pool[size.race_problems + fresh :], self._search, seed)[: size.episodes]

    def write_legacy_race(self, number: int, entries: Sequence[Entry], description: dict[str, Any]) -> None:
        """Run every entry on the race's problems, some on the qualifying suite too."""
        slug = f"race-{number + 1}"
        description["races"].append(_race(slug, number, LEGACY_SUITE, "legacy_shoppingbench", self._seed))
        step = self._size.race_problems - self._size.repeated
        drawn = self._pool[number * step : number * step + self._size.race_problems]
        start = _start(number)
        for entry in entries:
            described = _described(entry.agent.slug, entry.version, self._seed)
            validator = _hotkey(f"validator/{entry.validator}/{self._seed}")
            description["agents"][entry.folder] = {**described, "validator_hotkey": validator}
            phases = [("QUALIFYING", self._qualifying, start - timedelta(hours=15))] if entry.qualifies else []
            phases.append(("RACE", drawn, start + timedelta(minutes=5 * entry.validator)))
            rows = [row for phase, problems, at in phases for row in self._runs(slug, entry, phase, problems, at)]
            folder = self._directory / slug / entry.folder
            for name in ("output", "problems", "scores", "progress_updates"):
                _write(folder / f"{name}.jsonl.gz", [row[name] for row in rows if row[name] is not None])

    def _runs(
        self, race: str, entry: Entry, phase: str, problems: Sequence[Problem], start: datetime
    ) -> Iterable[dict[str, Any]]:
        suite = f"v{LEGACY_SUITE}" if phase == "QUALIFYING" else race
        for index, problem in enumerate(problems):
            rng = random.Random(f"{self._seed}/{race}/{entry.folder}/{phase}/{problem.problem_id}")
            start_ms = start.timestamp() * 1000 + 20_000 * index + rng.randrange(5_000)
            envelope = entry.agent.run(problem, self._search, rng, start_ms)
            ruling = self._judge.judge(problem, envelope, entry.agent.harness, rng)
            stamped = {"suite": suite, "phase": phase}
            title = f"{problem.category.value.capitalize()} {index + 1}"
            yield {
                "output": envelope,
                "problems": {**raw_problem(problem, title, suite), "phase": phase},
                "scores": ruling.scores | stamped,
                "progress_updates": ruling.update,
            }

    def write_envpack_race(self, number: int, description: dict[str, Any]) -> None:
        """Play every task with every player; the first player is judged by two validators."""
        slug = f"race-{number + 1}"
        description["races"].append(_race(slug, number, ENVPACK_SUITE, "envpack", self._seed))
        for place, player in enumerate(PLAYERS):
            description["agents"][player.slug] = _described(player.slug, 1, self._seed)
            rows = [
                row
                for validator in range(2 if place == 0 else 1)
                for row in self._episodes(slug, player, validator, self._tasks)
            ]
            _write(self._directory / slug / player.slug / "episodes.jsonl.gz", rows)

    def _episodes(self, race: str, player: Player, validator: int, drawn: Sequence[Task]) -> Iterable[dict[str, Any]]:
        run_id = _id(f"run/{self._seed}/{race}/{player.slug}/{validator}")
        hotkey = _hotkey(f"validator/{validator}/{self._seed}")
        for task in drawn:
            rng = random.Random(f"{self._seed}/{race}/{player.slug}/{validator}/{task.task_id}")
            log, ending = play(player, task, self._search, rng)
            feedback = log.feedback(ending, "RACE", run_id)
            yield {"phase": "RACE", "item": log.item(ending, run_id, hotkey), "feedback": feedback}


def _balanced(problems: Sequence[Problem], count: int) -> list[Problem]:
    """`count` problems, as many of each category."""
    each = count // len(Category)
    return [
        problem
        for category in Category
        for problem in [candidate for candidate in problems if candidate.category is category][:each]
    ]


def _suites() -> list[dict[str, Any]]:
    legacy = {"suite_id": LEGACY_SUITE, "suite_version": 3, "execution_kind": "legacy_shoppingbench"}
    envpack = {"suite_id": ENVPACK_SUITE, "suite_version": 12, "execution_kind": "envpack"}
    return [
        {**legacy, "is_active": False, "environment": None},
        {**envpack, "is_active": True, "environment": ENVIRONMENT},
    ]


def _start(number: int) -> datetime:
    return FIRST_RACE + timedelta(days=number)


def _race(slug: str, number: int, suite_id: int, execution_kind: str, seed: int) -> dict[str, Any]:
    return {
        "slug": slug,
        "race_id": _id(f"race/{seed}/{slug}"),
        "race_number": number + 1,
        "suite_id": suite_id,
        "status": "RACE_COMPLETE",
        "execution_kind": execution_kind,
        "race_started_at": _start(number).isoformat(),
        "race_completed_at": (_start(number) + RACE_LENGTH).isoformat(),
        "seed_commitment": _seed_commitment(slug, number, seed),
    }


def _seed_commitment(slug: str, number: int, seed: int) -> dict[str, Any]:
    """A commitment that keeps every rule, but for the beacon's signature: that one is made up."""
    rng = random.Random(f"seed commitment/{seed}/{slug}")
    secret, signature = rng.randbytes(32), rng.randbytes(48)
    randomness = hashlib.sha256(signature).digest()
    offset = timedelta(minutes=10)
    drand_round = first_round(_start(number) + offset)
    return {
        "scheme": "commit-then-beacon",
        "secret_sha256": hashlib.sha256(secret).hexdigest(),
        "drand_chain_hash": QUICKNET,
        "drand_offset_seconds": int(offset.total_seconds()),
        "drand_round": drand_round,
        "drand_round_time": round_time(drand_round).isoformat(),
        "committed_at": (_start(number) - timedelta(hours=16)).isoformat(),
        "drand_signature": signature.hex(),
        "drand_randomness": randomness.hex(),
        "secret": secret.hex(),
        "world_seed": hashlib.sha256(secret + randomness).hexdigest(),
        "world_pack_sha256": hashlib.sha256(f"world pack/{seed}/{slug}".encode()).hexdigest(),
        "rejected_attempts": [],
    }


def _described(slug: str, version: int, seed: int) -> dict[str, Any]:
    return {
        "agent_version_id": _id(f"agent_version/{seed}/{slug}/{version}"),
        "agent_id": _id(f"agent/{seed}/{slug}"),
        "agent_name": slug,
        "miner_hotkey": _hotkey(f"miner/{seed}/{slug}"),
        "version_number": version,
    }


def _id(name: str) -> str:
    return str(uuid5(_NAMESPACE, name))


def _hotkey(name: str) -> str:
    """A string of an ss58 address's look; no key stands behind it."""
    return "5" + "".join(random.Random(name).choices(_BASE58, k=47))


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_bytes(gzip.compress(data.encode(), mtime=0))
