"""Coverage says of every ledger what counting its rows one by one says, and loses none of them."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, insert, text

from service.errors import SluiceError
from service.store.engine import open_engine, reading, transaction
from service.store.harvest import ledger, listings, trajectory_history
from service.store.harvest.coverage import QUALIFYING, Cover, Refused, Runs, coverage
from service.store.models import AgentVersion, EvaluationRun, LedgerItem, LedgerState, Problem, Race
from tests.store.conftest import NOW

RACES = ("race-1", "race-2", "race-called-off")
AGENTS = ("agent-1", "agent-2", "agent-3")
PROBLEMS = ("p-1", "p-2", "p-3")
REASONS = (None, "no_object", "truncated", "race_in_flight")


class ARun(NamedTuple):
    """A generated run, with the state, reason, attempts, due hour and claim of each of its items."""

    race_id: str | None
    agent: str
    phase: str
    counts: bool
    is_listed: bool
    items: list[tuple[LedgerState, str | None, int, int, bool]]

    @property
    def is_imported(self) -> bool:
        return self.phase == "IMPORTED"


ITEMS = st.tuples(
    st.sampled_from(LedgerState), st.sampled_from(REASONS), st.integers(0, 9), st.integers(0, 5), st.booleans()
)
RUNS = st.builds(
    lambda race, imported, **rest: ARun(
        race_id=None if imported else race, phase="IMPORTED" if imported else "RACE" if race else "QUALIFYING", **rest
    ),
    race=st.sampled_from((None, *RACES)),
    imported=st.booleans(),
    agent=st.sampled_from(AGENTS),
    counts=st.booleans(),
    is_listed=st.booleans(),
    items=st.lists(ITEMS, max_size=len(PROBLEMS)),
)


@pytest.fixture(scope="module")
def engine(new_database: Callable[[], AbstractContextManager[str]]) -> Iterator[Engine]:
    with new_database() as url:
        engine = open_engine(url)
        yield engine
        engine.dispose()


def fill(engine: Engine, runs: list[ARun]) -> None:
    """Put exactly these runs into an emptied database."""
    with engine.begin() as connection:
        for table in ("harvest_ledger", "evaluation_runs", "races", "agent_versions", "problems"):
            connection.execute(text(f"DELETE FROM {table}"))
    with transaction(engine) as session:
        races = [
            Race(race_id=name, status="RACE_COMPLETE", is_complete=True, source={}, is_cancelled="off" in name)
            for name in RACES
        ]
        listings.save_races(session, races)
        agents = [AgentVersion(agent_version_id=name, agent_name=name, family=name, source={}) for name in AGENTS]
        listings.save_agents(session, agents)
        kind = "legacy_shoppingbench"
        problems = [Problem(problem_id=name, kind=kind, category="product") for name in PROBLEMS]
        listings.save_problems(session, problems)
        for number, run in enumerate(runs):
            row: dict[str, Any] = {"eval_run_id": f"run-{number}", "agent_version_id": run.agent, "kind": kind}
            row |= {"race_id": run.race_id, "phase": run.phase, "status": "SUCCESS", "is_over": True, "source": {}}
            row |= {"counts": run.counts, "listed_at": NOW if run.is_listed else None}
            session.execute(insert(EvaluationRun).values(row))
            for problem, (state, reason, attempts, hour, is_claimed) in zip(PROBLEMS, run.items, strict=False):
                item = {"eval_run_id": f"run-{number}", "item_key": problem, "problem_id": problem, "judgement": {}}
                item |= {"state": state, "reason": reason, "attempts": attempts, "next_try_at": at(hour)}
                session.execute(insert(LedgerItem).values(item | {"claimed_by": "message" if is_claimed else None}))


def at(hour: int) -> datetime:
    return NOW + timedelta(hours=hour)


def counted(runs: list[ARun]) -> dict[str, Any]:
    """The figures of some runs, counted one by one."""
    items = [item for run in runs for item in run.items]
    states = Counter(state.value for state, *_ in items)
    lost = [run for run in runs if not run.counts or (not run.is_listed and run.race_id == "race-called-off")]
    left = [run for run in runs if run not in lost]
    return {
        "items": len(items),
        **{state.value: states[state.value] for state in LedgerState},
        "listed": sum(run.is_listed for run in left),
        "to_list": sum(not run.is_listed for run in left),
        "not_counting": len(lost),
        "embargoes": refused(items, LedgerState.EMBARGOED),
        "failures": refused(items, LedgerState.FAILED),
        "losses": refused(items, LedgerState.GONE),
    }


def refused(items: list[Any], state: LedgerState) -> set[Refused]:
    found = set()
    for reason in REASONS:
        own = [item for item in items if item[:2] == (state, reason)]
        hours = [hour for *_, hour, is_claimed in own if not is_claimed and state is not LedgerState.GONE]
        tries = (at(min(hours)), at(max(hours))) if hours else (None, None)
        if own:
            found.add(Refused(reason, len(own), max(attempts for _, _, attempts, *_ in own), *tries))
    return found


def shown(cover: Cover) -> dict[str, Any]:
    told = cover._asdict()
    told |= told.pop("runs")._asdict()
    return told | {name: set(told[name]) for name in ("embargoes", "failures", "losses")}


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs=st.lists(RUNS, max_size=8))
def test_the_figures_are_those_of_counting_one_by_one(engine: Engine, runs: list[ARun]) -> None:
    fill(engine, runs)
    own = [run for run in runs if not run.is_imported]
    with reading(engine) as session:
        everything = coverage(session)
        alone = {name: coverage(session, name) for name in (*RACES, QUALIFYING)}
        states = Counter({count.state.value: 0 for count in ledger.counts(session)})
        for count in ledger.counts(session):
            states[count.state.value] += count.items
    assert {race.race_id for race in everything.races} == {*RACES, QUALIFYING}
    assert everything.races[-1].race_id == QUALIFYING
    for race in everything.races:
        in_race = [run for run in own if (run.race_id or QUALIFYING) == race.race_id]
        assert shown(race.cover) == counted(in_race)
        only = alone[race.race_id]
        assert only.races == [race]
        assert only.agents is not None
        of_agents = {agent.agent_version_id: shown(agent.cover) for agent in only.agents}
        names = {run.agent for run in in_race}
        assert of_agents == {name: counted([run for run in in_race if run.agent == name]) for name in names}
        assert race.cover.items == sum(getattr(race.cover, state.value) for state in LedgerState)
    imported = Counter(state.value for run in runs if run.is_imported for state, *_ in run.items)
    for state in LedgerState:
        held = sum(getattr(race.cover, state.value) for race in everything.races)
        assert held == states[state.value] - imported[state.value]
    pairs = {(run.agent, name) for run in own for name, _ in zip(PROBLEMS, run.items, strict=False)}
    assert everything.history.listed == len(pairs)


def cover_of(items: str, *, listed: bool = True) -> float | None:
    """Share of a race with one run, whose items are given by their states' first two letters."""
    states = {state.value[:2]: state for state in LedgerState}
    found = Counter(states[name] for name in items.split())
    states_given = {state.value: found[state] for state in LedgerState}
    runs = Runs(listed=int(listed), to_list=int(not listed))
    return Cover(len(items.split()), **states_given, runs=runs, embargoes=[], failures=[], losses=[]).share


