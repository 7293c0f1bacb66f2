"""A small corpus put in through the store: a problem in every pool, one in none, text that wants to be HTML."""

import json
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from service.domain.leaks.benchmarks import (
    Benchmark,
    BenchmarkItem,
    BenchmarkPolicy,
    benchmarks_digest,
    contacts_digest,
)
from service.domain.policy import DEFAULT_POLICIES
from service.domain.rows.manifest import Manifest, build_manifest
from service.domain.rows.records import Row
from service.domain.rows.spec import SnapshotSpec
from service.domain.rows.splits import Split
from service.store import policies
from service.store.corpus import revisions, trajectories, verdicts
from service.store.corpus.trajectories import NewTrajectory
from service.store.corpus.verdicts import NewVerdict
from service.store.engine import transaction
from service.store.harvest import ledger, listings, standings, walks
from service.store.harvest.ledger import ExpectedItem, Note
from service.store.models import (
    AgentVersion,
    EvaluationRun,
    LedgerItem,
    LedgerState,
    Problem,
    Race,
    Snapshot,
    Trajectory,
)
from service.store.release import benchmarks, clusters, pools, snapshots
from service.store.release.clusters import MemberRow
from service.store.release.files import FileStore
from service.store.release.pools import PoolRow
from service.store.release.snapshots import NewRow
from tests.domain.sample_rows import make_row, problem

NOW = datetime(2026, 5, 4, 19, 0, tzinfo=UTC)
HOSTILE = '<script>alert("agent")</script><b>'
RULES = DEFAULT_POLICIES.rules.digest
POOLS = {"p-train": "train", "p-eval": "eval", "p-reserve": "reserve", "p-quarantined": "quarantined"}
UNASSIGNED = "p-new"
PROBLEMS = (*POOLS, UNASSIGNED)
ROWS_PER_SPLIT = 3
REPORT = {"ok": True, "checks": [{"name": "gold_ids", "ok": True, "count": 0, "examples": []}], "figures": {}}
FUNNEL = {
    "trajectories": 14,
    "verdicts": {"kept": 11, "loop": 3},
    "pools": {"eval": 3, "reserve": 2, "train": 6},
    "selection": {"duplicate": 2, "family_cap": 1},
    "rows": 6,
}
"""As the release stage stores it: of eleven kept trajectories two are in reserve, three were left out in selection."""
SECRET_QUERY = "the query of a held-out problem"
BENCHMARK = "published-questions"


def payload(query: str) -> bytes:
    """A legacy dialogue of one step, with a bare NaN, half a character, markup and 60 brackets in it."""
    deep: list[object] = []
    for _ in range(60):
        deep = [deep]
    call = {
        "name": "find_product",
        "parameters": {"q": query},
        "tool_call_id": "1",
        "result": [{"title": HOSTILE, "deep": deep}],
    }
    message = {"think": f"I look for {query} \ud83d", "tool_call": [call], "response": ""}
    step = {"completion": {"message": message}, "extra_info": {"query": query, "step": float("nan")}}
    return json.dumps([step]).encode()


def add_harvest(session: Session) -> None:
    """One race, two agents, five problems each, of which one was never given."""
    listings.save_races(
        session,
        [
            Race(
                race_id="race-1",
                suite_id=3,
                race_number=7,
                status="RACE_COMPLETE",
                is_complete=True,
                started_at=NOW,
                completed_at=NOW,
                source={},
            )
        ],
    )
    standings.add_commitment(session, "race-1", {"secret": "00", "secret_sha256": "11" * 32}, is_revealed=True)
    listings.save_agents(
        session,
        [
            AgentVersion(
                agent_version_id=version,
                agent_name=name,
                miner_hotkey="5Hot",
                version_number=1,
                family=version,
                source={},
            )
            for version, name in (("v1", "honest"), ("v2", HOSTILE))
        ],
    )
    listings.save_runs(
        session,
        [
            EvaluationRun(
                eval_run_id=f"run-{version}",
                agent_version_id=version,
                race_id="race-1",
                suite_id=3,
                validator_hotkey="5Val",
                phase="RACE",
                kind="legacy_shoppingbench",
                status="SUCCESS",
                is_over=True,
                counts=True,
                source={},
            )
            for version in ("v1", "v2")
        ],
    )
    listings.save_problems(
        session,
        [
            Problem(
                problem_id=name,
                kind="legacy_shoppingbench",
                category="Product",
                suite_id=3,
                query=SECRET_QUERY,
                reward=[{"product_id": "gold-77"}],
            )
            for name in PROBLEMS
        ],
    )
    session.flush()
    items = [
        ExpectedItem(run, name, name, None, {"status": "SUCCESS", "success": True, "score": 1.0})
        for run in ("run-v1", "run-v2")
        for name in PROBLEMS
    ]
    ledger.expect(session, items, NOW)
    # p-new of the second run is never given.
    rows = session.execute(select(LedgerItem.ledger_id, LedgerItem.eval_run_id, LedgerItem.item_key)).all()
    lost = next(row.ledger_id for row in rows if (row.eval_run_id, row.item_key) == ("run-v2", UNASSIGNED))
    ledger.claim(session, [lost], "message", NOW, 60.0)
    ledger.mark_refused(session, lost, "message", Note(LedgerState.GONE, "no_object", NOW, 1))
    given = [row for row in rows if row.ledger_id != lost]
    trajectories.add(
        session,
        [
            NewTrajectory(
                row.ledger_id,
                row.eval_run_id,
                row.item_key,
                row.item_key,
                "legacy_shoppingbench",
                payload(SECRET_QUERY),
                "e" * 64,
                {"judgement": {"status": "SUCCESS", "success": True, "components": {"gold": "gold-77"}}},
            )
            for row in given
        ],
    )
    ledger.mark_fetched(session, [row.ledger_id for row in given], NOW)
    walk = walks.begin(session)
    walks.finish(session, walk, races=1, runs=2, items=10, oddities={})


