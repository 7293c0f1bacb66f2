"""The summary: every state of the ledger has a figure, and the figures sum to the items."""

import dataclasses
from datetime import timedelta

import pytest
from sqlalchemy import Engine, update

from service.store.engine import reading, transaction
from service.store.figures.summary import summarise
from service.store.harvest import ledger
from service.store.models import LedgerItem, LedgerState
from tests.store.conftest import NOW

LATER = NOW + timedelta(days=1)


@pytest.mark.parametrize("state", list(LedgerState))
def test_an_item_is_counted_in_its_state_and_in_no_other(
    engine: Engine, ledger_ids: list[int], state: LedgerState
) -> None:
    with transaction(engine) as session:
        session.execute(update(LedgerItem).where(LedgerItem.ledger_id == ledger_ids[0]).values(state=state))
    with reading(engine) as session:
        figures = dataclasses.asdict(summarise(session, "rules").harvest)
    figures.pop("reasons")
    assert figures.pop("items") == len(ledger_ids)
    expected = dict.fromkeys(LedgerState, 0)
    expected[LedgerState.EXPECTED] += len(ledger_ids) - 1
    expected[state] += 1
    assert figures == {name.value: items for name, items in expected.items()}


@pytest.mark.parametrize(
    ("state", "is_pending"),
    [
        (LedgerState.EXPECTED, True),
        (LedgerState.CHANGED, True),
        (LedgerState.FETCHED, False),
        (LedgerState.GONE, False),
        (LedgerState.EMBARGOED, False),
        (LedgerState.FAILED, False),
    ],
)
def test_the_harvest_rests_while_all_that_is_left_waits_for_tomorrow(
    engine: Engine, ledger_ids: list[int], state: LedgerState, is_pending: bool
) -> None:
    with transaction(engine) as session:
        waiting = update(LedgerItem).values(state=state, next_try_at=LATER)
        session.execute(waiting)
    with reading(engine) as session:
        assert ledger.pending(session, NOW) == (len(ledger_ids) if is_pending else 0)
        late = ledger.pending(session, LATER)
    is_closed = state in (LedgerState.FETCHED, LedgerState.GONE)
    assert late == (0 if is_closed else len(ledger_ids))
