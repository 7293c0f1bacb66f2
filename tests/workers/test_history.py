"""A second race after the first was released: what was held out stays out, what was published stays known."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from service.replay.server import Replay
from service.store.engine import reading
from service.store.release import clusters, pools, snapshots
from tests.workers.harness import Pipeline, pipeline


@pytest.fixture
def later(database_url: str, redis_url: str, replay: Replay, tmp_path: Path) -> Iterator[Pipeline]:
    """A pipeline over a source of which the test completes one race after the other."""
    with pipeline(database_url, redis_url, replay.url, tmp_path) as opened:
        yield opened


def splits(work: Pipeline, snapshot_id: str) -> dict[str, set[str]]:
    """Problems of a snapshot by split."""
    found: dict[str, set[str]] = {"train": set(), "eval": set()}
    with reading(work.engine) as session:
        for row in snapshots.members(session, snapshot_id):
            found[row.split].add(row.problem_id)
    return found


def answers(work: Pipeline, problems: set[str]) -> set[str]:
    """Every product id known to give one of the problems away."""
    with reading(work.engine) as session:
        clustering = clusters.latest(session)
        assert clustering is not None
        members = clusters.members(session, clustering.clustering_id)
    return {product for problem in problems for product in (*members[problem].gold_ids, *members[problem].winner_ids)}


def test_two_generations_share_no_answer_across_the_split(later: Pipeline, replay: Replay) -> None:
    second = next(key for key, race in replay.archive.races.items() if race.race_number == 2)
    complete = replay.archive.races[second]
    replay.archive.races[second] = replace(complete, status="RACE_RUNNING", completed_at=None)
    later.run()
    (first,) = later.outcome()["snapshots"]
    with reading(later.engine) as session:
        former = pools.history(session).former
    replay.archive.races[second] = complete
    later.run()
    (newest, oldest) = later.outcome()["snapshots"]
    assert oldest == first
    before, after = splits(later, oldest[0]), splits(later, newest[0])
    assert after["train"] - before["train"], "the second race adds problems to train"
    assert not after["train"] & set(former), "what was held out never goes to train"
    trained, held_out = before["train"] | after["train"], before["eval"] | after["eval"]
    assert not trained & held_out
    assert not answers(later, trained) & answers(later, held_out)
    with reading(later.engine) as session:
        assignment = pools.latest(session)
        assert assignment is not None
        now = pools.members(session, assignment.assignment_id)
    assert {now[problem].pool for problem in before["train"] - after["train"]} <= {"train", "quarantined"}
    reserved = {problem for problem, pool in former.items() if pool == "reserve"}
    assert {now[problem].pool for problem in reserved} <= {"reserve", "quarantined"}
