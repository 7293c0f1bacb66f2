"""COPY: what is there already stays, and a value that the database does not take is blamed on the value."""

import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from service.store.copying import copy_missing
from service.store.engine import is_about_values, transaction
from service.store.models import Payload

COLUMNS = ("payload_sha256", "zstd", "size_bytes")
TABLE = Payload.__table__


def test_a_row_that_is_there_stays_as_it_is(engine: Engine) -> None:
    with transaction(engine) as session:
        assert copy_missing(session, TABLE, COLUMNS, [("a", b"first", 5)]) == 1
        assert copy_missing(session, TABLE, COLUMNS, [("a", b"second", 6), ("b", b"other", 5)]) == 1
        assert session.get_one(Payload, "a").zstd == b"first"


@pytest.mark.parametrize("row", [("a\0b", b"", 0), ("a", b"", 2**70)], ids=["a NUL", "a number too large"])
def test_a_value_that_cannot_be_stored_is_about_the_value(engine: Engine, row: tuple[object, ...]) -> None:
    with pytest.raises(DBAPIError) as caught, transaction(engine) as session:
        copy_missing(session, TABLE, COLUMNS, [row])
    assert is_about_values(caught.value)
