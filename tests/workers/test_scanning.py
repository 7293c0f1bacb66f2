"""Released code as evidence: of every trajectory of its agent, each state once, however late it comes."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import func, select

from service.domain.agent_code import scanner as agent_source
from service.domain.agent_code.code_scan import SCANNER_VERSION, CodeScan, Dispatch
from service.domain.attribution.evidence import Evidence
from service.domain.filter.structure import Outcome
from service.domain.policy import DEFAULT_POLICIES
from service.replay.faults import Faults
from service.replay.server import Replay, replaying
from service.store.corpus import code_scans, evidence, families, revisions, trajectories
from service.store.engine import reading, transaction
from service.store.models import (
    AgentCode,
    AgentCodeScan,
    AgentVersion,
    EvaluationRun,
    LedgerItem,
    Payload,
    ScannedTrajectory,
    Trajectory,
)
from service.store.models import Evidence as EvidenceRow
from service.store.release import clusters, pools, snapshots
from service.store.release.snapshots import Scope
from service.store.work import backlog
from tests.domain import agent_sources
from tests.replay.recording import write_recording
from workers import scanning
from workers.agent_code import collect
from workers.context import Context
from workers.stages import assign, cluster, filter, ingest
from workers.subscribe import walk

RULE = DEFAULT_POLICIES.leaks.families.digest
SOURCES = [agent_sources.REACT, agent_sources.REGEX, agent_sources.HYBRID, agent_sources.NATIVE, agent_sources.ECHO]


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[Replay]:
    """Five agents, whose races are all over, each with code of its own."""
    with replaying(write_recording(tmp_path / "recording"), faults=Faults()) as server:
        for race_id, race in server.archive.races.items():
            server.archive.races[race_id] = replace(race, status="RACE_COMPLETE", completed_at=race.started_at)
        for (key, agent), source in zip(sorted(server.archive.agents.items()), SOURCES, strict=True):
            server.archive.agents[key] = replace(agent, code=source.encode())
        yield server


@pytest.fixture
def harvested(context: Context, replay: Replay) -> Context:
    """Everything fetched and judged before any code is known."""
    walk(context)
    with reading(context.engine) as session:
        due = list(session.scalars(select(LedgerItem.ledger_id)))
    ids = ingest.run(due, context, "test")
    filter.run(ids, context, "test")
    return context


def states(context: Context) -> dict[int, list[Evidence]]:
    """Every state of the evidence, by trajectory, in order."""
    with reading(context.engine) as session:
        found: dict[int, list[Evidence]] = {}
        for number, body in session.execute(
            select(EvidenceRow.trajectory_id, EvidenceRow.body).order_by(EvidenceRow.seq)
        ):
            found.setdefault(number, []).append(msgspec.convert(body, Evidence))
        return found


def code_of(context: Context) -> dict[int, str]:
    """Sha256 of the code that each trajectory's agent has."""
    with reading(context.engine) as session:
        rows = session.execute(
            select(Trajectory.trajectory_id, AgentCode.code_sha256)
            .join(EvaluationRun, EvaluationRun.eval_run_id == Trajectory.eval_run_id)
            .join(AgentCode, AgentCode.agent_version_id == EvaluationRun.agent_version_id)
        )
        return {number: str(sha256) for number, sha256 in rows}


def test_late_code_becomes_evidence_of_every_trajectory_once(harvested: Context) -> None:
    before = states(harvested)
    assert all(len(one) == 1 for one in before.values())
    assert not scanning.follow(harvested)
    assert collect(harvested) == len(SOURCES)
    assert backlog_due(harvested)
    assert scanning.follow(harvested)
    after, sha256 = states(harvested), code_of(harvested)
    assert after.keys() == before.keys() == sha256.keys()
    scans = {hashlib.sha256(one.encode()).hexdigest(): agent_source.scan(one.encode()) for one in SOURCES}
    for number, (first, second) in after.items():
        assert [first] == before[number]
        assert second == msgspec.structs.replace(first, agent_code=sha256[number], code=scans[sha256[number]])
        assert second.digest != first.digest
    assert not backlog_due(harvested)
    assert not scanning.follow(harvested)
    assert states(harvested) == after


def backlog_due(context: Context) -> bool:
    with reading(context.engine) as session:
        return backlog.code_due(session, RULE)


def test_late_code_makes_new_verdicts(harvested: Context) -> None:
    rules = harvested.policies.rules.digest
    with reading(harvested.engine) as session:
        assert backlog.trajectories_unjudged(session, rules, 1000) == []
    collect(harvested)
    scanning.follow(harvested)
    with reading(harvested.engine) as session:
        assert set(backlog.trajectories_unjudged(session, rules, 1000)) == code_of(harvested).keys()


def test_what_is_harvested_after_the_scan_gets_it_too(context: Context, replay: Replay) -> None:
    walk(context)
    collect(context)
    scanning.follow(context)
    with reading(context.engine) as session:
        due = list(session.scalars(select(LedgerItem.ledger_id)))
    ingest.run(due[:3], context, "test")
    scanning.follow(context)
    assert [one[-1].code is not None for one in states(context).values()] == [True] * 3
    ingest.run(due[3:], context, "test")
    scanning.follow(context)
    assert all(one[-1].code is not None and len(one) == 2 for one in states(context).values())


