"""Connections and transactions. Knows no table; the caller of `transaction` is the edge where commits happen."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
from psycopg.errors import ProgramLimitExceeded
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.orm import Session

_WRONG_STATEMENT = "42"
"""Class of a statement that the schema does not fit or permit, whatever its values: no row is to blame."""


def open_engine(database_url: str, *, pool_size: int = 5) -> Engine:
    """Open a pool on `database_url` (`postgresql://` or `postgresql+psycopg://`; psycopg 3 either way).

    Args:
        database_url: where Postgres is.
        pool_size: connections kept; as many again may be opened under load.
    """
    url = database_url.replace("postgresql://", "postgresql+psycopg://", 1)
    engine = create_engine(
        url,
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_pre_ping=True,
        hide_parameters=True,  # values may be strangers' text, and faults are logged
        json_serializer=lambda value: orjson.dumps(value).decode(),
        json_deserializer=orjson.loads,
        connect_args={"application_name": "sluice", "connect_timeout": 10},
    )
    event.listen(engine, "connect", _tell_time_in_utc)
    return engine


def _tell_time_in_utc(connection: Any, _record: object) -> None:
    """Whatever the server's own time zone is: near the ends of the calendar another one has no such date."""
    connection.execute("SET TIME ZONE 'UTC'")
    connection.commit()


def is_about_values(fault: DBAPIError) -> bool:
    """Whether a fault is about the values that were to be stored, and not about the database being away."""
    refused = isinstance(fault, DataError | IntegrityError | ProgrammingError)
    sqlstate = getattr(fault.orig, "sqlstate", None) or ""
    return (refused and not sqlstate.startswith(_WRONG_STATEMENT)) or isinstance(fault.orig, ProgramLimitExceeded)


@contextmanager
def transaction(engine: Engine, *, is_derived: bool = False) -> Iterator[Session]:
    """One transaction: committed when the block ends, rolled back when it raises.

    Args:
        engine: the database.
        is_derived: all that is written follows from what is stored and is made again if it is lost, so that the commit
            need not wait for the disk. Whatever is committed later and rests on it waits for both.
    """
    with Session(engine, expire_on_commit=False) as session, session.begin():
        if is_derived:
            session.execute(text("SET LOCAL synchronous_commit TO off"))
        yield session


@contextmanager
def reading(engine: Engine) -> Iterator[Session]:
    """One read-only transaction with a single, stable view of the data."""
    with (
        engine.connect().execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True) as connection,
        Session(connection, expire_on_commit=False) as session,
    ):
        yield session