def add_verdicts(session: Session) -> None:
    """All but the last trajectory are judged: the first agent's are kept, the second's rejected."""
    policies.record(session, "rules", "sluice-1", RULES, {})
    unjudged = list(verdicts.unjudged(session, RULES, 100))
    half = len(PROBLEMS)
    verdicts.add(
        session,
        RULES,
        [
            NewVerdict(
                trajectory_id,
                "e" * 64,
                *(("kept", "kept", "agentic") if place < half else ("rejected", "loop", "scripted")),
                "claimed",
                [{"step": 0, "call": 0, "issuer": "model", "trust": "claimed", "rule": "content", "inference": 0}],
                {"reasoning_unjudged": True},
                ["secret-answer"],
                SECRET_QUERY,
            )
            for place, trajectory_id in enumerate(unjudged[:-1])
        ],
    )


def add_pools(session: Session) -> int:
    """Every problem but one in the pool of its name; returns the assignment's id."""
    for kind in ("leaks", "pools"):
        policies.record(session, kind, kind, f"{kind}-digest", {})
    revision = revisions.seal(session)
    clustering = clusters.save(
        session,
        revision=revision,
        plan_digest="leaks-digest",
        rules_digest=RULES,
        facts_known=1,
        benchmarks_digest=benchmarks_digest([]),
        contacts_digest=contacts_digest(benchmarks_digest([]), [], {}),
        members=[MemberRow(name, name, SECRET_QUERY, True, "gold-known", [], [f"gold-{name}"]) for name in POOLS],
        edges=[],
    )
    members = [PoolRow(name, pool, pool, "draw") for name, pool in POOLS.items()]
    return pools.save(session, clustering_id=clustering, plan_digest="pools-digest", members=members)


def asking(row: Row, query: str) -> Row:
    """The same row for another user."""
    turns = [msgspec.structs.replace(turn, content=query) if turn.role == "user" else turn for turn in row.messages]
    return msgspec.structs.replace(row, messages=tuple(turns))


def write(files: FileStore, eval_query: str | None = "five blue parasols with a wooden handle") -> Manifest:
    """Publish the files of a snapshot; with `eval_query` None its eval rows ask what its train rows ask."""
    digests = {"leak_plan_digest": "l", "pool_plan_digest": "p", "audit_digest": "a", "benchmarks_digest": "b"}
    spec = SnapshotSpec(rules="sluice-1/1", rules_digest=RULES, **digests)
    train = [make_row(number) for number in range(1, 1 + ROWS_PER_SPLIT)]
    held = [make_row(number) for number in range(101, 101 + ROWS_PER_SPLIT)]
    if eval_query is not None:
        held = [asking(row, eval_query) for row in held]
    with files.draft() as draft:
        for split, rows in ((Split.TRAIN, train), (Split.EVAL, held)):
            for row in sorted(rows, key=lambda row: row.row_id):
                draft.add(split, row, problem())
        contents = draft.finish()
        manifest = build_manifest(spec, contents.parts, contents.files, FUNNEL, REPORT, ["race-1"])
        draft.publish(manifest, REPORT)
    return manifest


def publish(session: Session, files: FileStore, assignment_id: int) -> str:
    """Record a snapshot of generated rows, as if made of the first agent's; returns its id."""
    manifest = write(files)
    snapshot = Snapshot(
        snapshot_id=manifest.snapshot_id,
        spec=manifest.spec,
        manifest=msgspec.to_builtins(manifest),
        audit=REPORT,
        train_rows=ROWS_PER_SPLIT,
        eval_rows=ROWS_PER_SPLIT,
    )
    honest = select(Trajectory.trajectory_id, Trajectory.problem_id).where(
        Trajectory.eval_run_id == "run-v1", Trajectory.problem_id.in_(("p-train", "p-eval"))
    )
    rows = [
        NewRow(trajectory_id, problem_id, "agentic", POOLS[problem_id])
        for trajectory_id, problem_id in session.execute(honest)
    ]
    snapshots.record(session, snapshot, rows)
    snapshots.decide(session, assignment_id, manifest.spec_digest, snapshot_id=manifest.snapshot_id, refusal=None)
    return manifest.snapshot_id


def fill(engine: Engine, folder: Path) -> str:
    """Put in everything; returns the snapshot's id."""
    with transaction(engine) as session:
        add_harvest(session)
        add_verdicts(session)
        items = (BenchmarkItem(1, SECRET_QUERY, ("gold-p-eval",)),)
        benchmarks.register(session, Benchmark(BENCHMARK, BenchmarkPolicy.DECLARED_PUBLIC, items))
        return publish(session, FileStore(folder), add_pools(session))
