"""The ledger: claims, refusals, and that nothing is expected twice."""

from datetime import timedelta

from sqlalchemy import Engine

from service.store.engine import transaction
from service.store.harvest import ledger
from service.store.harvest.ledger import ExpectedItem, LedgerCount, Note
from service.store.models import LedgerState
from tests.store.conftest import NOW

CLAIM_SECONDS = 60.0


def claimed(engine: Engine, ids: list[int], claimant: str, at: float = 0.0) -> list[int]:
    with transaction(engine) as session:
        now = NOW + timedelta(seconds=at)
        return [target.ledger_id for target in ledger.claim(session, ids, claimant, now, CLAIM_SECONDS)]


def test_an_item_is_expected_once(engine: Engine, ledger_ids: list[int]) -> None:
    with transaction(engine) as session:
        assert ledger.expect(session, [ExpectedItem("run", "p0", "p0", None, {})], NOW) == 0


def test_a_claim_keeps_other_messages_out_until_it_ends(engine: Engine, ledger_ids: list[int]) -> None:
    assert claimed(engine, ledger_ids, "first") == ledger_ids
    assert claimed(engine, ledger_ids, "second", at=CLAIM_SECONDS - 1) == []
    assert claimed(engine, ledger_ids, "second", at=CLAIM_SECONDS) == ledger_ids


def test_a_message_delivered_again_goes_on_at_once(engine: Engine, ledger_ids: list[int]) -> None:
    claimed(engine, ledger_ids, "first")
    assert claimed(engine, ledger_ids, "first", at=1.0) == ledger_ids


def test_what_was_claimed_and_not_asked_for_can_be_given_back(engine: Engine, ledger_ids: list[int]) -> None:
    claimed(engine, ledger_ids, "first")
    with transaction(engine) as session:
        ledger.give_back(session, ledger_ids[2:], "first", NOW)
    assert claimed(engine, ledger_ids, "second") == ledger_ids[2:]


def test_closed_items_are_given_to_no_one(engine: Engine, ledger_ids: list[int]) -> None:
    fetched, gone, failed, expected = ledger_ids
    claimed(engine, [fetched, gone, failed], "earlier")
    with transaction(engine) as session:
        ledger.mark_fetched(session, [fetched], NOW)
        ledger.mark_refused(session, gone, "earlier", Note(LedgerState.GONE, "no_object", NOW, 1))
        failed_note = Note(LedgerState.FAILED, "truncated", NOW + timedelta(seconds=5), 1)
        ledger.mark_refused(session, failed, "earlier", failed_note)
    assert claimed(engine, ledger_ids, "first", at=4.0) == [expected]
    assert claimed(engine, ledger_ids, "second", at=5.0) == [failed]
    with transaction(engine) as session:
        assert ledger.counts(session) == [
            LedgerCount(LedgerState.EXPECTED, None, 1),
            LedgerCount(LedgerState.FAILED, "truncated", 1),
            LedgerCount(LedgerState.FETCHED, None, 1),
            LedgerCount(LedgerState.GONE, "no_object", 1),
        ]


def test_a_late_answer_to_a_lost_claim_changes_nothing(engine: Engine, ledger_ids: list[int]) -> None:
    first, second = ledger_ids[:2]
    note = Note(LedgerState.FAILED, "truncated", NOW, 1)
    claimed(engine, ledger_ids[:2], "first")
    claimed(engine, ledger_ids[:2], "second", at=CLAIM_SECONDS)
    with transaction(engine) as session:
        ledger.mark_refused(session, first, "first", note)
        ledger.mark_fetched(session, [second], NOW)
        ledger.mark_refused(session, second, "second", note)
        assert [count.state for count in ledger.counts(session)] == [LedgerState.EXPECTED, LedgerState.FETCHED]


def test_one_refusal_puts_off_the_open_items_of_the_run(engine: Engine, ledger_ids: list[int]) -> None:
    until = NOW + timedelta(minutes=15)
    with transaction(engine) as session:
        ledger.mark_fetched(session, ledger_ids[:1], NOW)
        ledger.embargo_run(session, "run", Note(LedgerState.EMBARGOED, "race_in_flight", until, 1))
        assert ledger.counts(session) == [
            LedgerCount(LedgerState.EMBARGOED, "race_in_flight", 3),
            LedgerCount(LedgerState.FETCHED, None, 1),
        ]
    assert claimed(engine, ledger_ids, "early", at=899) == []
    assert claimed(engine, ledger_ids, "late", at=900) == ledger_ids[1:]
