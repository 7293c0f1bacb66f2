"""A client of a live replay server that may be told to behave badly."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.replay.faults import Faults
from service.replay.server import Replay, replaying
from service.source.answers import FetchTarget
from service.source.http.budget import Unthrottled
from service.source.http.calls import open_client
from service.source.oro.listing import ItemListing
from service.source.oro.source import OroSource
from tests.replay.recording import write_recording


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[Replay]:
    with replaying(write_recording(tmp_path / "recording"), faults=Faults()) as running:
        yield running


@pytest.fixture
def source(replay: Replay) -> Iterator[OroSource]:
    with open_client(timeout_seconds=2.0) as client:
        yield OroSource(replay.url, Unthrottled(), client, backoff_seconds=0.01)


def target_of(item: ItemListing) -> FetchTarget:
    return FetchTarget(
        kind=item.kind,
        agent_version_id=item.agent_version_id,
        eval_run_id=item.eval_run_id,
        problem_id=item.problem_id,
        episode_result_id=item.episode_result_id,
    )


def all_items(source: OroSource) -> list[ItemListing]:
    return [
        item
        for agent in source.agents()
        for run in source.runs(agent.agent_version_id)
        for item in source.items(run).items
    ]


@pytest.fixture
def target(source: OroSource, replay: Replay) -> FetchTarget:
    """A legacy item whose object is there and not empty."""
    items = [item for item in all_items(source) if item.kind == "legacy_shoppingbench" and item.released]
    return target_of(next(item for item in items if item.judgement["success"]))
