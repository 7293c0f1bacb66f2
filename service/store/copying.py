"""Bulk writes that skip what is already there: one INSERT for a few rows, COPY for many. Knows no table."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, count, islice
from typing import Any

import psycopg
from psycopg import RawCursor, sql
from sqlalchemy import Table
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

FEW_ROWS = 1_000
"""So many go in one statement, which costs half of what COPY does. It may have 65,535 values."""


def copy_missing(session: Session, table: Table, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
    """Write `rows`; those that clash with a unique key of `table` are left as they are stored.

    Args:
        session: open transaction; a temporary table lives no longer than this call.
        table: target table.
        columns: names of the columns that each row gives, in order.
        rows: values ready for psycopg (JSON columns wrapped in `Jsonb`). They are read to the end, and held in memory
            no more than `FEW_ROWS` at a time.

    Returns:
        Number of rows that were new.

    Raises:
        DBAPIError: as a statement of SQLAlchemy's own would.
    """
    coming = iter(rows)
    first = list(islice(coming, FEW_ROWS + 1))
    if not first:
        return 0
    connection = session.connection().connection.driver_connection
    assert connection is not None
    try:
        if len(first) <= FEW_ROWS:
            return _insert(connection, table.name, tuple(columns), first)
        return _copy(connection, table, columns, chain(first, coming))
    except psycopg.Error as fault:
        dialect = session.get_bind().dialect
        raise DBAPIError.instance(
            "INSERT", None, fault, psycopg.Error, hide_parameters=True, dialect=dialect
        ) from fault


def _insert(connection: Any, table: str, columns: tuple[str, ...], rows: Sequence[Sequence[Any]]) -> int:
    with RawCursor(connection) as cursor:
        statement = _insert_statement(table, columns, len(rows))
        cursor.execute(statement, [value for row in rows for value in row], prepare=False)
        return cursor.rowcount


@lru_cache(maxsize=64)
def _insert_statement(table: str, columns: tuple[str, ...], rows: int) -> bytes:
    numbers = count(1)
    values = sql.SQL(", ").join(
        sql.SQL("({})").format(sql.SQL(", ").join(sql.SQL(f"${next(numbers)}") for _ in columns)) for _ in range(rows)
    )
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    return (
        sql.SQL("INSERT INTO {} ({}) VALUES {} ON CONFLICT DO NOTHING")
        .format(sql.Identifier(table), names, values)
        .as_bytes()
    )


def _copy(connection: Any, table: Table, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    target, staging = sql.Identifier(table.name), sql.Identifier(f"staging_{table.name}")
    with connection.cursor() as cursor:
        cursor.execute(
            sql.SQL("CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT {} FROM {} WITH NO DATA").format(
                staging, names, target
            )
        )
        with cursor.copy(sql.SQL("COPY {} ({}) FROM STDIN").format(staging, names)) as copy:
            for row in rows:
                copy.write_row(row)
        cursor.execute(
            sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {} ON CONFLICT DO NOTHING").format(
                target, names, names, staging
            )
        )
        added: int = cursor.rowcount
        cursor.execute(sql.SQL("DROP TABLE {}").format(staging))
    return added
