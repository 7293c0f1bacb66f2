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
    """Two problems (a < b) and why they are tied."""

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


def edges(problems: Sequence[ProblemFacts], plan: LeakPlan) -> list[Edge]:
    """Draw all edges between the problems, sorted; independent of the order of `problems`.

    Edges of one cause are a star around its smallest problem id, not all pairs: enough for `clusters`, and for
    `pools`, which reads suspect edges by what they share. Adding problems never takes two apart that were joined.
    """
    drawn = chain(_product_edges(problems), _task_edges(problems), _query_edges(problems, plan.queries))
    return sorted(set(drawn))


def clusters(edges: Iterable[Edge], problem_ids: Iterable[str]) -> dict[str, str]:
    """Problem id -> cluster id, the smallest problem id of its component. Suspect edges join nothing.

    Independent of the order and repetition of both arguments.

    Raises:
        KeyError: an edge names a problem that is not among `problem_ids`.
    """
    parent = {problem_id: problem_id for problem_id in problem_ids}

    def root(problem_id: str) -> str:
        while parent[problem_id] != problem_id:
            parent[problem_id] = parent[parent[problem_id]]
            problem_id = parent[problem_id]
        return problem_id

    for edge in edges:
        if edge.kind is not EdgeKind.SUSPECT:
            low, high = sorted((root(edge.a), root(edge.b)))
            parent[high] = low
    return {problem_id: root(problem_id) for problem_id in sorted(parent)}


def _star(hub: str, others: Iterable[str], kind: EdgeKind, shared: str) -> Iterator[Edge]:
    for other in others:
        if other != hub:
            yield Edge(min(hub, other), max(hub, other), kind, shared)


def _product_edges(problems: Sequence[ProblemFacts]) -> Iterator[Edge]:
    """Problems tied by a product id: as gold of both, as gold or confirmed winner, or as a mere suspicion."""
    gold, winner, suspect = (defaultdict[str, set[str]](set) for _ in range(3))
    for facts in problems:
        for holders, ids in ((gold, facts.gold_ids), (winner, facts.winner_ids), (suspect, facts.suspect_winner_ids)):
            for product_id in ids:
                holders[product_id].add(facts.problem_id)
    for product_id in gold.keys() | winner.keys() | suspect.keys():
        shared = f"product:{product_id}"
        answers = gold.get(product_id, set())
        known = answers | winner.get(product_id, set())
        everyone = known | suspect.get(product_id, set())
        hub = min(answers or known or everyone)
        yield from _star(hub, answers, EdgeKind.GOLD_ID, shared)
        yield from _star(hub, known - answers, EdgeKind.WINNER_ID, shared)
        yield from _star(hub, everyone - known, EdgeKind.SUSPECT, shared)


def _task_edges(problems: Sequence[ProblemFacts]) -> Iterator[Edge]:
    holders = defaultdict[str, set[str]](set)
    for facts in problems:
        if facts.task is not None:
            holders[facts.task].add(facts.problem_id)
    for task, ids in holders.items():
        yield from _star(min(ids), ids, EdgeKind.TASK, f"task:{task}")


@dataclass(frozen=True, slots=True)
class _Text:
    """One normalised query text and the problems that have it, by whether theirs is confirmed."""

    words: str
    confirmed: list[str]
    unconfirmed: list[str]

    @property
    def name(self) -> str:
        """What edges call it."""
        return digest(self.words)[:16]

    @property
    def speakers(self) -> set[str]:
        """Problems that stand for all: one of the confirmed (they form one cluster) and every unconfirmed."""
        return {*self.confirmed[:1], *self.unconfirmed}


def _query_edges(problems: Sequence[ProblemFacts], rule: QueryRule) -> Iterator[Edge]:
    """Problems tied by equal or near-equal text. A text that one family alone reports only raises a suspicion."""
    texts = _texts(problems, rule)
    for text in texts:
        if len(text.confirmed) > 1:
            yield from _star(text.confirmed[0], text.confirmed, EdgeKind.EQUAL_QUERY, f"text:{text.name}")
        if text.unconfirmed and len(text.speakers) > 1:
            yield from _star(min(text.speakers), text.speakers, EdgeKind.SUSPECT, f"text:{text.name}")
    for pair in near_pairs([text.words for text in texts], rule):
        a, b = texts[pair.a], texts[pair.b]
        shared = f"near:{a.name}~{b.name}:{pair.similarity.ratio:.3f}"
        if a.confirmed and b.confirmed:
            yield from _star(a.confirmed[0], b.confirmed[:1], EdgeKind.NEAR_QUERY, shared)
        if a.unconfirmed or b.unconfirmed:
            speakers = a.speakers | b.speakers
            yield from _star(min(speakers), speakers, EdgeKind.SUSPECT, shared)


def _texts(problems: Sequence[ProblemFacts], rule: QueryRule) -> list[_Text]:
    """Distinct normalised texts, sorted, with their problems, sorted."""
    texts: dict[str, _Text] = {}
    for facts in sorted(problems, key=lambda facts: facts.problem_id):
        words = normalise(facts.query, rule) if facts.query else ""
        if words:
            text = texts.setdefault(words, _Text(words, [], []))
            (text.confirmed if facts.query_confirmed else text.unconfirmed).append(facts.problem_id)
    return [texts[words] for words in sorted(texts)]
