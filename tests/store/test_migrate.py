"""Migrations on a database that holds rows: what was stored before is whole and readable afterwards, both ways."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
import zstandard
from alembic import command
from sqlalchemy import Connection, Engine, select, text

from service.domain.harvest.rereading import due
from service.store.corpus import trajectories
from service.store.corpus.tombstones import entombed
from service.store.engine import reading
from service.store.harvest import rereading
from service.store.migrate import alembic_config, is_current, upgrade

PAYLOAD = b"[]"
STORED_BY_THE_FIRST_SCHEMA = (
    "INSERT INTO races (race_id, status, is_complete, source) VALUES ('race', 'RACE_COMPLETE', true, '{}')",
    "INSERT INTO agent_versions (agent_version_id, agent_name, family, source) VALUES ('agent', 'a', 'f', '{}')",
    "INSERT INTO evaluation_runs (eval_run_id, agent_version_id, race_id, phase, kind, status, is_over, counts, source)"
    " VALUES ('run', 'agent', 'race', 'RACE', 'legacy_shoppingbench', 'SUCCESS', true, true, '{}')",
    "INSERT INTO problems (problem_id, kind, category) VALUES ('p', 'legacy_shoppingbench', 'product')",
    "INSERT INTO harvest_ledger (eval_run_id, item_key, problem_id, judgement, state, next_try_at)"
    " VALUES ('run', 'p', 'p', '{}', 'fetched', now())",
    "INSERT INTO payloads (payload_sha256, zstd, size_bytes) VALUES ('00', :zstd, 2)",
    "INSERT INTO trajectories (ledger_id, eval_run_id, item_key, problem_id, payload_sha256, kind)"
    " SELECT ledger_id, 'run', 'p', 'p', '00', 'legacy_shoppingbench' FROM harvest_ledger",
    "INSERT INTO evidence (trajectory_id, evidence_digest, body) SELECT trajectory_id, 'e', '{}' FROM trajectories",
)


def migrate(engine: Engine, step: Callable[..., None], revision: str) -> None:
    config = alembic_config()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        step(config, revision)


def store(connection: Connection) -> None:
    for statement in STORED_BY_THE_FIRST_SCHEMA:
        values = {"zstd": zstandard.compress(PAYLOAD)} if ":zstd" in statement else {}
        connection.execute(text(statement), values)


@pytest.fixture
def old(engine: Engine) -> Engine:
    """A database as the first schema left it, with a row in each table of the harvest."""
    migrate(engine, command.downgrade, "0001")
    with engine.begin() as connection:
        store(connection)
    return engine


def test_what_the_first_schema_stored_is_read_by_the_newest(old: Engine) -> None:
    assert not is_current(old)
    upgrade(old)
    assert is_current(old)
    with reading(old) as session:
        (trajectory_id,) = session.execute(text("SELECT trajectory_id FROM trajectories")).scalars()
        assert trajectories.payload(session, trajectory_id) == PAYLOAD


def test_what_was_taken_back_before_there_were_tombstones_gets_one(old: Engine) -> None:
    with old.begin() as connection:
        connection.execute(text("UPDATE evaluation_runs SET invalidated_at = now()"))
    upgrade(old)
    with reading(old) as session:
        assert session.scalars(select(entombed().c.reason)).all() == ["run_invalidated"]


def test_agents_that_were_settled_have_their_turn_within_the_allowance(old: Engine) -> None:
    # Else the first walk over a large corpus would list every agent version there is.
    with old.begin() as connection:
        connection.execute(text("UPDATE evaluation_runs SET listed_at = now(), completed_at = now()"))
    upgrade(old)
    now = datetime.now(UTC)
    with reading(old) as session:
        assert rereading.wanted_agents(session, now, now) == set()
        assert due(rereading.agent_readings(session), now + timedelta(hours=3)) == ["agent"]


def test_the_way_back_loses_no_row_of_the_first_schema(old: Engine) -> None:
    upgrade(old)
    with old.begin() as connection:
        connection.execute(text("UPDATE harvest_ledger SET state = 'changed'"))
    migrate(old, command.downgrade, "0001")
    with old.begin() as connection:
        states = connection.execute(text("SELECT state FROM harvest_ledger JOIN trajectories USING (ledger_id)"))
        assert states.scalars().all() == ["fetched"]
