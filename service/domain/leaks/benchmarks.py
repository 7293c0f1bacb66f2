"""Public benchmarks: their items as nodes of the leak graph, and which problems touch them.

Draws no edge (`leakage` does) and settles no pool (`pools` does). An item has a text and perhaps gold ids, all of
it known to everyone: no family has to confirm it.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from service.domain.canonical import digest
from service.domain.leaks.contact_audit import PublicItem
from service.domain.leaks.leakage import Edge, EdgeKind, ProblemFacts, text_name
from service.domain.leaks.queries import QueryRule, normalise
from service.errors import ErrorCode, SluiceError

KIND = "benchmark"
"""What the nodes of items have where problems have their execution kind."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class BenchmarkPolicy(StrEnum):
    """What follows for a problem that touches an item."""

    EXCLUDE = "exclude"
    """It is in no train split."""
    DECLARED_PUBLIC = "declared-public"
    """It may be trained on; contacts are reported."""


class BenchmarkItem(NamedTuple):
    """One question of a benchmark."""

    line: int
    """Its line in the file, from 1."""
    query: str | None
    gold_ids: tuple[str, ...]
    """Sorted."""


class Benchmark(NamedTuple):
    """A registered benchmark."""

    name: str
    policy: BenchmarkPolicy
    items: tuple[BenchmarkItem, ...]

    @property
    def items_digest(self) -> str:
        """Sha256 hex of the items, whatever the benchmark is called."""
        return digest([list(item) for item in self.items])


class Contact(NamedTuple):
    """A problem and an item that give each other's answer away, or may (kind `suspect`)."""

    problem_id: str
    benchmark: str
    line: int
    kind: EdgeKind
    shared: str
    """As in an edge: never query text."""


def benchmarks_digest(benchmarks: Iterable[tuple[str, str, str]]) -> str:
    """Sha256 hex of a set of benchmarks, each given by name, policy and the digest of its items."""
    return digest(sorted(benchmarks))


def contacts_digest(benchmarks: str, contacts: Iterable[Contact], members: Mapping[str, str]) -> str:
    """Sha256 hex of all that ties problems to benchmarks.

    Args:
        benchmarks: their `benchmarks_digest`.
        contacts: every contact.
        members: item id -> cluster id.
    """
    return digest([benchmarks, [list(contact) for contact in contacts], dict(members)])


def checked_name(name: str) -> str:
    """A name that may be registered.

    Raises:
        SluiceError: BAD_INPUT for any other.
    """
    if not _NAME.fullmatch(name):
        fault = f"{name!r} cannot name a benchmark: use up to 64 of a-z, 0-9, '.', '_' and '-'"
        raise SluiceError(ErrorCode.BAD_INPUT, fault)
    return name


def node_id(name: str, line: int) -> str:
    """What an item is called in the leak graph."""
    return f"{KIND}:{name}:{line}"


def nodes(benchmarks: Iterable[Benchmark]) -> list[ProblemFacts]:
    """The items of all benchmarks as nodes of the leak graph."""
    return [
        ProblemFacts(
            problem_id=node_id(benchmark.name, item.line),
            kind=KIND,
            category=KIND,
            query=item.query,
            query_confirmed=True,
            gold_ids=frozenset(item.gold_ids),
        )
        for benchmark in benchmarks
        for item in benchmark.items
    ]


def excluded_clusters(benchmarks: Iterable[Benchmark], cluster_of: Mapping[str, str]) -> frozenset[str]:
    """Clusters that hold an item of a benchmark whose policy is `exclude`."""
    return frozenset(
        cluster_of[node_id(benchmark.name, item.line)]
        for benchmark in benchmarks
        if benchmark.policy is BenchmarkPolicy.EXCLUDE
        for item in benchmark.items
    )


def cluster_of_items(benchmarks: Iterable[Benchmark], tied: Mapping[str, str]) -> dict[str, str]:
    """Item id -> cluster id for all items.

    Args:
        benchmarks: all benchmarks.
        tied: the same for the items that are tied to a problem; every other one is a cluster of its own.
    """
    ids = (node_id(benchmark.name, item.line) for benchmark in benchmarks for item in benchmark.items)
    return {item: tied.get(item, item) for item in ids}


def public_items(benchmarks: Iterable[Benchmark]) -> list[PublicItem]:
    """The items of some benchmarks as the audit sees them."""
    return [
        PublicItem(
            benchmark=benchmark.name,
            is_excluded=benchmark.policy is BenchmarkPolicy.EXCLUDE,
            item=f"{benchmark.name}:{item.line}",
            query=item.query,
            gold_ids=frozenset(item.gold_ids),
        )
        for benchmark in benchmarks
        for item in benchmark.items
    ]


def contacts(
    problems: Iterable[ProblemFacts],
    benchmarks: Sequence[Benchmark],
    edges: Sequence[Edge],
    cluster_of: Mapping[str, str],
    rule: QueryRule,
) -> list[Contact]:
    """Every problem and item that the evidence of an edge is about, sorted.

    An edge is one ray of a star; what it says they share stands for all nodes that share it.

    Args:
        problems: all problems.
        benchmarks: all benchmarks.
        edges: the edges drawn between the problems and `nodes(benchmarks)`.
        cluster_of: what `leakage.clusters` makes of them.
        rule: the rule they were drawn by.
    """
    items = {
        node_id(benchmark.name, item.line): (benchmark.name, item.line)
        for benchmark in benchmarks
        for item in benchmark.items
    }
    near = {cluster_of[item] for item in items}
    suspects = {end for edge in edges if edge.kind is EdgeKind.SUSPECT for end in (edge.a, edge.b)}
    candidates = [one for one in problems if one.problem_id in suspects or cluster_of[one.problem_id] in near]
    problems_with, items_with = _by_evidence(candidates, rule), _by_evidence(nodes(benchmarks), rule)
    return sorted(
        Contact(problem.problem_id, *items[item.problem_id], _kind(problem, shared), shared)
        for shared in sorted({edge.shared for edge in edges})
        for one, other in _sides(shared)
        for problem in problems_with.get(one, ())
        for item in items_with.get(other, ())
    )


def _by_evidence(facts: Iterable[ProblemFacts], rule: QueryRule) -> dict[str, list[ProblemFacts]]:
    """Nodes by each product they have and by their text, spelled as edges spell it."""
    having: dict[str, list[ProblemFacts]] = defaultdict(list)
    for one in facts:
        for product_id in one.gold_ids | one.winner_ids | one.suspect_winner_ids:
            having[f"product:{product_id}"].append(one)
        words = normalise(one.query, rule) if one.query else ""
        if words:
            having[f"text:{text_name(words)}"].append(one)
    return having


def _sides(shared: str) -> list[tuple[str, str]]:
    """Pairs of evidence such that who has the one and who has the other share what is shared."""
    kind, _, rest = shared.partition(":")
    if kind != "near":
        return [(shared, shared)]
    one, other = rest.rpartition(":")[0].split("~")
    return [(f"text:{one}", f"text:{other}"), (f"text:{other}", f"text:{one}")]


def _kind(problem: ProblemFacts, shared: str) -> EdgeKind:
    """How sure the tie is: an item's text and products are public, so all depends on the problem."""
    kind, _, rest = shared.partition(":")
    if kind == "product":
        if rest in problem.gold_ids:
            return EdgeKind.GOLD_ID
        return EdgeKind.WINNER_ID if rest in problem.winner_ids else EdgeKind.SUSPECT
    if not problem.query_confirmed:
        return EdgeKind.SUSPECT
    return EdgeKind.EQUAL_QUERY if kind == "text" else EdgeKind.NEAR_QUERY
