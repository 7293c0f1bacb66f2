"""Leases around long work: one at a time, renewed while it lasts, fenced when lost."""

import threading
import time

import pytest
from sqlalchemy import text

from service.errors import ErrorCode, SluiceError
from service.store.engine import transaction
from service.store.work import leases
from service.store.work.leases import LeaseName
from workers import leadership
from workers.context import Context
from workers.leadership import held


def test_two_threads_cannot_hold_one_lease(context: Context) -> None:
    inside: list[int | None] = []

    def second() -> None:
        with held(context.engine, LeaseName.CLUSTER) as token:
            inside.append(token)

    with held(context.engine, LeaseName.CLUSTER) as token:
        assert token is not None
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert inside == [None]
    with held(context.engine, LeaseName.CLUSTER) as token:
        assert token is not None


def test_a_lease_outlives_its_first_term_while_the_work_goes_on(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leadership, "LEASE_SECONDS", 0.6)
    with held(context.engine, LeaseName.CLUSTER) as token:
        assert token is not None
        time.sleep(1.2)
        with transaction(context.engine) as session:
            leases.require(session, LeaseName.CLUSTER, token)
            assert leases.acquire(session, LeaseName.CLUSTER, "someone else", 1.0) is None


def test_work_whose_lease_was_lost_cannot_write(context: Context) -> None:
    with held(context.engine, LeaseName.CLUSTER) as token:
        assert token is not None
        with transaction(context.engine) as session:
            session.execute(text("UPDATE leases SET expires_at = now() - interval '1 second'"))
            assert leases.acquire(session, LeaseName.CLUSTER, "someone else", 60.0) is not None
        with pytest.raises(SluiceError) as lost, transaction(context.engine) as session:
            leases.require(session, LeaseName.CLUSTER, token)
        assert lost.value.code is ErrorCode.LEASE_LOST
