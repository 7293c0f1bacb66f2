"""Benchmarks over a whole corpus: what touches one leaves train, older snapshots say so, and all of it is reported.

One corpus lives through three registrations: one that touches a few problems in each way, the same again, and one that
touches everything.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import func, select

from service.config import Settings
from service.domain.leaks.benchmarks import Benchmark, BenchmarkItem, BenchmarkPolicy
from service.domain.leaks.leakage import LEAK_1
from service.domain.leaks.pools import Pool, PoolReason
from service.domain.leaks.queries import near_equal
from service.domain.policy import DEFAULT_POLICIES
from service.domain.rows.records import split_key
from service.domain.rows.splits import Config
from service.embedded import Services
from service.store.engine import reading, transaction
from service.store.figures import contamination
from service.store.models import Clustering, ClusterMember, Problem, SnapshotRow
from service.store.release import benchmarks, clusters, pools, snapshots
from service.store.release.clusters import MemberRow
from service.store.work import backlog
from tests.workers import late
from workers.context import Context, open_context

NAME = "public"


@dataclass(slots=True)
class Story:
    """What was seen before and after."""

    context: Context
    members: dict[str, MemberRow] = field(default_factory=dict)
    """Before any benchmark."""
    train: dict[str, str] = field(default_factory=dict)
    """Problem of each train row of the first snapshot, by trajectory key."""
    items: tuple[BenchmarkItem, ...] = ()
    touched: frozenset[str] = frozenset()
    """Problems that touch an item, themselves or through their cluster, by brute force."""
    snapshots: list[str] = field(default_factory=list)
    clusterings: list[int] = field(default_factory=list)

    def release(self) -> None:
        late.release(self.context)
        with reading(self.context.engine) as session:
            self.clusterings.append(session.scalar(select(func.count()).select_from(Clustering)) or 0)
            decided = snapshots.latest_release(session)
        assert decided is not None
        self.snapshots.append(decided.snapshot_id or "")

    def register(self, items: tuple[BenchmarkItem, ...]) -> bool:
        with transaction(self.context.engine) as session:
            return benchmarks.register(session, Benchmark(NAME, BenchmarkPolicy.EXCLUDE, items))

    def refusal(self) -> dict[str, Any]:
        with reading(self.context.engine) as session:
            decided = snapshots.latest_release(session)
            assert decided is not None
            assert decided.refusal is not None
            return decided.refusal

    def report(self) -> contamination.Report:
        with reading(self.context.engine) as session:
            found = contamination.report(session, NAME)
        assert found is not None
        return found


@pytest.fixture(scope="module")
def story(
    new_database: Callable[[], AbstractContextManager[str]],
    services: Services,
    source_url: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("benchmarks")
    with new_database() as url:
        context = open_context(Settings(source_url=source_url, data_dir=folder), url, services.redis_url)
        told = Story(context)
        late.walk(context)
        late.fetch(context)
        told.release()
        look(told)
        told.items = chosen(told)
        told.touched = by_brute_force(told)
        assert told.register(told.items)
        told.release()
        assert not told.register(told.items)
        told.release()
        yield told
        context.engine.dispose()


def look(story: Story) -> None:
    with reading(story.context.engine) as session:
        newest = clusters.latest(session)
        assert newest is not None
        story.members = clusters.members(session, newest.clustering_id)
        rows = session.scalars(
            select(SnapshotRow.problem_id).where(
                SnapshotRow.snapshot_id == story.snapshots[0], SnapshotRow.split == "train"
            )
        ).all()
    keys = late.keys(story.context, story.snapshots[0])
    story.train = {key: split_key(key)[1] for key in keys if split_key(key)[1] in set(rows)}


def chosen(story: Story) -> tuple[BenchmarkItem, ...]:
    """A question with the gold of one train problem, one with the text of another, one near a third, one of nobody."""
    trained = sorted(set(story.train.values()))
    with_gold = [name for name in trained if story.members[name].gold_ids]
    with_text = [name for name in trained if len((story.members[name].query or "").split()) > 8]
    gold, equal = with_gold[0], with_text[-1]
    near = next(name for name in with_text[:-1] if name != gold)
    return (
        BenchmarkItem(1, "words that no problem has", (story.members[gold].gold_ids[0],)),
        BenchmarkItem(2, (story.members[equal].query or "").upper(), ()),
        BenchmarkItem(3, f"please, {story.members[near].query}", ()),
        BenchmarkItem(4, "a seven-legged marble spider for cellars", ("no-such-product",)),
    )


def by_brute_force(story: Story) -> frozenset[str]:
    direct = {
        problem_id
        for problem_id, member in story.members.items()
        for item in story.items
        if set(item.gold_ids) & {*member.gold_ids, *member.winner_ids}
        or (member.query_confirmed and near_equal(item.query or "", member.query or "", LEAK_1.queries))
    }
    touched = {story.members[one].cluster_id for one in direct}
    return frozenset(one for one, member in story.members.items() if member.cluster_id in touched)


def test_the_choice_touches_some_of_train_and_not_all(story: Story) -> None:
    trained = set(story.train.values())
    assert 3 <= len(trained & story.touched) < len(trained)


def test_what_touches_it_is_in_no_train_and_all_else_stays(story: Story) -> None:
    left = {key for key, problem_id in story.train.items() if problem_id not in story.touched}
    after = late.keys(story.context, story.snapshots[1])
    with reading(story.context.engine) as session:
        eval_rows = set(
            session.scalars(
                select(SnapshotRow.problem_id).where(
                    SnapshotRow.snapshot_id == story.snapshots[1], SnapshotRow.split == "eval"
                )
            )
        )
    trained = {key for key in after if split_key(key)[1] not in eval_rows}
    # Balance may drop rows of a category that has become too large a share; it adds none.
    assert trained <= left
    assert len(left) - len(trained) <= dropped(story, 1, "balance")


def dropped(story: Story, place: int, reason: str) -> int:
    return story.context.files.manifest(story.snapshots[place]).funnel["selection"].get(reason, 0)


def test_the_pools_say_why(story: Story) -> None:
    with reading(story.context.engine) as session:
        newest = pools.latest(session)
        assert newest is not None
        found = pools.members(session, newest.assignment_id)
    excluded = {name for name, row in found.items() if row.reason == PoolReason.BENCHMARK}
    assert {found[name].pool for name in excluded} == {Pool.QUARANTINED}
    trained = set(story.train.values())
    assert excluded & trained == story.touched & trained


def test_the_older_snapshot_is_marked_and_the_newer_is_not(story: Story) -> None:
    told = late.status(story.context, story.snapshots[0])
    assert told["state"] == "marked"
    (contact,) = told["contaminated_by"]
    assert (contact["benchmark"], contact["policy"]) == (NAME, "exclude")
    # Of all that was published of train, failures and rejected rows included.
    expected = sorted(key for key in published(story) if split_key(key)[1] in story.touched)
    assert contact["splits"]["train"]["trajectory_keys"] == expected
    assert contact["splits"]["train"]["rows"] == len(expected)
    assert 1 <= contact["splits"]["train"]["direct"] <= len(expected)
    newer = late.status(story.context, story.snapshots[1])
    assert (newer["state"], newer["contaminated_by"]) == ("published", [])


def published(story: Story) -> set[str]:
    """Every row of train of the first snapshot, in whatever configuration."""
    with reading(story.context.engine) as session:
        split_of = {row.problem_id: row.split for row in snapshots.members(session, story.snapshots[0])}
    every = late.keys(story.context, story.snapshots[0], configs=tuple(Config))
    return {key for key in every if split_of[split_key(key)[1]] == "train"}


def test_the_audit_has_looked_for_itself(story: Story) -> None:
    audit = story.context.files.document(story.snapshots[1], "audit.json")
    assert next(check for check in audit["checks"] if check["name"] == "benchmark_contacts")["ok"]
    assert audit["figures"]["benchmarks"][NAME]["items"] == 4


def test_registered_again_nothing_is_done(story: Story) -> None:
    assert story.snapshots[2] == story.snapshots[1]
    assert story.clusterings[2] == story.clusterings[1]
    policies = DEFAULT_POLICIES
    with reading(story.context.engine) as session:
        assert not backlog.clustering_due(session, policies.leaks.digest, policies.rules.digest)


def test_the_report_counts_by_kind_race_and_snapshot(story: Story) -> None:
    found = story.report()
    assert found.benchmark.is_clustered
    assert found.items_touched == 3
    assert {"gold_id", "equal_query", "near_query"} <= set(found.kinds)
    of_first = {row.split: row.rows for row in found.snapshots if row.snapshot_id == story.snapshots[0]}
    assert of_first["train"] == sum(split_key(key)[1] in story.touched for key in published(story))
    assert not any(row.split == "train" for row in found.snapshots if row.snapshot_id == story.snapshots[1])
    assert sum(race.trajectories for race in found.races) > 0
    assert all(race.direct <= race.problems for race in found.races)


def test_a_benchmark_of_everything_leaves_no_train_and_is_named(story: Story) -> None:
    with reading(story.context.engine) as session:
        every = session.scalars(select(ClusterMember.query).where(ClusterMember.query.is_not(None)).distinct()).all()
        products = session.scalars(select(Problem.reward).where(Problem.reward.is_not(None))).all()
    gold = tuple(
        sorted({str(each["product_id"]) for reward in products for each in reward or () if "product_id" in each})
    )
    story.register(tuple(BenchmarkItem(n, text, gold if n == 1 else ()) for n, text in enumerate(every, start=1)))
    story.release()
    refusal = story.refusal()
    assert refusal["code"] == "EMPTY_SPLIT"
    assert "no rows in train" in refusal["message"]
    assert f"kept out of train by the benchmarks {NAME}" in refusal["message"]
