"""What all tables share: constraint names, column types. Holds no table."""

from datetime import datetime
from typing import Annotated, Any

from sqlalchemy import BigInteger, DateTime, Identity, MetaData, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, mapped_column

CONSTRAINT_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}

JsonObject = dict[str, Any]

Serial = Annotated[int, mapped_column(BigInteger, Identity(), primary_key=True)]
Moment = Annotated[datetime, mapped_column(DateTime(timezone=True))]
RecordedAt = Annotated[datetime, mapped_column(DateTime(timezone=True), server_default=func.now())]


class Base(DeclarativeBase):
    """Declarative base: JSONB for dicts, timestamps with time zone, named constraints."""

    metadata = MetaData(naming_convention=CONSTRAINT_NAMES)
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads a plain class attribute
        JsonObject: JSONB(none_as_null=True),
        list[JsonObject]: JSONB(none_as_null=True),
        datetime: DateTime(timezone=True),
    }
