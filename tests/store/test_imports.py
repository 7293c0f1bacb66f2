"""What an import may do to rows that are there, and they to it: nothing, but for what the source knows better."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from service.domain.imports.identity import Naming
from service.domain.imports.rows import Imported, read_row
from service.store.engine import transaction
from service.store.harvest import imports, ledger, listings
from service.store.models import AgentVersion, EvaluationRun, Problem
from tests.domain.dialogues import agentic_run

PROBLEM = "4b0ec436-6595-502e-bf33-1d976750fe7b"
ROWS = "SELECT * FROM agent_versions NATURAL JOIN evaluation_runs WHERE phase != 'IMPORTED'"
NOW = datetime(2026, 6, 1, tzinfo=UTC)
CHAT = {"messages": [{"role": "user", "content": "a bag"}, {"role": "assistant", "content": "No."}]}


@pytest.fixture
def session(engine: Engine) -> Iterator[Session]:
    with transaction(engine) as opened:
        yield opened


def row(**fields: Any) -> Imported:
    found = read_row(json.dumps({**CHAT, "metadata": {"problem_id": PROBLEM}, **fields}).encode(), None, Naming())
    assert isinstance(found, Imported)
    return found


def problems(session: Session) -> list[tuple[Any, ...]]:
    return [tuple(found) for found in session.execute(text("SELECT problem_id, kind, category, query FROM problems"))]


def listed() -> Problem:
    return Problem(
        problem_id=PROBLEM, kind="legacy_shoppingbench", category="Product", suite_id=None, query=None, reward=None
    )


def test_the_source_says_what_a_problem_is_before_or_after(session: Session) -> None:
    imports.add(session, [row()], NOW)
    assert problems(session) == [(PROBLEM, "messages", imports.CATEGORY, None)]
    listings.save_problems(session, [listed()])
    assert problems(session) == [(PROBLEM, "legacy_shoppingbench", "Product", None)]
    imports.add(session, [row(model="another")], NOW)
    assert problems(session) == [(PROBLEM, "legacy_shoppingbench", "Product", None)]


def test_claimed_ids_of_harvested_rows_are_not_taken(session: Session) -> None:
    agent = {"agent_version_id": "v", "agent_name": "v", "miner_hotkey": "5H", "version_number": 1, "family": "5H"}
    listings.save_agents(session, [AgentVersion(**agent, source={})])
    run = EvaluationRun(
        eval_run_id="run-1",
        agent_version_id="v",
        phase="QUALIFYING",
        kind="legacy_shoppingbench",
        status="SUCCESS",
        is_over=True,
        counts=True,
        source={},
    )
    listings.save_runs(session, [run])
    before = session.execute(text(ROWS)).all()
    claims = {"eval_run_id": "run-1", "agent_version_id": "v", "race_id": "r", "miner_hotkey": "5H"}
    added = imports.add(session, [row(**claims), row(**claims)], NOW)
    assert (added.stored, added.present) == (1, 1)
    assert session.execute(text(ROWS)).all() == before
    imported = "SELECT eval_run_id, agent_version_id FROM evaluation_runs WHERE phase = 'IMPORTED'"
    assert all(name.startswith("import:") for name in session.execute(text(imported)).one())


def test_nobody_asks_the_source_for_an_imported_row(session: Session) -> None:
    imports.add(session, [row()], NOW)
    assert [(count.state.value, count.items) for count in ledger.counts(session)] == [("fetched", 1)]


def test_the_dialogue_of_an_envelope_is_a_legacy_payload(session: Session) -> None:
    payload = agentic_run().payload()
    line = b'{"problem_id": "' + PROBLEM.encode() + b'", "dialogue": ' + payload + b"}"
    found = read_row(line, None, Naming())
    assert isinstance(found, Imported)
    imports.add(session, [found], NOW)
    stored = session.execute(text("SELECT kind, item_key, payload_sha256 FROM trajectories")).one()
    digest = session.scalar(text("SELECT encode(sha256(:payload), 'hex')"), {"payload": payload})
    assert tuple(stored) == ("legacy_shoppingbench", imports.ITEM_KEY, digest)
