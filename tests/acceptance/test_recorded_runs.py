"""The recorded runs, end to end: every object stored once, every absence named, no answer on both sides.

The figures are those of the recording itself: 15 agents with 1,228 envelopes, of which 93 failed or timed out, seven of
`crash_mixed` hold a bare NaN, and 17 of its problems have no envelope.
"""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from service.domain.policy import DEFAULT_POLICIES
from service.store.engine import reading
from service.store.figures import statistics
from service.store.figures.statistics import Dimension
from service.store.harvest import ledger
from service.store.release import clusters, pools, snapshots
from service.store.release.files import FileStore
from tests.workers.harness import Pipeline

pytestmark = pytest.mark.shared
RULES = DEFAULT_POLICIES.rules.digest


def counted(recorded: Pipeline, *by: Dimension) -> dict[tuple[str | None, ...], int]:
    with reading(recorded.engine) as session:
        return {count.values: count.trajectories for count in statistics.counts(session, RULES, by)}


def gold_ids(runs: Path) -> dict[str, set[str]]:
    """Gold product ids by problem, those of hidden problems included: what Sluice itself was not told."""
    gold: dict[str, set[str]] = {}
    for path in runs.glob("*/problems.jsonl.gz"):
        for line in gzip.decompress(path.read_bytes()).splitlines():
            problem = json.loads(line)
            reward = problem["reward"]
            products = reward if isinstance(reward, list) else [reward]
            gold[problem["problem_id"]] = {product["product_id"] for product in products}
    return gold


def test_every_object_is_stored_once_and_every_absence_has_its_reason(recorded: Pipeline) -> None:
    with reading(recorded.engine) as session:
        states = {(count.state.value, count.reason): count.items for count in ledger.counts(session)}
    assert states == {("fetched", None): 1228, ("gone", "no_object"): 17}
    assert sum(counted(recorded, Dimension.AGENT).values()) == 1228
    by_reason = counted(recorded, Dimension.REASON)
    assert by_reason["empty",] == 93
    assert by_reason["bare_nan",] == 7
    assert sum(by_reason.values()) == 1228
    assert counted(recorded, Dimension.CLASS)["none",] == 93


def test_no_agent_that_only_pretends_is_kept(recorded: Pipeline) -> None:
    kept = {agent for agent, outcome in counted(recorded, Dimension.AGENT, Dimension.VERDICT) if outcome == "kept"}
    honest = {"ref_good", "ref_mid", "ref_flaky", "ref_hallucinate", "ref_malformed", "native_tools"}
    assert kept == honest


def test_train_and_eval_share_no_gold_id_though_most_were_hidden(recorded: Pipeline, shared_data: Path) -> None:
    gold = gold_ids(shared_data / "runs")
    with reading(recorded.engine) as session:
        (snapshot,) = snapshots.listing(session)
        by_split: dict[str, set[str]] = {"train": set(), "eval": set()}
        for row in snapshots.members(session, snapshot.snapshot_id):
            by_split[row.split] |= gold[row.problem_id]
    assert by_split["train"]
    assert by_split["eval"]
    assert not by_split["train"] & by_split["eval"]


def test_every_row_is_in_the_pool_of_its_whole_cluster(recorded: Pipeline) -> None:
    with reading(recorded.engine) as session:
        (snapshot,) = snapshots.listing(session)
        clustering, assignment = clusters.latest(session), pools.latest(session)
        assert clustering is not None
        assert assignment is not None
        cluster_of = clusters.members(session, clustering.clustering_id)
        pool_of = pools.members(session, assignment.assignment_id)
        rows = snapshots.members(session, snapshot.snapshot_id)
    splits: dict[str, set[str]] = {}
    for row in rows:
        assert pool_of[row.problem_id].pool == row.split
        splits.setdefault(cluster_of[row.problem_id].cluster_id, set()).add(row.split)
    assert max(map(len, splits.values())) == 1


def test_the_manifest_accounts_for_every_trajectory(recorded: Pipeline) -> None:
    store = FileStore(recorded.data_dir / "snapshots")
    (snapshot_id,) = store.ids()
    manifest = store.manifest(snapshot_id)
    funnel = manifest.funnel
    assert funnel["trajectories"] == sum(funnel["verdicts"].values()) == 1228
    assert sum(funnel["pools"].values()) == funnel["verdicts"]["kept"]
    served = funnel["pools"]["train"] + funnel["pools"]["eval"]
    assert served == funnel["rows"] + sum(funnel["selection"].values())
    assert sum(manifest.rows.values()) == funnel["rows"]
    # Rows of train and eval, the failures and the rejected of train; labels of the followed and of the failures.
    files = Counter(file.format for file in manifest.files)
    assert files == {"parquet": 4, "jsonl.zst": 4, "kto": 2, "atif": 2, "prompts": 2, "gold": 1}
    assert manifest.kto is not None
    assert manifest.kto.desirable > manifest.kto.undesirable > 0


def test_harvesting_again_adds_nothing(recorded: Pipeline) -> None:
    before = recorded.outcome()
    recorded.run(seconds=120)
    assert recorded.outcome() == before
