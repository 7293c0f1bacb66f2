"""Imported rows go the way of all rows: judged, clustered, assigned, released, shown; and never stand for others."""

import json
from collections import Counter
from pathlib import Path
from threading import Event

from sqlalchemy import select, text
from starlette.testclient import TestClient

from service.api import create_app
from service.cli.intake import take_in
from service.domain.imports.identity import Naming
from service.domain.policy import DEFAULT_POLICIES
from service.store.engine import reading
from service.store.figures import statistics
from service.store.figures.statistics import Dimension
from service.store.models import LedgerItem, LedgerState
from service.store.release import clusters, pools, snapshots
from service.store.release.files import FileStore
from service.store.work import backlog
from tests.imported import as_atif, as_messages, by_agent, envelopes, lines
from workers.context import Context
from workers.stages import assign, cluster, filter, snapshot

UNNAMED = Naming()
RULES = DEFAULT_POLICIES.rules.digest


def write(folder: Path, name: str, rows: list[dict]) -> Path:
    path = folder / name
    path.write_bytes(lines(rows))
    return path


def judge(context: Context) -> None:
    with reading(context.engine) as session:
        ids = backlog.trajectories_unjudged(session, RULES, 10_000)
    filter.run(ids, context, "test")


def take(context: Context, path: Path, naming: Naming = UNNAMED) -> None:
    account = take_in(context.engine, path, None, naming, Event())
    assert account.is_clean, account


def test_rows_of_every_format_end_in_a_snapshot(context: Context, archive: Path, tmp_path: Path) -> None:
    spellings = (dict, as_atif, as_messages)
    for place, (agent, runs) in enumerate(by_agent(archive).items()):
        rows = [spellings[place % 3](run) for run in runs]
        take(context, write(tmp_path, f"{agent}.jsonl", rows), Naming(agent))
    judge(context)
    for stage in (cluster, assign, snapshot):
        stage.run((), context, "test")

    by = [Dimension.KIND, Dimension.VERDICT]
    with reading(context.engine) as session:
        counted = Counter({count.values: count.trajectories for count in statistics.counts(session, RULES, by)})
        released = snapshots.listing(session)
        assert clusters.latest(session) is not None
        assert pools.latest(session) is not None
        states = set(session.scalars(select(LedgerItem.state)))
    for kind in ("legacy_shoppingbench", "atif", "messages"):
        assert counted[kind, "kept"] > 0, counted
        assert counted[kind, None] == 0
    assert states == {LedgerState.FETCHED}
    assert len(released) == 1
    assert released[0].train_rows > 0
    assert released[0].eval_rows > 0
    parts = {(part["config"], part["split"]): part["rows"] for part in released[0].manifest["parts"]}
    assert parts["unattributed", "train"] > 0
    files = FileStore(context.settings.snapshot_dir)
    assert files.manifest(released[0].snapshot_id).snapshot_id == released[0].snapshot_id


def test_no_call_of_a_format_without_evidence_is_attributed(context: Context, archive: Path, tmp_path: Path) -> None:
    runs = envelopes(archive)[:20]
    take(context, write(tmp_path, "a.jsonl", [as_atif(run) for run in runs]))
    take(context, write(tmp_path, "m.jsonl", [as_messages(run) for run in runs]))
    judge(context)
    with reading(context.engine) as session:
        rows = session.execute(text("SELECT structural_class, calls, reason FROM verdicts")).all()
    assert len(rows) == 40
    assert {row.structural_class for row in rows} == {"unknown"}
    issuers = {call["issuer"] for row in rows for call in row.calls if call["rule"] != "after_terminate"}
    assert issuers == {"unknown"}


def test_what_a_file_does_not_say_is_not_known(context: Context, archive: Path, tmp_path: Path) -> None:
    runs = [{**row, "success": None} for row in envelopes(archive)]
    take(context, write(tmp_path, "output.jsonl", runs))
    judge(context)
    with reading(context.engine) as session:
        verdicts = {count.values[0] for count in statistics.counts(session, RULES, [Dimension.VERDICT])}
        success = session.scalars(text("SELECT DISTINCT evidence.body #>> '{judgement,success}' FROM evidence")).all()
    assert verdicts == {"rejected"}
    assert success == [None]


def test_the_viewer_shows_an_imported_row(context: Context, archive: Path, tmp_path: Path) -> None:
    runs = envelopes(archive)[:40]
    take(context, write(tmp_path, "a.jsonl", [as_atif(run, agent="<b>teacher</b>") for run in runs]))
    judge(context)
    for stage in (cluster, assign):
        stage.run((), context, "test")
    client = TestClient(create_app(context.engine, context.settings), raise_server_exceptions=False)
    page = client.get("/v1/trajectories", params={"kind": "atif", "limit": 200}).json()["trajectories"]
    assert len(page) == len({json.dumps(as_atif(run)) for run in runs})  # some agents did exactly the same
    assert {row["race_id"] for row in page} == {None}
    assert {row["agent"] for row in page} == {"<b>teacher</b>@1"}
    details = [client.get(f"/v1/trajectories/{row['trajectory_id']}").json() for row in page]
    shown = [detail for detail in details if detail["content"] is not None]
    assert shown
    assert all(detail["content"]["steps"] for detail in shown)


def test_a_file_alone_confirms_nothing_and_moves_no_figure(context: Context, archive: Path, tmp_path: Path) -> None:
    run = next(row for row in envelopes(archive) if row["success"])
    for name in ("agent-1", "agent-2", "agent-3"):  # as many families as it likes
        row = as_atif({**run, "execution_time": name}, agent=name)
        take(context, write(tmp_path, f"{name}.jsonl", [row]))
    judge(context)
    cluster.run((), context, "test")
    with reading(context.engine) as session:
        clustering = clusters.latest(session)
        assert clustering is not None
        (member,) = clusters.members(session, clustering.clustering_id).values()
        assert not snapshots.solve_rates(session, RULES, clustering.revision)
    assert member.query == run["dialogue"][0]["extra_info"]["query"]
    assert not member.query_confirmed
    assert member.winner_ids == []
