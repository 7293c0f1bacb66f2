"""Pools that stop and ask: nothing goes on before a person answers, and only what was asked does then."""

from dataclasses import replace

import pytest

from service.domain.leaks.pools import POOLS_1
from service.errors import SluiceError
from service.store.engine import reading, transaction
from service.store.models import PoolAssignment
from service.store.release import pools
from service.store.work import backlog
from tests.workers import late
from workers.context import Context
from workers.inspecting import inspect
from workers.stages import assign

STRICT = replace(POOLS_1, component_limit=0.0, limits_from_problems=1)
"""Any cluster at all is too large for it."""


@pytest.fixture
def strict(context: Context) -> Context:
    """A harvested corpus whose pools are refused."""
    made = replace(context, policies=replace(context.policies, pools=STRICT))
    late.harvest(made)
    return made


def newest(context: Context) -> PoolAssignment:
    with reading(context.engine) as session:
        found = pools.latest(session)
    assert found is not None
    return found


def accept(context: Context, assignment_id: int) -> None:
    with transaction(context.engine) as session:
        pools.accept(session, assignment_id, "looked at it")


def test_a_refusal_waits_for_its_acceptance_and_then_goes_on(strict: Context) -> None:
    refused = newest(strict)
    assert "COMPONENT_TOO_LARGE" in (refused.refusal or "")
    with reading(strict.engine) as session:
        assert not backlog.assignment_due(session, STRICT.digest)
        assert pools.releasable(session) is None
    for _ in range(2):
        assign.run([], strict, "message")
    assert newest(strict).assignment_id == refused.assignment_id
    accept(strict, refused.assignment_id)
    with reading(strict.engine) as session:
        assert backlog.assignment_due(session, STRICT.digest)
    late.release(strict)
    made = newest(strict)
    assert (made.refusal, made.is_accepted, made.clustering_id) == (None, True, refused.clustering_id)
    assert late.newest(strict)
    with reading(strict.engine) as session:
        assert not backlog.assignment_due(session, STRICT.digest)
        # A cluster of that size passes from now on; one that is larger asks again.
        sizes = pools.accepted_size(session)
    assert sizes >= 1
    assert inspect(strict)


def test_only_the_newest_refusal_can_be_accepted(strict: Context) -> None:
    refused = newest(strict)
    with pytest.raises(SluiceError, match="there is no assignment 99"):
        accept(strict, 99)
    accept(strict, refused.assignment_id)
    accept(strict, refused.assignment_id)
    late.release(strict)
    with pytest.raises(SluiceError, match="is not the newest one"):
        accept(strict, refused.assignment_id)
    with pytest.raises(SluiceError, match="was not refused"):
        accept(strict, newest(strict).assignment_id)
