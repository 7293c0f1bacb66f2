"""Leak graph: which problems give each other's answer away, and the clusters that follow.

Not the pools (`pools`) and not the audit, which checks the outcome without this code.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

from service.domain.canonical import digest
from service.domain.leaks.families import FAMILIES_1, FamilyRule
from service.domain.leaks.near_pairs import near_pairs
from service.domain.leaks.queries import QueryRule, normalise
from service.errors import ErrorCode, SluiceError


class EdgeKind(StrEnum):
    """Why two problems are tied. All kinds join clusters but `SUSPECT`, which only keeps two out of opposite pools."""

    GOLD_ID = "gold_id"
    WINNER_ID = "winner_id"
    EQUAL_QUERY = "equal_query"
    NEAR_QUERY = "near_query"
    TASK = "task"
    SUSPECT = "suspect"


@dataclass(frozen=True, slots=True)
class ProblemFacts:
    """All that the leak graph needs to know of one problem."""

    problem_id: str
    kind: str
    """Execution kind, as the ledger spells it."""
    category: str
    query: str | None
    query_confirmed: bool
    """False: the text comes from agents of one family alone, and makes suspect edges only."""
    gold_ids: frozenset[str] = frozenset()
    winner_ids: frozenset[str] = frozenset()
    """Confirmed by enough winning families, as the plan says."""
    suspect_winner_ids: frozenset[str] = frozenset()
    task: str | None = None
    """Task identity across packs and worlds (envpack); None = has none."""


class Edge(NamedTuple):
    """Two problems (a < b), or a problem and an item of a benchmark, and why they are tied."""

    a: str
    b: str
    kind: EdgeKind
    shared: str
    """What they share: `product:<id>`, `task:<name>`, `text:<digest>` or `near:<digest>~<digest>:<similarity>`.

    Never query text. Suspect edges that share the same stand for all pairs among the problems they name.
    """


@dataclass(frozen=True, slots=True)
class LeakPlan:
    """The numbers the leak graph is drawn by, with a name and a digest."""

    name: str = "leak-1"
    version: int = 1
    witness_families: int = 2
    """Independent agent families that must say the same of a problem before it counts."""
    winner_share: float = 0.5
    """A winner's id must be given by more than this share of the winning families."""
    queries: QueryRule = field(default_factory=QueryRule)
    families: FamilyRule = FAMILIES_1
    """Which agents are one family, whose word counts once."""

    @property
    def digest(self) -> str:
        """sha256 of every number that can change a fact or an edge."""
        return digest(self)


LEAK_1 = LeakPlan()


def edges(problems: Sequence[ProblemFacts], plan: LeakPlan, items: Sequence[ProblemFacts] = ()) -> list[Edge]:
    """Draw all edges between the problems, sorted; independent of the order of `problems` and of `items`.

    Edges of one cause are a star around its smallest problem id, not all pairs: enough for `clusters`, and for
    `pools`, which reads suspect edges by what they share. Adding problems never takes two apart that were joined.

    Args:
        problems: what may become rows.
        plan: the numbers.
        items: what public benchmarks hold, as facts. They join problems like a problem would, and take away no edge
            between problems.

    Raises:
        SluiceError: BAD_INPUT for an item with the id of a problem.
    """
    named = frozenset(item.problem_id for item in items)
    taken = sorted(named.intersection(facts.problem_id for facts in problems))
    if taken:
        raise SluiceError(ErrorCode.BAD_INPUT, f"an item of a benchmark has the id of a problem: {taken[0]}")
    nodes = [*problems, *items]
    drawn = chain(_product_edges(problems, items), _task_edges(problems), _query_edges(nodes, named, plan.queries))
    return sorted(set(drawn))


def clusters(edges: Iterable[Edge], problem_ids: Iterable[str], item_ids: Iterable[str] = ()) -> dict[str, str]:
    """Problem or item id -> cluster id, the smallest problem id of its component. Suspect edges join nothing.

    A component without a problem is called by its smallest item. Independent of the order and repetition of all
    arguments.

    Raises:
        KeyError: an edge names what is not among the ids.
    """
    items = frozenset(item_ids)
    parent = {node: node for node in chain(problem_ids, items)}

    def root(node: str) -> str:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for edge in edges:
        if edge.kind is not EdgeKind.SUSPECT:
            ends = {root(edge.a), root(edge.b)}
            hub = _hub(ends, items)
            for end in ends:
                parent[end] = hub
    return {node: root(node) for node in sorted(parent)}


def _hub(ids: Iterable[str], items: frozenset[str]) -> str:
    """The smallest problem id, or the smallest item where there is no problem."""
    return min(ids, key=lambda node: (node in items, node))


def _star(hub: str, others: Iterable[str], kind: EdgeKind, shared: str) -> Iterator[Edge]:
    for other in others:
        if other != hub:
            yield Edge(min(hub, other), max(hub, other), kind, shared)


