"""Bulk writes: COPY into a temporary table, then one INSERT that skips what is already there. Knows no table."""

from collections.abc import Iterable, Sequence
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import Table
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session


def copy_missing(session: Session, table: Table, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
    """Write `rows` with COPY; rows that clash with a unique key of `table` are left as they are stored.

    Args:
        session: open transaction; the temporary table lives no longer than this call.
        table: target table.
        columns: names of the columns that each row gives, in order.
        rows: values ready for psycopg (JSON columns wrapped in `Jsonb`).

    Returns:
        Number of rows that were new.

    Raises:
        DBAPIError: as a statement of SQLAlchemy's own would.
    """
    try:
        return _copy(session, table, columns, rows)
    except psycopg.Error as fault:
        dialect = session.get_bind().dialect
        raise DBAPIError.instance("COPY", None, fault, psycopg.Error, hide_parameters=True, dialect=dialect) from fault


def _copy(session: Session, table: Table, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    target, staging = sql.Identifier(table.name), sql.Identifier(f"staging_{table.name}")
    connection = session.connection().connection.driver_connection
    assert connection is not None
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
