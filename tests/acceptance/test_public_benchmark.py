"""The public ShoppingBench against the recorded runs: what a registered part of it leaves of train, by brute force.

Every recorded problem is in ShoppingBench word for word. One corpus lives through three snapshots: without a benchmark,
with a seeded half of it and three planted questions, and with all of it.
"""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import pytest
from sqlalchemy import select

from service.config import Settings
from service.domain.leaks.benchmark_files import joined_items, read_items
from service.domain.leaks.benchmarks import Benchmark, BenchmarkItem, BenchmarkPolicy
from service.domain.leaks.leakage import LEAK_1
from service.domain.leaks.queries import informative, normalise, similarity
from service.domain.policy import DEFAULT_POLICIES
from service.domain.rows.records import split_key
from service.domain.rows.spec import Choice, Options
from service.embedded import Services
from service.replay.server import replaying
from service.store.engine import reading, transaction
from service.store.models import BenchmarkContact
from service.store.release import benchmarks, clusters, snapshots
from service.store.release.clusters import MemberRow
from tests.workers import late
from workers.context import Context, open_context

pytestmark = pytest.mark.shared
FILES = ("product", "shop", "voucher", "web_simpleqa")
SEED = 15
PLANTED = 9_000
"""Lines above this one are ours."""
UNBALANCED = replace(DEFAULT_POLICIES, standing=Options(selection=Choice(largest_share=1.0)))
"""Without the share that a category may have of train, which would drop rows of its own accord."""


class Node(NamedTuple):
    """A problem or an item, as far as ties go."""

    name: str
    is_item: bool
    words: str
    """Normalised text; empty where none may join."""
    ids: frozenset[str]


@dataclass(slots=True)
class Story:
    """What was seen under each registration."""

    context: Context
    members: dict[str, MemberRow] = field(default_factory=dict)
    answered: dict[str, set[str]] = field(default_factory=dict)
    """Products that any successful answer to a problem gave."""
    trained: list[set[str]] = field(default_factory=list)
    """Trajectory keys of train, snapshot by snapshot."""
    planted: dict[str, str] = field(default_factory=dict)
    """Problem that each planted question touches, by the kind of its contact."""
    found: set[tuple[str, str]] = field(default_factory=set)
    """Kind and problem of every contact with a planted question."""
    items: tuple[BenchmarkItem, ...] = ()
    refusal: str = ""

    def release(self) -> None:
        late.release(self.context)
        with reading(self.context.engine) as session:
            decided = snapshots.latest_release(session)
            assert decided is not None
            if decided.snapshot_id is None:
                self.refusal = (decided.refusal or {})["message"]
                return
            split_of = {row.problem_id: row.split for row in snapshots.members(session, decided.snapshot_id)}
        keys = late.keys(self.context, decided.snapshot_id)
        self.trained.append({key for key in keys if split_of[split_key(key)[1]] == "train"})

    def register(self, items: tuple[BenchmarkItem, ...]) -> None:
        with transaction(self.context.engine) as session:
            assert benchmarks.register(session, Benchmark("shoppingbench", BenchmarkPolicy.EXCLUDE, items))


def shoppingbench(shared_data: Path) -> tuple[BenchmarkItem, ...]:
    files = [(shared_data / "shoppingbench" / f"{name}.jsonl").read_bytes().splitlines() for name in FILES]
    return joined_items([read_items(enumerate(lines, start=1)) for lines in files])


