"""Standings: what a walk stores of suites, races and leaderboards, and how seed commitments are followed."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest
from sqlalchemy import func, select

from service.replay.faults import Fault
from service.replay.recorded import Race as Recorded
from service.replay.server import Replay
from service.source.oro.publications import Standing
from service.store.engine import reading, transaction
from service.store.harvest import listings, standings
from service.store.models import Base, LeaderboardEntry, Race, RaceEntry, SeedCommitment, Suite
from workers import listed
from workers.context import Context
from workers.standings import COMMITMENTS_AT_ONCE, ask_commitments, mirror


def walk(context: Context) -> list[Standing]:
    """The part of a walk that standings need: races and agents are there before them."""
    list(context.source.problems())
    races = list(context.source.races())
    board = list(context.source.leaderboards())
    agents = [standing.agent for standing in board] + [agent for race in races for agent in race.agents]
    with transaction(context.engine) as session:
        listings.save_races(session, [listed.race(race, context.now()) for race in races])
        listings.save_agents(session, [listed.agent(agent) for agent in agents])

    def save(rows: Sequence[Any], to: Any) -> None:
        with transaction(context.engine) as session:
            to(session, rows)

    mirror(races, board, context, save)
    return board


def count(context: Context, model: type[Base]) -> int:
    with reading(context.engine) as session:
        return session.scalar(select(func.count()).select_from(model)) or 0


def written(context: Context, table: str) -> list[Any]:
    """Every row with the transaction that wrote it."""
    with reading(context.engine) as session:
        return sorted(map(str, session.connection().exec_driver_sql(f"SELECT xmin, * FROM {table}")))


def states(context: Context) -> dict[str, str]:
    with reading(context.engine) as session:
        return {race_id: found.state.value for race_id, found in standings.verifications(session).items()}


def asked(replay: Replay) -> list[str]:
    assert replay.faults is not None
    paths = [path for path in replay.faults.requests if path.endswith("/seed-commitment")]
    replay.faults.requests.clear()
    return paths


@pytest.fixture
def race(replay: Replay) -> Recorded:
    """The newest race of the archive."""
    return max(replay.archive.races.values(), key=lambda race: str(race.started_at))


def publish(replay: Replay, race: Recorded) -> None:
    replay.archive.races[race.race_id] = race


def test_a_walk_stores_suites_entries_and_leaderboards(context: Context, replay: Replay) -> None:
    board = walk(context)
    archive = replay.archive
    assert count(context, Suite) == len(archive.suites)
    assert count(context, RaceEntry) == sum(len(archive.qualifiers(race_id)) for race_id in archive.races)
    assert count(context, LeaderboardEntry) == len(board) > 0
    with reading(context.engine) as session:
        for race_id in archive.races:
            for rank, (agent, run) in enumerate(archive.qualifiers(race_id), 1):
                entry = session.get_one(RaceEntry, (race_id, agent.agent_version_id))
                assert (entry.race_rank, entry.race_score) == (rank, pytest.approx(run.score))
                assert entry.source["qualification_type"] == entry.qualification_type == "SCORED"
        envpack = session.get_one(Suite, 144)
        assert (envpack.kind, envpack.world) == ("envpack", "small-world-1")
        assert envpack.source["suite_version"] == 12


def test_scores_fill_in_once_the_race_is_over(context: Context, replay: Replay, race: Recorded) -> None:
    publish(replay, replace(race, status="RACE_RUNNING", completed_at=None))
    walk(context)
    with reading(context.engine) as session:
        entries = session.scalars(select(RaceEntry).where(RaceEntry.race_id == race.race_id)).all()
        assert {entry.race_score for entry in entries} == {None}
    publish(replay, race)
    walk(context)
    with reading(context.engine) as session:
        entries = session.scalars(select(RaceEntry).where(RaceEntry.race_id == race.race_id)).all()
        assert None not in {entry.race_score for entry in entries}


def test_rows_are_written_only_where_they_differ(context: Context) -> None:
    tables = ("suites", "race_entries", "leaderboard_entries", "seed_commitments")
    walk(context)
    first = {table: written(context, table) for table in tables}
    walk(context)
    assert {table: written(context, table) for table in tables} == first


def test_a_revealed_commitment_is_verified_and_not_asked_for_again(context: Context, replay: Replay) -> None:
    walk(context)
    assert states(context) == dict.fromkeys(replay.archive.races, "verified")
    assert len(asked(replay)) == len(replay.archive.races)
    walk(context)
    assert asked(replay) == []


def test_a_commitment_is_followed_from_before_the_race_to_its_reveal(
    context: Context, replay: Replay, race: Recorded
) -> None:
    publish(replay, replace(race, status="RACE_RUNNING", completed_at=None))
    walk(context)
    assert states(context)[race.race_id] == "committed"
    walk(context)
    publish(replay, race)
    walk(context)
    assert states(context)[race.race_id] == "verified"
    with reading(context.engine) as session:
        of_race = select(SeedCommitment).where(SeedCommitment.race_id == race.race_id)
        rows = session.scalars(of_race.order_by(SeedCommitment.commitment_id)).all()
        assert [row.is_revealed for row in rows] == [False, True]
        assert rows[0].source is not None
        assert rows[0].source["secret"] is None


def test_a_hash_that_is_replaced_before_the_reveal_is_a_contradiction(
    context: Context, replay: Replay, race: Recorded
) -> None:
    assert race.seed_commitment is not None
    running = replace(race, status="RACE_RUNNING", completed_at=None)
    publish(replay, replace(running, seed_commitment=race.seed_commitment | {"secret_sha256": "00" * 32}))
    walk(context)
    assert states(context)[race.race_id] == "committed"
    publish(replay, race)  # its own chain of hashes is without a fault
    walk(context)
    with reading(context.engine) as session:
        found = standings.verifications(session)[race.race_id]
    assert found.state == "contradicted"
    assert [check for check, result in found.checks.items() if result == "fails"] == ["unchanged"]


def test_a_race_without_one_is_asked_about_until_it_is_over(context: Context, replay: Replay, race: Recorded) -> None:
    bare = replace(race, seed_commitment=None)
    publish(replay, replace(bare, status="RACE_RUNNING", completed_at=None))
    walk(context)
    asked(replay)
    walk(context)
    assert [path.split("/")[-2] for path in asked(replay)] == [race.race_id]
    publish(replay, bare)
    walk(context)
    walk(context)
    assert asked(replay) == []
    assert race.race_id not in states(context)
    assert count(context, SeedCommitment) == len(replay.archive.races)


def test_what_cannot_be_had_is_no_absence(context: Context, replay: Replay, race: Recorded) -> None:
    assert replay.faults is not None
    replay.faults.add(Fault(f"/races/{race.race_id}/seed-commitment", times=1, status=200, body=b"[]"))
    walk(context)
    assert race.race_id not in states(context)
    walk(context)
    assert states(context)[race.race_id] == "verified"


def test_a_walk_asks_about_so_many_races_and_no_more(context: Context, replay: Replay) -> None:
    with transaction(context.engine) as session:
        listings.save_races(
            session,
            [
                Race(
                    race_id=str(uuid5(NAMESPACE_URL, str(number))), status="RACE_COMPLETE", is_complete=True, source={}
                )
                for number in range(COMMITMENTS_AT_ONCE + 5)
            ],
        )
    ask_commitments(context)
    assert len(asked(replay)) == COMMITMENTS_AT_ONCE
    ask_commitments(context)
    assert len(asked(replay)) == 5
    ask_commitments(context)
    assert asked(replay) == []