def test_a_new_scanner_makes_new_states(harvested: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    collect(harvested)
    scanning.follow(harvested)
    monkeypatch.setattr(scanning, "SCANNER_VERSION", "sluice-scan/next")
    monkeypatch.setattr(scanning, "scan", lambda _: CodeScan(scanner="sluice-scan/next", dispatch=Dispatch.MODEL))
    assert scanning.follow(harvested)
    assert all(
        [one.code.scanner for one in each if one.code] == [SCANNER_VERSION, "sluice-scan/next"]
        for each in states(harvested).values()
    )
    assert not scanning.follow(harvested)


@pytest.mark.parametrize("step", ["add", "take_in", "revise_all"])
def test_a_kill_at_any_write_loses_nothing(harvested: Context, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    collect(harvested)
    monkeypatch.setattr(scanning, "BATCH", 4)
    where = evidence if step == "revise_all" else code_scans
    whole, calls = getattr(where, step), []

    def die_after_third(*arguments: object, **named: object) -> object:
        done = whole(*arguments, **named)
        calls.append(step)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(where, step, die_after_third)
    with pytest.raises(KeyboardInterrupt):
        scanning.follow(harvested)
    scanning.follow(harvested)
    assert all(len(each) == 2 and each[1].code is not None for each in states(harvested).values())
    with reading(harvested.engine) as session:
        assert session.scalar(select(func.count()).select_from(AgentCodeScan)) == len(SOURCES)
        assert session.scalar(select(func.count()).select_from(ScannedTrajectory)) == len(states(harvested))


def test_a_replaced_payload_keeps_the_scan(harvested: Context) -> None:
    collect(harvested)
    scanning.follow(harvested)
    number = next(iter(states(harvested)))
    with transaction(harvested.engine) as session:
        assert trajectories.revise(session, number, b"[{}]")
    last = states(harvested)[number][-1]
    assert last.code is not None
    assert last.payload_sha256 == hashlib.sha256(b"[{}]").hexdigest()


def copied(context: Context, replay: Replay) -> tuple[str, str]:
    """Give two agents under two hotkeys nearly the same code; returns the families they had."""
    with transaction(context.engine) as session:
        for version in session.scalars(select(AgentVersion)):
            version.family = f"hotkey-{version.agent_version_id}"
        session.flush()
        heard = clusters.reports(session, context.policies.rules.digest, revisions.seal(session))
        one, other = sorted({report.family for report in heard})[:2]
    dressed_up = agent_sources.REACT.replace("messages", "talk").replace("steps", "record").replace("12", "22")
    for family, source in ((one, agent_sources.REACT), (other, dressed_up)):
        key = family.removeprefix("hotkey-")
        replay.archive.agents[key] = replace(replay.archive.agents[key], code=source.encode())
    return one, other


def test_near_copies_under_other_hotkeys_are_one_family_from_a_revision_on(harvested: Context, replay: Replay) -> None:
    one, other = copied(harvested, replay)
    with transaction(harvested.engine) as session:
        before = revisions.seal(session)
    collect(harvested)
    scanning.follow(harvested)
    with transaction(harvested.engine) as session:
        assert revisions.has_unsealed_rows(session)
        after = revisions.seal(session)
        assert families.merged(session, RULE, before) == {}
        assert families.merged(session, "another rule", after) == {}
        merged = families.merged(session, RULE, after)
        assert (merged[one], merged[other]) == (one, one)
        rules = harvested.policies.rules.digest
        apart = {report.family for report in clusters.reports(session, rules, before)}
        together = {report.family for report in clusters.reports(session, rules, after, merged)}
    assert {one, other} <= apart
    assert one in together
    assert other not in together
    assert not scanning.follow(harvested)


def test_a_snapshot_sees_the_families_of_its_revision(harvested: Context, replay: Replay) -> None:
    one, other = copied(harvested, replay)
    collect(harvested)
    scanning.follow(harvested)
    filter.run(list(states(harvested)), harvested, "test")
    cluster.run([], harvested, "test")
    assign.run([], harvested, "test")
    with reading(harvested.engine) as session:
        found = pools.releasable(session)
        assert found is not None
        scope = Scope(harvested.policies.rules.digest, *found[:3], RULE)
        rows = [row for outcome in Outcome for row in snapshots.judged(session, scope, outcome)]
        (again,) = snapshots.judged_by_id(session, scope, [rows[0].trajectory_id])
        unlinked = snapshots.judged_by_id(
            session, scope._replace(family_rule_digest="x"), [r.trajectory_id for r in rows]
        )
        apart = {row.family for row in unlinked}
    assert len(rows) == len(states(harvested))
    assert again.family == rows[0].family
    assert apart - {row.family for row in rows} >= {other}
    assert one in {row.family for row in rows}


def test_no_text_of_a_source_is_stored_with_its_scan(harvested: Context) -> None:
    collect(harvested)
    scanning.follow(harvested)
    with reading(harvested.engine) as session:
        stored = json.dumps(list(session.scalars(select(AgentCodeScan.body))))
        assert session.scalar(select(func.count()).select_from(Payload))
    assert "agent_main" not in stored
    assert "def " not in stored
