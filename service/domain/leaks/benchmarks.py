"""Public benchmarks: their items as nodes of the leak graph, and which problems touch them.

Draws no edge (`leakage` does) and settles no pool (`pools` does). An item has a text and perhaps gold ids, all of
it known to everyone: no family has to confirm it.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from service.domain.canonical import digest
from service.domain.leaks.leakage import Edge, EdgeKind, ProblemFacts, text_name
from service.domain.leaks.queries import QueryRule, normalise
from service.errors import ErrorCode, SluiceError

KIND = "benchmark"
"""What the nodes of items have where problems have their execution kind."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
MAX_QUERY_CHARACTERS = 100_000
MAX_GOLD_IDS = 1_000
"""Of one item; the longest of ShoppingBench has four."""


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


def read_items(
    lines: Iterable[tuple[int, bytes | None]], query_field: str = "query", gold_field: str = "reward"
) -> tuple[BenchmarkItem, ...]:
    """Read a JSONL file of questions.

    Args:
        lines: number and JSON object of each line that is not blank; None is one too long to be read.
        query_field: key of the question's text.
        gold_field: key of the right products: an id, an object with a `product_id`, or a list of either.

    Raises:
        SluiceError: BAD_INPUT, with the line, for one that cannot be read, or that has neither text nor products.
    """
    items = tuple(_item(number, line, query_field, gold_field) for number, line in lines)
    if not items:
        raise SluiceError(ErrorCode.BAD_INPUT, "there are no items")
    return items


def joined_items(files: Iterable[Sequence[BenchmarkItem]]) -> tuple[BenchmarkItem, ...]:
    """The items of several files as those of one, numbered as if the files lay behind each other."""
    joined: list[BenchmarkItem] = []
    before = 0
    for items in files:
        joined += (item._replace(line=before + item.line) for item in items)
        before += max((item.line for item in items), default=0)
    return tuple(joined)


def _item(number: int, line: bytes | None, query_field: str, gold_field: str) -> BenchmarkItem:
    if line is None:
        raise _fault(number, "longer than any question")
    try:
        told = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise _fault(number, f"no JSON: {error}") from error
    if not isinstance(told, dict):
        raise _fault(number, "not an object")
    query = told.get(query_field)
    if query is not None and not isinstance(query, str):
        raise _fault(number, f"`{query_field}` is no text")
    if query is not None and len(query) > MAX_QUERY_CHARACTERS:
        raise _fault(number, f"`{query_field}` is longer than {MAX_QUERY_CHARACTERS} characters")
    gold_ids = tuple(sorted(set(_gold_ids(number, gold_field, told.get(gold_field)))))
    if len(gold_ids) > MAX_GOLD_IDS:
        raise _fault(number, f"`{gold_field}` names more than {MAX_GOLD_IDS} products")
    text = query.strip().replace("\0", "\N{REPLACEMENT CHARACTER}") if query else ""
    if not text and not gold_ids:
        raise _fault(number, f"neither a text in `{query_field}` nor products in `{gold_field}`")
    return BenchmarkItem(number, text or None, gold_ids)


def _gold_ids(number: int, gold_field: str, gold: Any) -> Iterator[str]:
    match gold:
        case None:
            return
        case list():
            for each in gold:
                yield from _gold_ids(number, gold_field, each)
        case {"product_id": (str() | int()) as product_id, **_rest} if not isinstance(product_id, bool):
            yield from _gold_ids(number, gold_field, product_id)
        case bool() | float() | dict():
            raise _fault(number, f"`{gold_field}` names no product")
        case _:
            product_id = str(gold).strip()
            if not product_id or "\0" in product_id:
                raise _fault(number, f"`{gold_field}` names no product")
            yield product_id


def _fault(number: int, why: str) -> SluiceError:
    return SluiceError(ErrorCode.BAD_INPUT, f"line {number}: {why}", line=number)


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