@pytest.mark.parametrize(
    ("items", "listed", "share"),
    [
        ("fe fe ch fa", True, 3 / 4),  # what is to be asked for again is stored
        ("fe go em", True, 1 / 2),  # what is gone cannot be had
        ("go go", True, None),
        ("", True, None),
        ("fe", False, None),  # nobody knows of how many
    ],
)
def test_a_share_is_named_only_where_it_means_something(items: str, listed: bool, share: float | None) -> None:
    assert cover_of(items, listed=listed) == share


def test_a_race_nobody_knows_is_not_found(engine: Engine) -> None:
    with reading(engine) as session, pytest.raises(SluiceError, match="NOT_FOUND"):
        coverage(session, "no such race")


def test_a_reading_that_says_the_same_adds_no_row(engine: Engine) -> None:
    days = [{"date": "2026-05-04", "distinct": 3, "cumulative": 3}]
    for hour, (total, series) in enumerate([(None, []), (3, days), (3, days), (4, days)]):
        with transaction(engine) as session:
            trajectory_history.note(session, total, series, at(hour))
    with reading(engine) as session:
        rows = session.execute(text("SELECT total, read_at FROM trajectory_history ORDER BY history_id")).all()
        compared = trajectory_history.compared(session)
    assert [tuple(row) for row in rows] == [(None, at(0)), (3, at(2)), (4, at(3))]
    assert (compared.total, compared.difference) == (4, 4 - compared.stored)
