"""Trajectories, evidence and verdicts: stored once, judged once, and counted in whole revisions."""

import threading

import zstandard
from sqlalchemy import Engine, select

from service.store import policies
from service.store.corpus import revisions, trajectories, verdicts
from service.store.corpus.trajectories import NewTrajectory
from service.store.corpus.verdicts import NewVerdict
from service.store.engine import transaction
from service.store.models import Payload, Trajectory, Verdict

RULES = "r" * 64


def fetched(ledger_ids: list[int], payload: bytes = b"[]", evidence: str = "e1") -> list[NewTrajectory]:
    return [
        NewTrajectory(number, "run", f"p{n}", f"p{n}", "legacy_shoppingbench", payload, evidence, {"judgement": {}})
        for n, number in enumerate(ledger_ids)
    ]


def kept(trajectory_ids: list[int], evidence: str = "e1", outcome: str = "kept") -> list[NewVerdict]:
    return [
        NewVerdict(number, evidence, outcome, outcome, "agentic", "claimed", [], {}, ["1"], "query")
        for number in trajectory_ids
    ]


def store(engine: Engine, items: list[NewTrajectory]) -> list[int]:
    with transaction(engine) as session:
        policies.record(session, "rules", "rules", RULES, {})
        return trajectories.add(session, items)


def test_equal_bytes_are_stored_once_under_every_item(engine: Engine, ledger_ids: list[int]) -> None:
    ids = store(engine, fetched(ledger_ids))
    with transaction(engine) as session:
        assert len(set(ids)) == 4
        (payload,) = session.scalars(select(Payload)).all()
        assert (payload.size_bytes, zstandard.decompress(payload.zstd)) == (2, b"[]")
        assert trajectories.payload(session, ids[0]) == b"[]"


def test_storing_again_adds_nothing_and_names_the_same_rows(engine: Engine, ledger_ids: list[int]) -> None:
    first = store(engine, fetched(ledger_ids))
    assert store(engine, fetched(ledger_ids)) == first
    with transaction(engine) as session:
        assert len(session.scalars(select(Trajectory)).all()) == 4


def test_nul_bytes_and_text_that_is_not_utf8_survive(engine: Engine, ledger_ids: list[int]) -> None:
    hostile = b'["\x00\xff\xfe", NaN'
    (number,) = store(engine, fetched(ledger_ids[:1], hostile))
    with transaction(engine) as session:
        assert trajectories.payload(session, number) == hostile


def test_new_evidence_asks_for_a_new_verdict_and_replaces_the_old_one(engine: Engine, ledger_ids: list[int]) -> None:
    ids = store(engine, fetched(ledger_ids[:1]))
    with transaction(engine) as session:
        assert list(verdicts.unjudged(session, RULES, 10)) == ids
        assert verdicts.add(session, RULES, kept(ids)) == 1
        assert verdicts.add(session, RULES, kept(ids)) == 0
        assert list(verdicts.unjudged(session, RULES, 10)) == []
    store(engine, fetched(ledger_ids[:1], evidence="e2"))
    with transaction(engine) as session:
        (item,) = verdicts.load_unjudged(session, ids, RULES)
        assert item.evidence_digest == "e2"
        verdicts.add(session, RULES, kept(ids, "e2", "rejected"))
        current = verdicts.current(RULES)
        assert session.scalars(select(current.c.outcome)).all() == ["rejected"]
        assert len(session.scalars(select(Verdict)).all()) == 2


def test_a_sealed_revision_holds_what_its_writers_had_begun(engine: Engine, ledger_ids: list[int]) -> None:
    ids = store(engine, fetched(ledger_ids))
    sealed: list[int] = []

    def seal() -> None:
        with transaction(engine) as session:
            sealed.append(revisions.seal(session))

    sealer = threading.Thread(target=seal)
    with transaction(engine) as session:
        verdicts.add(session, RULES, kept(ids[:2]))
        sealer.start()
        sealer.join(timeout=0.3)
        assert sealer.is_alive(), "sealing must wait for a writer that has not committed"
    sealer.join(timeout=10)
    with transaction(engine) as session:
        verdicts.add(session, RULES, kept(ids[2:]))
        at_sealing = verdicts.current(RULES, sealed[0])
        assert sorted(session.scalars(select(at_sealing.c.trajectory_id))) == ids[:2]
        assert revisions.last_sealed(session) == sealed[0]


def test_a_writer_that_waited_for_a_sealing_joins_the_next_revision(engine: Engine, ledger_ids: list[int]) -> None:
    ids = store(engine, fetched(ledger_ids[:1]))
    joined: list[int] = []

    def write() -> None:
        with transaction(engine) as session:
            verdicts.add(session, RULES, kept(ids))
            joined.append(session.scalars(select(Verdict.revision)).one())

    writer = threading.Thread(target=write)
    with transaction(engine) as session:
        sealed = revisions.seal(session)
        writer.start()
        writer.join(timeout=0.3)
        assert writer.is_alive(), "a writer must wait for a sealing that has not committed"
    writer.join(timeout=10)
    assert joined == [sealed + 1]


def test_the_first_bytes_of_an_item_stand(engine: Engine, ledger_ids: list[int]) -> None:
    first = store(engine, fetched(ledger_ids[:1], b"[1]"))
    assert store(engine, fetched(ledger_ids[:1], b"[2]")) == first
    with transaction(engine) as session:
        assert trajectories.payload(session, first[0]) == b"[1]"
