"""Counts by stake and incentive at the race's close, against a count in plain Python over the rows that were put in."""

import itertools
from collections import Counter
from datetime import timedelta

import pytest
from sqlalchemy import Engine

from service.domain.policy import DEFAULT_POLICIES
from service.domain.sn15.metagraph import MetagraphReading, Neuron
from service.store.corpus import trajectories
from service.store.corpus.trajectories import NewTrajectory
from service.store.engine import reading, transaction
from service.store.figures import statistics, trajectory_pages
from service.store.figures.statistics import Dimension
from service.store.harvest import chain, ledger, listings
from service.store.harvest.ledger import ExpectedItem
from service.store.models import AgentVersion, EvaluationRun, Problem, Race
from tests.store.conftest import NOW

RULES = DEFAULT_POLICIES.rules.digest
STAKES = {"5Rich": 123_456.0, "5Poor": 0.5, "5None": 0.0, "5Gone": None}
"""Of validators at every close; None: not registered any more."""
INCENTIVES = {"5Winner": 0.9, "5Second": 0.02, "5Dust": 1 / 65535, "5Nothing": 0.0, "5Left": None}
STAKE_BANDS = {123_456.0: "from 100000", 0.5: "above 0", 0.0: "0", None: "unregistered"}
INCENTIVE_BANDS = {0.9: "from 0.1", 0.02: "from 0.01", 1 / 65535: "above 0", 0.0: "0", None: "unregistered"}
LAGS = {"told": 0, "a bit late": 360, "too late": 361, "untold": None}
"""By race; None: it has no metagraph."""


def metagraph() -> MetagraphReading:
    staked = [(hotkey, stake, 0.0) for hotkey, stake in STAKES.items() if stake is not None]
    mining = [(hotkey, 0.0, share) for hotkey, share in INCENTIVES.items() if share is not None]
    neurons = tuple(
        Neuron(uid, hotkey, stake > 0, stake, incentive)
        for uid, (hotkey, stake, incentive) in enumerate(staked + mining)
    )
    return MetagraphReading(15, 1_000, None, NOW, neurons)


@pytest.fixture
def runs(engine: Engine) -> list[tuple[str | None, str | None, str | None]]:
    """One trajectory for every race or none, validator or none, miner or none: what each belongs to."""
    put_in = list(itertools.product([*LAGS, None], [*STAKES, None], [*INCENTIVES, None]))
    with transaction(engine) as session:
        listings.save_races(
            session,
            [
                Race(race_id=race, status="RACE_COMPLETE", is_complete=True, completed_at=NOW, source={})
                for race in LAGS
            ],
        )
        miners = [*INCENTIVES, None]
        listings.save_agents(
            session,
            [
                AgentVersion(agent_version_id=str(miner), agent_name="a", miner_hotkey=miner, family="f", source={})
                for miner in miners
            ],
        )
        listings.save_runs(session, [run(number, *of) for number, of in enumerate(put_in)])
        problem = Problem(problem_id="p", kind="legacy_shoppingbench", category="product")
        listings.save_problems(session, [problem])
        ledger.expect(session, [ExpectedItem(f"run-{n}", "p", "p", None, {}) for n in range(len(put_in))], NOW)
        for race, lag in LAGS.items():
            if lag is not None:
                chain.save_of_race(session, race, metagraph(), lag, is_late=lag > 0)
    with transaction(engine) as session:
        due = {row.eval_run_id: row for row in ledger.claim(session, ids(session), "m", NOW, 60.0)}
        trajectories.add(
            session,
            [
                NewTrajectory(row.ledger_id, run_id, "p", "p", "legacy_shoppingbench", b"[]", "e" * 64, {})
                for run_id, row in due.items()
            ],
        )
    return put_in


def ids(session: object) -> list[int]:
    return list(ledger.due(session, NOW + timedelta(seconds=1), 1_000))  # type: ignore[arg-type]


def run(number: int, race: str | None, validator: str | None, miner: str | None) -> EvaluationRun:
    return EvaluationRun(
        eval_run_id=f"run-{number}",
        agent_version_id=str(miner),
        race_id=race,
        validator_hotkey=validator,
        phase="RACE",
        kind="legacy_shoppingbench",
        status="SUCCESS",
        is_over=True,
        counts=True,
        source={},
    )


def bands(race: str | None, validator: str | None, miner: str | None) -> tuple[str | None, str | None]:
    """By the tables above and nothing else: a reading up to 360 blocks late still tells."""
    if race not in ("told", "a bit late"):
        return None, None
    stake = STAKE_BANDS[STAKES[validator]] if validator is not None else None
    incentive = INCENTIVE_BANDS[INCENTIVES[miner]] if miner is not None else None
    return stake, incentive


def test_counts_by_stake_and_incentive(engine: Engine, runs: list[tuple[str | None, str | None, str | None]]) -> None:
    assert len(runs) == 5 * 5 * 6
    by = [Dimension.STAKE, Dimension.INCENTIVE, Dimension.RACE]
    with reading(engine) as session:
        counted = {row.values: row.trajectories for row in statistics.counts(session, RULES, by)}
        by_stake = {row.values[0]: row.trajectories for row in statistics.counts(session, RULES, [Dimension.STAKE])}
    assert counted == Counter((*bands(*of), of[0]) for of in runs)
    assert by_stake == Counter(bands(*of)[0] for of in runs)


def test_counts_that_ask_for_no_chain_are_as_without_one(
    engine: Engine, runs: list[tuple[str | None, str | None, str | None]]
) -> None:
    with reading(engine) as session:
        (all_in_one,) = statistics.counts(session, RULES, [Dimension.KIND])
    assert all_in_one == (("legacy_shoppingbench",), len(runs))


def test_pages_can_be_filtered_by_a_band(engine: Engine, runs: list[tuple[str | None, str | None, str | None]]) -> None:
    wanted = {Dimension.STAKE: "from 100000", Dimension.INCENTIVE: "0"}
    with reading(engine) as session:
        rows = trajectory_pages.page(session, RULES, filters=wanted)
    expected = {f"run-{number}" for number, of in enumerate(runs) if bands(*of) == ("from 100000", "0")}
    assert {row.eval_run_id for row in rows} == expected
    assert len(expected) == 2