@pytest.fixture(scope="module")
def story(
    new_database: Callable[[], AbstractContextManager[str]],
    services: Services,
    shared_data: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("shoppingbench")
    with new_database() as url, replaying(shared_data / "runs") as server:
        opened = open_context(Settings(source_url=server.url, data_dir=folder), url, services.redis_url)
        context = replace(opened, policies=UNBALANCED)
        told = Story(context)
        late.walk(context)
        late.fetch(context)
        told.release()
        with reading(context.engine) as session:
            newest = clusters.latest(session)
            assert newest is not None
            told.members = clusters.members(session, newest.clustering_id)
            for report in clusters.reports(session, UNBALANCED.rules.digest, newest.revision):
                if report.success:
                    told.answered.setdefault(report.problem_id, set()).update(report.answer)
        whole = shoppingbench(shared_data)
        half = random.Random(SEED).sample(whole, len(whole) // 2)
        told.items = (*sorted(half), *planted(told, half))
        told.register(told.items)
        told.release()
        told.found = contacts_of_planted(context)
        told.register(whole)
        told.release()
        yield told
        context.engine.dispose()


def contacts_of_planted(context: Context) -> set[tuple[str, str]]:
    with reading(context.engine) as session:
        newest = clusters.latest(session)
        assert newest is not None
        rows = session.execute(
            select(BenchmarkContact.kind, BenchmarkContact.problem_id).where(
                BenchmarkContact.clustering_id == newest.clustering_id, BenchmarkContact.line > PLANTED
            )
        )
        return {(kind, problem_id) for kind, problem_id in rows}


def planted(story: Story, half: list[BenchmarkItem]) -> list[BenchmarkItem]:
    """One question with the gold alone of a train problem that the half leaves alone, and two with texts of others."""
    asked, gold = {item.query for item in half}, {one for item in half for one in item.gold_ids}
    free = sorted(
        problem_id
        for problem_id in {split_key(key)[1] for key in story.trained[0]}
        if story.members[problem_id].query not in asked and gold.isdisjoint(answers(story.members[problem_id]))
    )
    by_gold = next(one for one in free if story.members[one].gold_ids)
    texts = [one for one in free if one != by_gold and len((story.members[one].query or "").split()) > 8]
    equal, near = texts[0], texts[-1]
    story.planted = {"gold_id": by_gold, "equal_query": equal, "near_query": near}
    queries = {one: story.members[one].query or "" for one in (equal, near)}
    return [
        BenchmarkItem(PLANTED + 1, "something else altogether", (story.members[by_gold].gold_ids[0],)),
        BenchmarkItem(PLANTED + 2, f"  {queries[equal].upper()}  ", ()),
        BenchmarkItem(PLANTED + 3, f"{queries[near]} Ships within a week, please!", ()),
    ]


def answers(member: MemberRow) -> frozenset[str]:
    return frozenset(member.gold_ids) | frozenset(member.winner_ids)


def touched(story: Story) -> set[str]:
    """Problems in a component with an item, from all pairs of nodes."""
    nodes = [
        *(
            Node(name, False, words(member.query if member.query_confirmed else None), answers(member))
            for name, member in story.members.items()
        ),
        *(Node(f"item {item.line}", True, words(item.query), frozenset(item.gold_ids)) for item in story.items),
    ]
    component = {node.name: {node.name} for node in nodes}
    for one, other in combinations(nodes, 2):
        if component[one.name] is not component[other.name] and tied(one, other):
            joined = component[one.name] | component[other.name]
            component.update(dict.fromkeys(joined, joined))
    public = {node.name for node in nodes if node.is_item}
    return {node.name for node in nodes if not node.is_item and component[node.name] & public}


def suspected(story: Story, out: set[str]) -> set[str]:
    """Problems of a cluster in which one was answered, by however few, with an answer to an item or to `out`."""
    gold = {one for item in story.items for one in item.gold_ids}
    gold.update(one for name in out for one in answers(story.members[name]) | story.answered.get(name, set()))
    suspects = {story.members[name].cluster_id for name, given in story.answered.items() if given & gold}
    return {name for name, member in story.members.items() if member.cluster_id in suspects}


def words(query: str | None) -> str:
    return normalise(query, LEAK_1.queries) if query else ""


def tied(one: Node, other: Node) -> bool:
    if one.ids & other.ids:
        return True
    if not (one.words and other.words):
        return False
    rule = LEAK_1.queries
    if one.words == other.words:
        return True
    if min(informative(one.words, rule), informative(other.words, rule)) < rule.informative_tokens:
        return False
    shared, union = similarity(one.words, other.words, rule)
    return shared >= rule.threshold * union


def test_half_of_it_leaves_exactly_what_brute_force_leaves(story: Story) -> None:
    out = touched(story)
    out |= suspected(story, out)
    left = {key for key in story.trained[0] if split_key(key)[1] not in out}
    assert 0 < len(left) < len(story.trained[0])
    assert story.trained[1] == left


def test_what_was_planted_is_found_by_its_kind(story: Story) -> None:
    assert len(set(story.planted.values())) == 3
    assert set(story.planted.items()) <= story.found
    assert not set(story.planted.values()) & {split_key(key)[1] for key in story.trained[1]}


def test_all_of_it_leaves_nothing_and_says_so(story: Story) -> None:
    assert len(story.trained) == 2
    assert "no rows in train" in story.refusal
    assert "kept out of train by the benchmarks shoppingbench" in story.refusal


def test_every_problem_of_the_suites_is_found_in_it_word_for_word(shared_data: Path) -> None:
    public = {item.query for item in shoppingbench(shared_data)}
    suites = [json.loads(path.read_bytes()) for path in sorted((shared_data / "suites").glob("*.json"))]
    asked = [problem["query"].strip() for suite in suites for problem in problems_of(suite)]
    assert len(asked) == 90
    assert [query for query in asked if query not in public] == []


def problems_of(suite: object) -> list[dict]:
    """The problems of a suite file: a list, or under some key of an object."""
    if isinstance(suite, list):
        return suite
    assert isinstance(suite, dict)
    return next(value for value in suite.values() if isinstance(value, list))
