"""States of the evidence: none is lost, one that returns is a state of its own, new bytes are kept beside the first."""

import msgspec
import pytest
from sqlalchemy import Engine, select

from service.domain.attribution import provenance
from service.domain.trajectory import Judgement
from service.store.corpus import evidence, trajectories
from service.store.corpus.trajectories import NewTrajectory
from service.store.engine import transaction
from service.store.models import Evidence, Payload

FIRST = provenance.Evidence(judgement=Judgement(score=1.0))


@pytest.fixture
def number(engine: Engine, ledger_ids: list[int]) -> int:
    """A stored trajectory."""
    told = msgspec.to_builtins(FIRST)
    item = NewTrajectory(ledger_ids[0], "run", "p0", "p0", "legacy_shoppingbench", b"[1]", FIRST.digest, told)
    with transaction(engine) as session:
        return trajectories.add(session, [item])[0]


def judge(engine: Engine, number: int, score: float) -> bool:
    """Add a state with this score, in a transaction of its own."""
    with transaction(engine) as session:
        judgement = Judgement(score=score)
        return evidence.revise(session, number, lambda now: msgspec.structs.replace(now, judgement=judgement))


def states(engine: Engine, number: int) -> list[Evidence]:
    with transaction(engine) as session:
        return list(session.scalars(select(Evidence).where(Evidence.trajectory_id == number).order_by(Evidence.seq)))


def test_a_state_that_returns_is_one_of_its_own_each_time(engine: Engine, number: int) -> None:
    assert [judge(engine, number, score) for score in (0.5, 0.5, 1.0, 1.0, 0.5, 1.0)] == [
        True,
        False,
        True,
        False,
        True,
        True,
    ]
    found = states(engine, number)
    assert [state.body["judgement"]["score"] for state in found] == [1.0, 0.5, 1.0, 0.5, 1.0]
    assert [state.body["returns"] for state in found] == [0, 0, 1, 1, 2]
    assert len({state.evidence_digest for state in found}) == 5
    assert all(msgspec.convert(state.body, provenance.Evidence).digest == state.evidence_digest for state in found)
    with transaction(engine) as session:
        assert evidence.late_known(session) == 4


def test_what_others_learn_of_is_kept_and_is_not_late(engine: Engine, number: int) -> None:
    with transaction(engine) as session:
        evidence.revise(session, number, lambda now: msgspec.structs.replace(now, agent_code="pass"))
        assert evidence.late_known(session) == 0
    judge(engine, number, 0.5)
    with transaction(engine) as session:
        (present,) = evidence.latest(session, [number]).values()
        assert (present.agent_code, present.judgement.score) == ("pass", 0.5)
        assert evidence.late_known(session) == 1


def test_new_bytes_are_stored_beside_the_first(engine: Engine, number: int) -> None:
    for payload, is_new in ((b"[1]", False), (b"[2]", True), (b"[2]", False), (b"[1]", True)):
        with transaction(engine) as session:
            assert trajectories.revise(session, number, payload) == is_new
            assert trajectories.payload(session, number) == payload
    with transaction(engine) as session:
        assert len(session.scalars(select(Payload)).all()) == 2
    one, two, back = states(engine, number)
    assert one.payload_sha256 == back.payload_sha256 != two.payload_sha256
    assert (one.is_late, two.is_late, back.is_late) == (False, True, True)


def test_digests_of_evidence_that_was_stored_before_stay() -> None:
    # A digest is over what the evidence says; what late truth has added says nothing where it is not used.
    assert FIRST.digest == msgspec.structs.replace(FIRST, payload_sha256=None, returns=0).digest
    assert FIRST.digest != msgspec.structs.replace(FIRST, returns=1).digest
    assert FIRST.digest != msgspec.structs.replace(FIRST, payload_sha256="ab").digest
    assert provenance.Evidence().digest == "f8f5593f32f6ec6537d97fbc8ea99eeb799a40d693a7818c117da91a210d0ced"
