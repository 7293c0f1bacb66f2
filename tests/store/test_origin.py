"""A corpus has one source for its whole life."""

import pytest
from sqlalchemy import Engine

from service.errors import ErrorCode, SluiceError
from service.store import origin
from service.store.engine import transaction


def test_a_corpus_stays_with_its_first_source(engine: Engine) -> None:
    for _ in range(2):
        with transaction(engine) as session:
            origin.require(session, "demo")
    with pytest.raises(SluiceError) as refused, transaction(engine) as session:
        origin.require(session, "api.example.org")
    assert refused.value.code is ErrorCode.BAD_INPUT
    assert "'demo'" in str(refused.value)
