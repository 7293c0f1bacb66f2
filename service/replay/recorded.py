"""What a recorded folder holds, as values: suites, races, agent versions, runs and their items.

Not a reader (archive.py) and not the wire (shapes.py). Object bytes are kept as they will be served, compressed.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

LEGACY = "legacy_shoppingbench"
ENVPACK = "envpack"
QUALIFYING = "QUALIFYING"
RACE = "RACE"
RACE_COMPLETE = "RACE_COMPLETE"
RACE_RUNNING = "RACE_RUNNING"
QUALIFYING_OPEN = "QUALIFYING_OPEN"
IN_FLIGHT = frozenset({QUALIFYING_OPEN, RACE_RUNNING})
"""Race statuses under which a race's scores and artifacts are withheld."""

_NAMESPACE = UUID("5a1c0de5-0015-5015-8015-000000000015")


def derived_id(*names: str) -> str:
    """A UUID that depends on the names alone: the same folder gets the same ids on every machine."""
    return str(uuid5(_NAMESPACE, "/".join(names)))


@dataclass(slots=True)
class Suite:
    """One suite. `problems` maps problem_id to its public metadata, `tasks` task_id to its public label."""

    suite_id: int
    suite_version: int
    execution_kind: str
    is_active: bool
    environment: dict[str, Any] | None
    problems: dict[str, dict[str, Any]] = field(default_factory=dict)
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Race:
    """One competition; its status decides what may be shown."""

    slug: str
    race_id: str
    race_number: int | None
    suite_id: int
    status: str
    execution_kind: str
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    is_revealed: bool = True
    """False while an embargo after completion lasts."""
    seed_commitment: dict[str, Any] | None = None
    """The record of its world seed as it reads once all is revealed; None for a race without one."""

    @property
    def in_flight(self) -> bool:
        """Whether its scores and artifacts are still withheld."""
        return self.status in IN_FLIGHT


@dataclass(frozen=True, slots=True)
class AgentVersion:
    """One submitted version of a miner's agent. `code` is None where the folder holds none."""

    agent_version_id: str
    agent_id: str
    agent_name: str
    miner_hotkey: str
    version_number: int
    suite_id: int
    submitted_at: datetime
    code: bytes | None
    is_discarded: bool = False
    code_available_at: datetime | None = None
    """When its code becomes public; None: with the end of its last race."""


@dataclass(frozen=True, slots=True)
class LegacyItem:
    """One problem of a legacy run.

    `update` is what the backend received; `packed` the gzip'd dialogue, None where no envelope was written.
    """

    problem_id: str
    category: str | None
    update: dict[str, Any]
    packed: bytes | None
    updated_at: datetime | None = None
    """When the result was last written; None: when the run was complete."""

    @property
    def score(self) -> float | None:
        """The problem's score; None where it was not reported."""
        value = self.update.get("score")
        return float(value) if isinstance(value, int | float) else None


@dataclass(frozen=True, slots=True)
class EpisodeItem:
    """One episode of an envpack run: the public item row, and the gzip'd feedback."""

    episode_result_id: str
    task_id: str
    row: dict[str, Any]
    packed: bytes

    @property
    def score(self) -> float | None:
        """What the episode paid; None where it was not graded."""
        value = self.row.get("paid_reward", self.row.get("score"))
        return float(value) if isinstance(value, int | float) else None


@dataclass(frozen=True, slots=True)
class Run:
    """One validator's run of one agent version in one phase."""

    eval_run_id: str
    agent_version_id: str
    suite_id: int
    validator_hotkey: str
    phase: str
    race_id: str | None
    execution_kind: str
    claimed_at: datetime
    completed_at: datetime
    items: tuple[LegacyItem, ...] | tuple[EpisodeItem, ...]
    status: str = "SUCCESS"
    is_included: bool = True
    invalidated_at: datetime | None = None

    @property
    def score(self) -> float:
        """Mean score over all items, unreported ones as nothing; 0 for a run without items."""
        return sum(item.score or 0.0 for item in self.items) / max(1, len(self.items))


@dataclass(slots=True)
class Archive:
    """Everything a folder recorded, indexed by the ids the API is asked for."""

    suites: dict[int, Suite] = field(default_factory=dict)
    races: dict[str, Race] = field(default_factory=dict)
    agents: dict[str, AgentVersion] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    runs_of: dict[str, list[Run]] = field(default_factory=dict)
    legacy: dict[tuple[str, str], LegacyItem] = field(default_factory=dict)
    """By (eval_run_id, problem_id)."""
    episodes: dict[str, tuple[Run, EpisodeItem]] = field(default_factory=dict)
    """By episode_result_id."""
    unreadable_lines: int = 0
    """Lines of the folder's files that were not JSON objects; their items have no object."""

    def add(self, run: Run) -> None:
        """File a run under every id it is asked for by."""
        self.runs[run.eval_run_id] = run
        self.runs_of.setdefault(run.agent_version_id, []).append(run)
        for item in run.items:
            if isinstance(item, LegacyItem):
                self.legacy[run.eval_run_id, item.problem_id] = item
            else:
                self.episodes[item.episode_result_id] = (run, item)

    def replace(self, run: Run) -> None:
        """File a run anew, whose listing or items have changed."""
        self.forget(run)
        of_agent = self.runs_of[run.agent_version_id]
        place = next(at for at, old in enumerate(of_agent) if old.eval_run_id == run.eval_run_id)
        self.add(run)
        of_agent[place] = of_agent.pop()

    def forget(self, run: Run) -> None:
        """Withdraw every object of a run that is filed here."""
        self.legacy = {key: item for key, item in self.legacy.items() if key[0] != run.eval_run_id}
        self.episodes = {key: of for key, of in self.episodes.items() if of[0].eval_run_id != run.eval_run_id}

    def withheld(self, run: Run) -> bool:
        """Whether the run belongs to a race that has not completed, or has and is still to be revealed."""
        race = self.races[run.race_id] if run.race_id is not None else None
        return race is not None and (race.in_flight or not race.is_revealed)

    def qualifiers(self, race_id: str) -> list[tuple[AgentVersion, Run]]:
        """The agent versions that raced, each with its first run, best score first."""
        first: dict[str, Run] = {}
        for run in self.runs.values():
            if run.race_id == race_id:
                first.setdefault(run.agent_version_id, run)
        ordered = sorted(first.values(), key=lambda run: (-run.score, run.agent_version_id))
        return [(self.agents[run.agent_version_id], run) for run in ordered]

    @property
    def object_count(self) -> int:
        """How many trajectories can be fetched once every race is complete."""
        return sum(item.packed is not None for item in self.legacy.values()) + len(self.episodes)