def _product_edges(problems: Sequence[ProblemFacts], items: Sequence[ProblemFacts]) -> Iterator[Edge]:
    """Nodes tied by a product id: as gold of both, as gold or confirmed winner, or as a mere suspicion."""
    often = _shared_products([*problems, *items])
    gold, winner, suspect, public = (defaultdict[str, set[str]](set) for _ in range(4))
    for facts in problems:
        for holders, ids in ((gold, facts.gold_ids), (winner, facts.winner_ids), (suspect, facts.suspect_winner_ids)):
            for product_id in ids & often:
                holders[product_id].add(facts.problem_id)
    for item in items:
        for product_id in item.gold_ids & often:
            public[product_id].add(item.problem_id)
    for product_id in gold.keys() | winner.keys() | suspect.keys() | public.keys():
        shared = f"product:{product_id}"
        answers = gold.get(product_id, set())
        known = answers | winner.get(product_id, set())
        suspected = suspect.get(product_id, set()) - known
        exposed = public.get(product_id, set())
        hub = min(answers or known or suspected or exposed)
        yield from _star(hub, answers, EdgeKind.GOLD_ID, shared)
        yield from _star(hub, known - answers, EdgeKind.WINNER_ID, shared)
        yield from _star(hub, suspected, EdgeKind.SUSPECT, shared)
        if known or not suspected:
            yield from _star(hub, exposed, EdgeKind.WINNER_ID if known and not answers else EdgeKind.GOLD_ID, shared)
        elif exposed:
            yield from _star(min(exposed), exposed, EdgeKind.GOLD_ID, shared)
            yield from _star(hub, exposed, EdgeKind.SUSPECT, shared)


def _shared_products(nodes: Iterable[ProblemFacts]) -> set[str]:
    """Products that more than one node names: most are named by one alone, and need no more looking at."""
    seen: set[str] = set()
    often: set[str] = set()
    for facts in nodes:
        ids = facts.gold_ids | facts.winner_ids | facts.suspect_winner_ids
        often |= ids & seen
        seen |= ids
    return often


def _task_edges(problems: Sequence[ProblemFacts]) -> Iterator[Edge]:
    holders = defaultdict[str, set[str]](set)
    for facts in problems:
        if facts.task is not None:
            holders[facts.task].add(facts.problem_id)
    for task, ids in holders.items():
        yield from _star(min(ids), ids, EdgeKind.TASK, f"task:{task}")


@dataclass(frozen=True, slots=True)
class _Text:
    """One normalised query text and the nodes that have it, by whether theirs is confirmed."""

    words: str
    confirmed: list[str]
    """Problems before items: the first one stands for all, which form one cluster."""
    unconfirmed: list[str]

    @property
    def name(self) -> str:
        """What edges call it."""
        return text_name(self.words)

    @property
    def speakers(self) -> set[str]:
        """Nodes that stand for all: one of the confirmed and every unconfirmed."""
        return {*self.confirmed[:1], *self.unconfirmed}


def text_name(words: str) -> str:
    """What edges call a normalised query text."""
    return digest(words)[:16]


def _query_edges(nodes: Sequence[ProblemFacts], items: frozenset[str], rule: QueryRule) -> Iterator[Edge]:
    """Nodes tied by equal or near-equal text. A text that one family alone reports only raises a suspicion."""
    texts = _Texts(nodes, items, rule)
    for text in map(texts.text, texts.several()):
        if len(text.confirmed) > 1:
            yield from _star(text.confirmed[0], text.confirmed, EdgeKind.EQUAL_QUERY, f"text:{text.name}")
        if text.unconfirmed and len(text.speakers) > 1:
            yield from _star(_hub(text.speakers, items), text.speakers, EdgeKind.SUSPECT, f"text:{text.name}")
    words = texts.words()
    for pair in near_pairs(words, rule):
        a, b = texts.text(words[pair.a]), texts.text(words[pair.b])
        shared = f"near:{a.name}~{b.name}:{pair.similarity.ratio:.3f}"
        if a.confirmed and b.confirmed:
            yield from _star(a.confirmed[0], b.confirmed[:1], EdgeKind.NEAR_QUERY, shared)
        if a.unconfirmed or b.unconfirmed:
            speakers = a.speakers | b.speakers
            yield from _star(_hub(speakers, items), speakers, EdgeKind.SUSPECT, shared)


class _Texts:
    """The distinct normalised texts and who has them: problems before items, each kind sorted.

    Nearly every text is one confirmed problem's alone, and costs no more than that.
    """

    def __init__(self, nodes: Sequence[ProblemFacts], items: frozenset[str], rule: QueryRule) -> None:
        self._first: dict[str, str] = {}
        """The first node whose text is confirmed."""
        self._more: dict[str, list[str]] = {}
        """The others."""
        self._unconfirmed: dict[str, list[str]] = {}
        for facts in sorted(nodes, key=lambda facts: (facts.problem_id in items, facts.problem_id)):
            words = normalise(facts.query, rule) if facts.query else ""
            if not words:
                continue
            if not facts.query_confirmed:
                self._unconfirmed.setdefault(words, []).append(facts.problem_id)
            elif self._first.setdefault(words, facts.problem_id) != facts.problem_id:
                self._more.setdefault(words, []).append(facts.problem_id)

    def words(self) -> list[str]:
        """All texts, sorted."""
        return sorted(self._first.keys() | self._unconfirmed.keys())

    def several(self) -> list[str]:
        """Texts that more than one node may have, sorted."""
        return sorted(self._more.keys() | self._unconfirmed.keys())

    def text(self, words: str) -> _Text:
        """One of them."""
        first = self._first.get(words)
        confirmed = [] if first is None else [first, *self._more.get(words, ())]
        return _Text(words, confirmed, self._unconfirmed.get(words, []))
