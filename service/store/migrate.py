"""Bring a database to the current schema, from the packaged migrations. Holds no migration itself."""

from importlib.resources import files
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, text

MIGRATION_LOCK = 0x51C1CE
"""Key of the transaction-scoped advisory lock that lets one process migrate at a time."""


def alembic_config() -> Config:
    """Configuration that points at the packaged migrations, wherever the package is installed."""
    config = Config()
    config.set_main_option("script_location", str(Path(str(files("migrations")))))
    return config


def upgrade(engine: Engine) -> None:
    """Migrate to the newest revision; safe when several processes start at once."""
    config = alembic_config()
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def is_current(engine: Engine) -> bool:
    """Whether the database stands at the newest migration this package knows."""
    with engine.connect() as connection:
        present = MigrationContext.configure(connection).get_current_heads()
    return set(present) == set(ScriptDirectory.from_config(alembic_config()).get_heads())
