"""Leak graph: which problems give each other's answer away, and the clusters that follow.

Not the pools (`pools`) and not the audit, which checks the outcome without this code.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from service.domain.canonical import digest
from service.domain.queries import QueryRule


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
    """Confirmed by a majority of winning families, two at least."""
    suspect_winner_ids: frozenset[str] = frozenset()
    task: str | None = None
    """Task identity across packs and worlds (envpack); None = has none."""


class Edge(NamedTuple):
    """Two problems (a < b) and why they are tied."""

    a: str
    b: str
    kind: EdgeKind
    evidence: str
    """The shared id or task, or the similarity; never query text."""


@dataclass(frozen=True, slots=True)
class LeakPlan:
    """The numbers the leak graph is drawn by, with a name and a digest."""

    name: str = "leak-1"
    version: int = 1
    queries: QueryRule = field(default_factory=QueryRule)

    @property
    def digest(self) -> str:
        """sha256 of every number that can change an edge."""
        return digest(self)


LEAK_1 = LeakPlan()


def edges(problems: Sequence[ProblemFacts], plan: LeakPlan) -> list[Edge]:
    """All edges between the problems, sorted; independent of the order of `problems`."""
    raise NotImplementedError


def clusters(edges: Iterable[Edge], problem_ids: Iterable[str]) -> dict[str, str]:
    """Problem id -> cluster id (the smallest problem id of its component). Suspect edges join nothing."""
    raise NotImplementedError
