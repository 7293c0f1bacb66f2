"""A store with one race in it, for tests that need rows to hang on to."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import Engine

from service.store.engine import open_engine, transaction
from service.store.harvest import ledger, listings
from service.store.harvest.ledger import ExpectedItem
from service.store.models import AgentVersion, EvaluationRun, Problem, Race

NOW = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """An engine on the test's own database."""
    engine = open_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def ledger_ids(engine: Engine) -> list[int]:
    """Four expected items of one run: problems p0 to p3."""
    with transaction(engine) as session:
        listings.save_races(
            session, [Race(race_id="race", suite_id=3, status="RACE_COMPLETE", is_complete=True, source={})]
        )
        agent = AgentVersion(agent_version_id="agent", agent_name="agent", family="family", source={})
        listings.save_agents(session, [agent])
        run = EvaluationRun(
            eval_run_id="run",
            agent_version_id="agent",
            race_id="race",
            suite_id=3,
            phase="RACE",
            kind="legacy_shoppingbench",
            status="SUCCESS",
            is_over=True,
            counts=True,
            source={},
        )
        listings.save_runs(session, [run])
        problems = [
            Problem(problem_id=f"p{n}", kind="legacy_shoppingbench", category="product", suite_id=3) for n in range(4)
        ]
        listings.save_problems(session, problems)
        expected = [ExpectedItem("run", f"p{n}", f"p{n}", None, {"success": True}) for n in range(4)]
        assert ledger.expect(session, expected, NOW) == 4
    with transaction(engine) as session:
        return list(ledger.due(session, NOW, 10))
