"""Gate: the migrations have one head and make exactly the schema of the models. Changes no database but its own."""

import sys
import tempfile
from pathlib import Path

from alembic import command
from alembic.script import ScriptDirectory

from service import embedded
from service.store.engine import open_engine
from service.store.migrate import alembic_config, upgrade

config = alembic_config()
heads = ScriptDirectory.from_config(config).get_heads()
if len(heads) != 1:
    sys.exit(f"one head is wanted, there are {len(heads)}: {', '.join(heads)}")
with tempfile.TemporaryDirectory() as folder, embedded.start(Path(folder)) as urls:
    engine = open_engine(urls.database_url)
    upgrade(engine)
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.check(config)
    engine.dispose()
