"""Tombstones: raised once, lifted by who raised them, and fixed at every sealed revision."""

import threading

import pytest
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from service.domain.sn15.tombstones import Subject, TombstoneReason
from service.store.corpus import revisions, tombstones, trajectories
from service.store.corpus.tombstones import Word, entombed, settle
from service.store.engine import transaction
from service.store.models import Tombstone
from tests.store.test_corpus import fetched

INVALIDATED, DISCARDED = TombstoneReason.RUN_INVALIDATED, TombstoneReason.AGENT_DISCARDED


def word(reason: TombstoneReason | None, subject_id: str = "run", listing: str = "runs") -> Word:
    return Word(subject_id, reason, listing, {"seen": "so"})


@pytest.fixture
def ids(engine: Engine, ledger_ids: list[int]) -> list[int]:
    """Four stored trajectories of one run."""
    with transaction(engine) as session:
        return trajectories.add(session, fetched(ledger_ids))


def dead(session: Session, revision: int | None = None) -> dict[int, str]:
    found = entombed(revision)
    return {row.trajectory_id: row.reason for row in session.execute(select(found))}


def test_a_tombstone_is_raised_once_and_lifted_once(engine: Engine, ids: list[int]) -> None:
    with transaction(engine) as session:
        assert settle(session, Subject.RUN, [word(None)]) == []
        assert settle(session, Subject.RUN, [word(INVALIDATED)]) == ["run"]
        assert settle(session, Subject.RUN, [word(INVALIDATED)]) == []
        assert dead(session) == dict.fromkeys(ids, "run_invalidated")
        assert settle(session, Subject.RUN, [word(None)]) == ["run"]
        assert settle(session, Subject.RUN, [word(None)]) == []
        assert dead(session) == {}
        assert tombstones.known(session) == 2


def test_another_reason_is_another_row(engine: Engine, ids: list[int]) -> None:
    with transaction(engine) as session:
        settle(session, Subject.RUN, [word(TombstoneReason.RUN_EXCLUDED)])
        assert settle(session, Subject.RUN, [word(INVALIDATED)]) == ["run"]
        assert dead(session) == dict.fromkeys(ids, "run_invalidated")


def test_only_the_listing_that_raised_a_tombstone_lifts_it(engine: Engine, ids: list[int]) -> None:
    with transaction(engine) as session:
        settle(session, Subject.AGENT_VERSION, [word(DISCARDED, "agent", "a race")])
        assert settle(session, Subject.AGENT_VERSION, [word(None, "agent", "leaderboard")]) == []
        assert settle(session, Subject.AGENT_VERSION, [word(None, "agent", "a race")]) == ["agent"]


def test_the_closest_tombstone_names_the_reason(engine: Engine, ids: list[int]) -> None:
    with transaction(engine) as session:
        settle(session, Subject.AGENT_VERSION, [word(DISCARDED, "agent")])
        assert dead(session) == dict.fromkeys(ids, "agent_discarded")
        settle(session, Subject.ITEM, [word(TombstoneReason.WITHDRAWN, str(ids[0]))])
        settle(session, Subject.ITEM, [word(TombstoneReason.WITHDRAWN, "no number")])
        assert dead(session) == {**dict.fromkeys(ids, "agent_discarded"), ids[0]: "withdrawn"}


def test_what_stood_at_a_sealed_revision_stands_there_for_ever(engine: Engine, ids: list[int]) -> None:
    with transaction(engine) as session:
        before = revisions.seal(session)
    with transaction(engine) as session:
        settle(session, Subject.RUN, [word(INVALIDATED)])
        assert revisions.has_unsealed_rows(session), "so that a new snapshot becomes due"
    with transaction(engine) as session:
        raised = revisions.seal(session)
        assert not revisions.has_unsealed_rows(session)
    with transaction(engine) as session:
        settle(session, Subject.RUN, [word(None)])
        lifted = revisions.seal(session)
    with transaction(engine) as session:
        settle(session, Subject.RUN, [word(INVALIDATED)])
        told = [set(dead(session, revision)) for revision in (before, raised, lifted, None)]
    assert told == [set(), set(ids), set(), set(ids)]


def test_two_who_are_told_the_same_at_once_raise_one_tombstone(engine: Engine, ids: list[int]) -> None:
    start = threading.Barrier(4)

    def tell() -> None:
        start.wait(timeout=10)
        with transaction(engine) as session:
            settle(session, Subject.RUN, [word(INVALIDATED)])

    threads = [threading.Thread(target=tell) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    with transaction(engine) as session:
        assert len(session.scalars(select(Tombstone)).all()) == 1
