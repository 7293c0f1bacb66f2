"""Races that close, and what is stored of the chain: once, at the close where the node can still tell, else late."""

import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

from service.domain.sn15.metagraph import REFRESH_BLOCKS, STALE_AFTER
from service.source.chain.node import Chain
from service.store.engine import reading, transaction
from service.store.harvest import chain as stored
from service.store.harvest import listings
from service.store.models import Metagraph, MetagraphNeuron, Race
from tests.source.fake_chain import NEWCOMER, VALIDATOR, FakeNode, following, time_of, to, wait_until
from workers import chain as chain_loop
from workers.chain import Follower
from workers.context import Context

CLOSE_BLOCK = 850


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The library's cache away from the home folder."""
    monkeypatch.setenv("BTCLI_TOKEN_SYMBOLS_CACHE", str(tmp_path / "symbols.json"))


@pytest.fixture
def node() -> FakeNode:
    return FakeNode(head=1000)


@pytest.fixture
def chain(node: FakeNode) -> Iterator[Chain]:
    with following(node) as running:
        yield running


def close(context: Context, race_id: str, at: datetime | None, *, is_complete: bool = True) -> None:
    race = Race(race_id=race_id, status="RACE_COMPLETE", is_complete=is_complete, completed_at=at, source={})
    with transaction(context.engine) as session:
        listings.save_races(session, [race])


def metagraphs(context: Context) -> dict[str | None, tuple[int, int, bool]]:
    """Of each race, and of none: block, lag and whether late."""
    with reading(context.engine) as session:
        rows = session.execute(select(Metagraph.race_id, Metagraph.block, Metagraph.lag_blocks, Metagraph.is_late))
        return {race_id: (block, lag, late) for race_id, block, lag, late in rows}


def test_a_race_that_closes_gets_the_metagraph_of_its_close_once(
    context: Context, chain: Chain, node: FakeNode
) -> None:
    follower = Follower(context, chain)
    close(context, "race", None, is_complete=False)
    follower.look()
    assert metagraphs(context) == {None: (1000, 0, False)}
    close(context, "race", time_of(CLOSE_BLOCK) - timedelta(seconds=1))
    follower.look()
    assert metagraphs(context) == {None: (1000, 0, False), "race": (CLOSE_BLOCK, 0, False)}
    asked = node.metagraphs
    follower.look()
    assert node.metagraphs == asked
    with reading(context.engine) as session:
        taken = stored.of_race(session, "race")
    assert taken is not None
    # The newcomer came at block 900; the validator's stake is the number of the block.
    assert [(neuron.uid, neuron.stake) for neuron in taken.neurons] == [(0, float(CLOSE_BLOCK)), (1, 0.0)]
    assert taken.at == time_of(CLOSE_BLOCK)


def test_a_node_without_history_gives_a_late_metagraph(context: Context, chain: Chain, node: FakeNode) -> None:
    node.kept_blocks = 100
    close(context, "old", time_of(CLOSE_BLOCK))
    close(context, "older", time_of(CLOSE_BLOCK - 50))
    close(context, "fresh", time_of(990))
    Follower(context, chain).look()
    assert metagraphs(context) == {
        None: (1000, 0, False),
        "old": (1000, 150, True),
        "older": (1000, 200, True),
        "fresh": (990, 0, False),
    }
    # The newest, "fresh", and one reading of the present for both late ones: the newest.
    assert node.metagraphs == 2


def test_a_close_the_chain_has_not_reached_waits(context: Context, chain: Chain, node: FakeNode) -> None:
    follower = Follower(context, chain)
    close(context, "ahead", time_of(1002))
    close(context, "race", time_of(CLOSE_BLOCK))
    follower.look()
    assert set(metagraphs(context)) == {None, "race"}
    node.head = 1003
    wait_until(lambda: chain.head is not None and chain.head.block == 1003)
    follower.look()
    assert metagraphs(context)["ahead"] == (1002, 0, False)


