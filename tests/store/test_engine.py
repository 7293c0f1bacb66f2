"""Faults of the database: which of them are to be blamed on the values that were to be stored."""

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from service.store.engine import is_about_values, transaction


@pytest.mark.parametrize(
    ("statement", "values", "expected"),
    [
        ("SELECT CAST(:value AS integer)", {"value": "no number"}, True),
        ("SELECT CAST(:value AS text)", {"value": "a\0b"}, True),
        ("INSERT INTO races (race_id, status, is_complete) VALUES (:value, 'x', true)", {"value": "race"}, True),
        ("SELECT no_such_column FROM races", {}, False),
        ("SELECT 1 FROM no_such_table", {}, False),
    ],
    ids=["no number", "a NUL", "a missing fact", "a column the schema lacks", "a table the schema lacks"],
)
def test_a_schema_that_does_not_fit_is_no_fault_of_a_row(
    engine: Engine, statement: str, values: dict[str, str], expected: bool
) -> None:
    with pytest.raises(DBAPIError) as caught, transaction(engine) as session:
        session.execute(text(statement), values)
    assert is_about_values(caught.value) is expected
