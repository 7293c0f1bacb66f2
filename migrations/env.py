"""Alembic's entry: runs migrations on the connection or URL it is handed. Decides nothing about either."""

from alembic import context
from sqlalchemy import Connection, create_engine

from service.config import Settings
from service.store.models import Base


def run(connection: Connection) -> None:
    """Run the migrations in one transaction each, with lock and statement limits fit for a live service."""
    context.configure(connection=connection, target_metadata=Base.metadata, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()


def main() -> None:
    """Use the connection given in the config's attributes, else the URL of `-x url=`, else the settings'."""
    connection = context.config.attributes.get("connection")
    if connection is not None:
        run(connection)
        return
    url = context.get_x_argument(as_dictionary=True).get("url") or Settings().database_url
    if url is None:
        raise SystemExit("no database: give -x url=postgresql+psycopg://... or set SLUICE_DATABASE_URL")
    with create_engine(url).connect() as opened:
        run(opened)
        opened.commit()


main()
