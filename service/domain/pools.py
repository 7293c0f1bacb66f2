"""Pools: which problems may be trained on, which are held out. A pure function of content and publication history.

Not the clustering (`leakage`), and never dependent on arrival order, process count or time.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from service.domain.canonical import digest
from service.domain.leakage import Edge


class Pool(StrEnum):
    """Where a problem's rows may go. Only `TRAIN` and `EVAL` are served as splits."""

    TRAIN = "train"
    EVAL = "eval"
    RESERVE = "reserve"
    """Held for future evaluation; content never served."""
    QUARANTINED = "quarantined"
    """In no split."""


class PoolReason(StrEnum):
    """Why a problem is in its pool."""

    DRAW = "draw"
    """Its own draw is also its component's strictest."""
    COMPONENT = "component"
    """A problem it is clustered with drew a stricter pool."""
    HELD_OUT = "held_out"
    """It or a problem it is clustered with was held out in an earlier generation."""
    PUBLISHED = "published"
    """It was published in train and its component is now held out."""
    EXPOSED = "exposed"
    """Its component is held out, but a member was published in train, so a model may know the answer."""
    SUSPECT = "suspect"
    """A suspect edge ties its train component to a held-out one."""


class PoolProblem(NamedTuple):
    """A problem as far as drawing is concerned."""

    problem_id: str
    category: str


class Assignment(NamedTuple):
    """One problem's pool."""

    problem_id: str
    cluster_id: str
    draw: Pool
    """What it drew alone: train, eval or reserve."""
    pool: Pool
    reason: PoolReason


class Shares(NamedTuple):
    """Expected shares of the draws; train takes the rest."""

    eval: float = 0.20
    reserve: float = 0.10


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """The key and the numbers pools are drawn by."""

    name: str = "pools-1"
    version: int = 1
    key: str = "sluice-1"
    shares: Shares = Shares()
    category_shares: Mapping[str, Shares] = field(default_factory=dict)
    """Shares of categories that differ from the default."""
    component_limit: float = 0.05
    quarantine_limit: float = 0.01
    suspect_limit: float = 0.10
    limits_from_problems: int = 200

    @property
    def digest(self) -> str:
        """sha256 of everything that can change a pool."""
        return digest(self)


POOLS_1 = PoolPlan()


def assign(
    problems: Sequence[PoolProblem],
    clusters: Mapping[str, str],
    suspects: Iterable[Edge],
    published_train: frozenset[str],
    plan: PoolPlan,
    published_eval: frozenset[str] = frozenset(),
    quarantined_before: frozenset[str] = frozenset(),
) -> list[Assignment]:
    """Give every problem its pool, sorted by problem id."""
    raise NotImplementedError
