"""`sluice plan` over the filled database: what is open, why it would be asked for, and how far the harvest reaches."""

import json

import pytest

from service.store.engine import open_engine, transaction
from service.store.harvest.ledger import ExpectedItem, expect
from tests.api.conftest import Service
from tests.api.corpus import NOW
from tests.cli.test_reading import sluice


@pytest.fixture(scope="module")
def opened(service: Service) -> Service:
    """One more item of a problem, listed and not asked for."""
    assert service.settings.database_url is not None
    engine = open_engine(service.settings.database_url)
    with engine.connect() as connection:
        query = "SELECT eval_run_id, problem_id FROM harvest_ledger ORDER BY ledger_id LIMIT 1"
        run, problem = connection.exec_driver_sql(query).one()
    with transaction(engine) as session:
        expect(session, [ExpectedItem(run, "one more", problem, None, {"success": True})], NOW)
    engine.dispose()
    return service


def test_the_plan_for_machines_names_items_reasons_and_numbers(opened: Service) -> None:
    told = json.loads(sluice("plan", "--json", service=opened).stdout)
    assert told["policy"]["name"] == "plan-1"
    (mine,) = [choice for choice in told["choices"] if choice["hint"] is True]
    assert mine["gain"] > 0
    assert mine["reason"] in ("first_kept", "version_unsampled", "family_unseen", "depth")
    assert set(mine["parts"]) == {"first", "version", "family", "depth", "negative", "floor"}
    reach = told["reach"]
    assert reach["problems"] == reach["problems_kept"] + reach["problems_open"] + reach["problems_without"]
    assert reach["versions"] == reach["versions_sampled"] + reach["versions_begun"] + reach["versions_unseen"] == 2


def test_the_plan_for_people(opened: Service) -> None:
    told = sluice("plan", "--explain", service=opened).stdout
    assert "with a kept trajectory" in told
    assert "chance" in told


def test_a_limit_is_kept_to(opened: Service) -> None:
    assert len(json.loads(sluice("plan", "--json", "--limit", "1", service=opened).stdout)["choices"]) == 1
