"""Leases: one holder, and a token that fences off whoever held it before."""

import pytest
from sqlalchemy import Engine, text

from service.errors import ErrorCode, SluiceError
from service.store.engine import transaction
from service.store.work import leases
from service.store.work.leases import LeaseName


def acquire(engine: Engine, holder: str, seconds: float = 60.0) -> int | None:
    with transaction(engine) as session:
        return leases.acquire(session, LeaseName.CLUSTER, holder, seconds)


def test_a_lease_has_one_holder_until_it_is_released(engine: Engine) -> None:
    token = acquire(engine, "first")
    assert token is not None
    assert acquire(engine, "second") is None
    with transaction(engine) as session:
        leases.let_go(session, LeaseName.CLUSTER, token)
    assert acquire(engine, "second") == token + 1


def test_an_expired_lease_passes_on_and_its_old_token_writes_nothing(engine: Engine) -> None:
    old = acquire(engine, "first")
    assert old is not None
    with transaction(engine) as session:
        session.execute(text("UPDATE leases SET expires_at = now() - interval '1 second'"))
    new = acquire(engine, "second")
    assert new == old + 1
    with transaction(engine) as session:
        assert not leases.renew(session, LeaseName.CLUSTER, old, 60.0)
        assert leases.renew(session, LeaseName.CLUSTER, new, 60.0)
    with pytest.raises(SluiceError) as lost, transaction(engine) as session:
        leases.require(session, LeaseName.CLUSTER, old)
    assert lost.value.code is ErrorCode.LEASE_LOST
    with transaction(engine) as session:
        leases.require(session, LeaseName.CLUSTER, new)


def test_a_release_by_an_old_holder_does_not_free_the_new_holders_lease(engine: Engine) -> None:
    old = acquire(engine, "first", seconds=0.0)
    assert old is not None
    with transaction(engine) as session:
        session.execute(text("UPDATE leases SET expires_at = now() - interval '1 second'"))
    acquire(engine, "second")
    with transaction(engine) as session:
        leases.let_go(session, LeaseName.CLUSTER, old)
    assert acquire(engine, "third") is None
