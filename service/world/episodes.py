"""Envpack episodes: tasks with a need the shopper tells only when asked, and agents that play them.

The environment's tools are search, filter, message and place_test_order. It scores by the same constraints as a product
problem and grades nothing else; an order that misses the unspoken need has not found it.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from service.domain.sn15.scoring import TITLE_SIMILARITY_MIN, Category, Target, meets
from service.world import phrasing
from service.world.envpack_log import Ending, EpisodeLog, call
from service.world.problems import Problem, title_similarity
from service.world.search import Search

FAMILIES = ("TF8-composed", "TF2-retrieval_recall", "TF3-constraint_satisfaction", "TF5-ranking")
FIRST_TASK = 700_000


@dataclass(frozen=True, slots=True)
class Task:
    """A goal, what it really asks for, and the part that is told only when asked."""

    task_id: str
    family: str
    query: str
    target: Target
    unspoken: str


@dataclass(frozen=True, slots=True)
class Player:
    """An envpack agent, as far as behaviour goes."""

    slug: str
    asks: float
    """Chance to ask the shopper before ordering."""
    skill: float
    """Chance to compare options before ordering."""
    breaks: float = 0.02
    """Chance to end without an order."""


class Episode(NamedTuple):
    """A played episode."""

    log: EpisodeLog
    ending: Ending


def tasks(problems: Sequence[Problem], search: Search, seed: int) -> list[Task]:
    """One task per product problem that has a constraint to hold back."""
    rng = random.Random(f"tasks/{seed}")
    made: list[Task] = []
    for problem in problems:
        if problem.category is not Category.PRODUCT or not problem.targets[0].attributes:
            continue
        (target,) = problem.targets
        product = search.catalogue.by_id[target.product_id]
        *told, held = target.attributes
        spoken = msgspec.structs.replace(target, attributes=tuple(told))
        family = FAMILIES[len(made) % len(FAMILIES)]
        ((key, values),) = held.items()
        made.append(
            Task(
                task_id=f"{family}-{FIRST_TASK + len(made)}",
                family=family.partition("-")[2],
                query=phrasing.product_query(rng, phrasing.describe(rng, product, spoken)),
                target=target,
                unspoken=f"The {key.replace('_', ' ')} has to be {values[0]}.",
            )
        )
    return made


def play(player: Player, task: Task, search: Search, rng: random.Random) -> Episode:
    """Play one task; the ending is what the environment's verdict would be."""
    log = EpisodeLog(task.task_id, task.family, task.query)
    if rng.random() < player.breaks:
        return Episode(log, _broken(log, rng))
    words = task.target.title[0].lower()
    rows = _listing(search, words)
    log.step([call("search", {"query": words}, {"results": rows})])
    bounds = [pair for entry in task.target.price for pair in entry.values()]
    if bounds and bounds[0][1] is not None:
        rows = [row for row in rows if row["price"] <= bounds[0][1]]
        log.step([call("filter", {"max_price": bounds[0][1]}, {"results": rows})])
    known = task.target
    if rng.random() < player.asks:
        question = "Is there anything else the product has to have?"
        log.step([call("message", {"text": question}, {"delivered": True})], question, task.unspoken)
    else:
        known = msgspec.structs.replace(known, attributes=known.attributes[:-1])
    similar = [row for row in rows if title_similarity(row["title"], task.target.title[0]) >= TITLE_SIMILARITY_MIN]
    if not similar:
        log.step([], "I could not find a listing that fits.")
        return Episode(log, Ending("partial", "no_final_order", False, 0.0, "did_not_finish"))
    fitting = [row for row in similar if meets(row, known, None)] if rng.random() < player.skill else []
    chosen = (fitting or similar)[0]
    order = {"product_id": chosen["product_id"], "sku": _sku(chosen, known)}
    log.step([call("place_test_order", order, {"order": "accepted"}, done=True)])
    return Episode(log, _verdict(chosen, task.target, known))


def _listing(search: Search, words: str) -> list[dict[str, Any]]:
    """Search rows; unlike ShoppingBench's they show options and attributes."""
    rows = search.find_product(words)
    shown = [search.catalogue.by_id[row["product_id"]] for row in rows]
    details = [{"sku_options": product.sku_options, "attributes": product.attributes} for product in shown]
    return [row | detail for row, detail in zip(rows, details, strict=True)]


def _sku(chosen: dict[str, Any], known: Target) -> str:
    """The SKU that has most of the options known to be wanted."""
    wanted = set(known.options)
    skus: dict[str, dict[str, str]] = chosen["sku_options"]
    return max(skus, key=lambda number: len(wanted & set(skus[number].items())))


def _verdict(chosen: dict[str, Any], target: Target, known: Target) -> Ending:
    if meets(chosen, target, title_similarity):
        return Ending("completed", "placed_order", True, 1.0, None)
    category = "needs_not_found" if meets(chosen, known, title_similarity) else "request_not_met"
    return Ending("completed", "placed_order", False, 0.0, category)


def _broken(log: EpisodeLog, rng: random.Random) -> Ending:
    if rng.random() < 0.5:
        return Ending("environment_error", "infrastructure_error", None, None, "infrastructure")
    log.step([call("search", {"q": 1}, None, error_code="bad_arguments")])
    return Ending("agent_error", "agent_error", False, 0.0, "did_not_finish")
