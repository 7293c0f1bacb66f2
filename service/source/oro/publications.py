"""What the source publishes around its runs: standings, seed commitments, when code is released. Stores nothing."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from service.source.http.calls import SourceRefused
from service.source.http.decoding import Malformed, Row
from service.source.oro import rows
from service.source.oro.listing import AgentListing, SuiteListing
from service.source.oro.oddities import Oddities, Oddity
from service.source.oro.reader import Reader
from service.source.refusals import Refusal

_RELEASED = "RELEASED"
_MOST_DAYS = 10_000


@dataclass(frozen=True, slots=True)
class Standing:
    """One agent version on the leaderboard of one suite."""

    suite_id: int
    agent: AgentListing


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceStanding:
    """Where one agent version stands in one race; what an embargo hides is None."""

    qualification_type: str | None
    qualifying_score: float | None
    race_score: float | None
    weighted_score: float | None
    race_rank: int | None
    is_discarded: bool
    eliminated_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardStanding:
    """Where one agent version stands on one leaderboard."""

    rank: int | None
    final_score: float | None
    race_score: float | None
    weighted_score: float | None
    is_discarded: bool
    is_current_top: bool
    eliminated_at: datetime | None


@dataclass(frozen=True, slots=True)
class TrajectoryCount:
    """Distinct (agent version, problem) pairs by the source's own count."""

    total: int | None
    """None while the source has not counted them."""
    series: list[dict[str, Any]]
    """The same by day, oldest first: `date`, `distinct` (new ones) and `cumulative`."""


@dataclass(frozen=True, slots=True)
class SeedRecord:
    """The published record of one race's world seed, as it came."""

    is_revealed: bool
    raw: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CodeRelease:
    """Whether an agent version's code is out, and from when; None where the source does not say."""

    is_released: bool
    available_at: datetime | None


def agents_of(standings: Iterable[Standing]) -> list[AgentListing]:
    """The agent versions on any of the leaderboards, each once."""
    agents: dict[str, AgentListing] = {}
    for standing in standings:
        agents.setdefault(standing.agent.agent_version_id, standing.agent)
    return list(agents.values())


def race_standing(agent: AgentListing) -> RaceStanding:
    """What a RaceQualifierPublic says beside who it is."""
    row = Row(agent.raw)
    return RaceStanding(
        qualification_type=row.label("qualification_type"),
        qualifying_score=row.number("qualifying_score"),
        race_score=row.number("race_score"),
        weighted_score=row.number("weighted_score"),
        race_rank=row.count("race_rank"),
        is_discarded=row.flag("is_discarded", default=False),
        eliminated_at=row.moment("eliminated_at"),
    )


def board_standing(agent: AgentListing) -> BoardStanding:
    """What a LeaderboardEntry says beside who it is."""
    row = Row(agent.raw)
    return BoardStanding(
        rank=row.count("rank"),
        final_score=row.number("final_score"),
        race_score=row.number("race_score"),
        weighted_score=row.number("weighted_score"),
        is_discarded=row.flag("is_discarded", default=False),
        is_current_top=row.flag("is_current_top", default=False),
        eliminated_at=row.moment("eliminated_at"),
    )


def leaderboard(reader: Reader, oddities: Oddities, suite: SuiteListing) -> Iterator[Standing]:
    """The standings of one suite; none where its leaderboard cannot be read, so that the others are listed.

    Raises:
        SourceRefused: the source as a whole does not answer.
    """
    entries = reader.pages("/leaderboard", "entries", "LeaderboardEntry", {"suite_id": suite.suite_id})
    try:
        for agent in reader.read("LeaderboardEntry", entries, rows.agent):
            yield Standing(suite.suite_id, agent)
    except SourceRefused as refused:
        if refused.reason.is_about_source:
            raise
        oddities.note(Oddity.DEAD_LINK, f"/leaderboard of suite {suite.suite_id}: {refused.reason}")


def seed_record(reader: Reader, race: str, race_id: str) -> SeedRecord | None:
    """The seed commitment of a race; None for a race that has none.

    Args:
        reader: of the API.
        race: the race's id as a segment of a path.
        race_id: the same as it is.

    Raises:
        SourceRefused: it could not be had, or the answer is no such record of this race.
    """
    path = f"/races/{race}/seed-commitment"
    try:
        answer = reader.listing(path, dict)
    except SourceRefused as refused:
        if refused.reason is Refusal.RACE_NOT_FOUND:
            return None
        raise

    def read(row: Row) -> SeedRecord:
        if row.needed("race_id") != race_id:
            raise Malformed("of another race")
        row.needed("secret_sha256")
        return SeedRecord(is_revealed=row.flag("revealed", default=False), raw=dict(row))

    for record in reader.read("RaceSeedCommitmentResponse", [answer], read):
        return record
    raise SourceRefused(Refusal.UNREADABLE_ANSWER, path)


def code_release(reader: Reader, agent_version: str) -> CodeRelease:
    """When the code of an agent version (its id as a segment of a path) can be had.

    Raises:
        SourceRefused: the source does not say.
    """
    answer = reader.listing(f"/agent-versions/{agent_version}/status", dict)
    for row in reader.read("AgentVersionStatus", [answer], Row):
        return CodeRelease(row.text("release_state") == _RELEASED, row.moment("code_available_at"))
    return CodeRelease(is_released=False, available_at=None)


def trajectory_count(reader: Reader) -> TrajectoryCount:
    """How many trajectories there are; of a series longer than any real one the newest days."""
    answer = reader.listing("/trajectories/history", dict)
    days = [Row(day) for day in answer.rows("series")[-_MOST_DAYS:] if isinstance(day, dict)]
    series = [
        {"date": day.label("date"), "distinct": day.count("distinct"), "cumulative": day.count("cumulative")}
        for day in days
    ]
    return TrajectoryCount(answer.count("total"), series)
