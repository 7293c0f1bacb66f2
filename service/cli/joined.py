"""The databases a command works with: those of the settings, else the private ones of the data folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from service import embedded
from service.config import Settings
from service.errors import ErrorCode, SluiceError
from service.store import migrate
from service.store.engine import open_engine


@dataclass(frozen=True, slots=True)
class Joined:
    """An open engine, and the settings with both URLs filled in."""

    engine: Engine
    settings: Settings


@contextmanager
def joined(settings: Settings, *, migrating: bool = False) -> Iterator[Joined]:
    """Join the databases, starting private ones where no URL is set.

    Args:
        settings: where things are.
        migrating: bring the schema up to date, and make the data folder if there is none. A command that only reads
            does neither.

    Raises:
        SluiceError: BAD_INPUT without a data folder, SCHEMA_OUTDATED, SERVICE_UNAVAILABLE.
    """
    with _addressed(settings, migrating) as addressed:
        assert addressed.database_url is not None
        engine = open_engine(addressed.database_url)
        try:
            _check_schema(engine, migrating)
            yield Joined(engine, addressed)
        finally:
            engine.dispose()


@contextmanager
def _addressed(settings: Settings, migrating: bool) -> Iterator[Settings]:
    if settings.database_url is not None and settings.redis_url is not None:
        yield settings
        return
    if not migrating and not holds_data(settings.data_dir):
        raise SluiceError(ErrorCode.BAD_INPUT, f"there is no data in {settings.data_dir}; `sluice up` puts some there")
    with embedded.start(settings.data_dir) as private:
        yield settings.model_copy(
            update={
                "database_url": settings.database_url or private.database_url,
                "redis_url": settings.redis_url or private.redis_url,
            }
        )


def holds_data(data_dir: Path) -> bool:
    """Whether private servers have ever kept anything below the folder; starts and writes nothing."""
    try:
        return (data_dir / "embedded" / "postgres").is_dir()
    except PermissionError:
        return True  # another account's: joining it says whose


def _check_schema(engine: Engine, migrating: bool) -> None:
    try:
        if migrating:
            migrate.upgrade(engine)
        elif not migrate.is_current(engine):
            raise SluiceError(ErrorCode.SCHEMA_OUTDATED, _standing(engine))
    except OperationalError as error:
        raise SluiceError(ErrorCode.SERVICE_UNAVAILABLE, "the database does not answer") from error


def _standing(engine: Engine) -> str:
    """How a schema that is not current differs."""
    with engine.connect() as connection:
        present = set(MigrationContext.configure(connection).get_current_heads())
    known = {each.revision for each in ScriptDirectory.from_config(migrate.alembic_config()).walk_revisions()}
    if not present:
        return "there is no data in the database; `sluice up` puts some there"
    if present <= known:
        return "the database has an older schema; run `sluice up` once"
    return "the database has a newer schema than this Sluice knows; install the newest"