def test_the_newest_is_read_again_when_blocks_have_passed(context: Context, chain: Chain, node: FakeNode) -> None:
    follower = Follower(context, chain)
    follower.look()
    node.head = 1000 + REFRESH_BLOCKS - 1
    wait_until(lambda: chain.head is not None and chain.head.block == node.head)
    follower.look()
    assert metagraphs(context) == {None: (1000, 0, False)}
    node.head += 1
    node.neurons = lambda block: [(NEWCOMER, True, 3.0, 0.25)]
    wait_until(lambda: chain.head is not None and chain.head.block == node.head)
    follower.look()
    at = time_of(1000 + REFRESH_BLOCKS)
    with reading(context.engine) as session:
        newest = stored.latest(session, 15, at + STALE_AFTER)
        stale = stored.latest(session, 15, at + STALE_AFTER + timedelta(seconds=1))
        assert stored.latest(session, 16, at) is None
        assert session.scalar(select(func.count()).select_from(MetagraphNeuron)) == 1
    assert newest is not None
    assert stale is not None
    assert [neuron.hotkey for neuron in newest.reading.neurons] == [NEWCOMER]
    assert (newest.age, newest.is_stale, stale.is_stale) == (STALE_AFTER, False, True)


def test_an_older_reading_never_takes_the_newest_ones_place(context: Context, chain: Chain) -> None:
    with transaction(context.engine) as session:
        assert stored.save_newest(session, chain.metagraph(1000))
        assert not stored.save_newest(session, chain.metagraph(1000))
        assert not stored.save_newest(session, chain.metagraph(800))
    assert metagraphs(context) == {None: (1000, 0, False)}


def test_the_loop_follows_until_it_is_told_to_stop(
    context: Context, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain_loop, "open_chain", lambda settings: Chain(to(node), settings.netuid))
    monkeypatch.setattr(chain_loop, "FIRST_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(chain_loop, "BLOCK_SECONDS", 0.05)
    thread = threading.Thread(target=chain_loop.follow, args=(context,))
    thread.start()
    wait_until(lambda: set(metagraphs(context)) == {None})
    close(context, "race", time_of(CLOSE_BLOCK))
    wait_until(lambda: set(metagraphs(context)) == {None, "race"})
    context.stopping.set()
    thread.join(10.0)
    assert not thread.is_alive()
    assert node.closed == 1


def test_two_workers_at_once_store_one_set_of_rows(context: Context, node: FakeNode) -> None:
    races = [f"race-{number}" for number in range(8)]
    for number, race_id in enumerate(races):
        close(context, race_id, time_of(CLOSE_BLOCK + number))
    ready = threading.Barrier(2)

    def work() -> None:
        with following(node) as chain:
            ready.wait()
            Follower(context, chain).look()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert metagraphs(context) == {
        None: (1000, 0, False),
        **{race_id: (CLOSE_BLOCK + number, 0, False) for number, race_id in enumerate(races)},
    }
    with reading(context.engine) as session:
        per_metagraph = select(func.count()).group_by(MetagraphNeuron.metagraph_id)
        counts = sorted(session.scalars(per_metagraph.select_from(MetagraphNeuron)))
    # Two neurons at each close, three at block 1000.
    assert counts == [2] * 8 + [3]


def test_a_write_that_is_cut_off_leaves_nothing_and_is_made_anew(context: Context, chain: Chain) -> None:
    close(context, "race", time_of(CLOSE_BLOCK))
    taken = chain.metagraph(CLOSE_BLOCK)

    class Killed(BaseException):
        pass

    def write_and_die() -> None:
        with transaction(context.engine) as session:
            stored.save_of_race(session, "race", taken, 0, is_late=False)
            raise Killed

    with pytest.raises(Killed):
        write_and_die()
    assert metagraphs(context) == {}
    Follower(context, chain).look()
    assert metagraphs(context)["race"] == (CLOSE_BLOCK, 0, False)


def test_a_chain_that_fails_takes_nothing_down(
    context: Context, chain: Chain, node: FakeNode, caplog: pytest.LogCaptureFixture
) -> None:
    follower = Follower(context, chain)
    close(context, "race", time_of(CLOSE_BLOCK))

    def broken(block: int) -> list[tuple[str, bool, float, float]]:
        raise KeyError(VALIDATOR)

    node.neurons, works = broken, node.neurons
    follower.look()
    follower.look()
    assert metagraphs(context) == {}
    assert [record.levelname for record in caplog.records if record.name == "workers.chain"] == ["WARNING"]
    node.neurons = works
    follower.look()
    assert set(metagraphs(context)) == {None, "race"}
