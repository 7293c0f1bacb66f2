"""What may be believed of a problem when only agents speak of it: its query text and its winners' products.

Agents write what they are judged by, so one family of agents proves nothing. Not a graph: `leakage` draws the edges.
How many families do prove something is the leak plan's to say.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from service.domain.leaks.leakage import LeakPlan, ProblemFacts
from service.domain.sn15.scoring import Category
from service.domain.trajectory import ExecutionKind


class PublishedProblem(NamedTuple):
    """A problem as its source publishes it."""

    problem_id: str
    kind: str
    category: str
    query: str | None
    """None: the source does not give it."""
    reward: list[dict[str, Any]] | None
    """Raw gold, one entry a target; None: not published."""


class FamilyReport(NamedTuple):
    """What the trajectories of one agent family say of one problem; a family may report more than once."""

    family: str
    query: str | None
    answer: tuple[str, ...]
    success: bool
    is_hearsay: bool = False
    """Out of a file, of an agent that only the file names: it speaks where no one else does, and confirms nothing."""


class QueryReport(NamedTuple):
    """The query text one agent family says it was given."""

    family: str
    query: str


class ConfirmedQuery(NamedTuple):
    """The text to use for a problem, and whether it may join problems (`confirmed`) or only raise a suspicion."""

    query: str | None
    confirmed: bool


class Win(NamedTuple):
    """The answer of one successful trajectory."""

    family: str
    answer: tuple[str, ...]
    positions: int | None
    """How many leading ids are scored (a product problem: 1); None = all of them."""


class WinnerIds(NamedTuple):
    """Product ids of a problem's winners: those that may join problems, and those that only raise a suspicion."""

    confirmed: frozenset[str]
    suspect: frozenset[str]


def describe(problem: PublishedProblem, reports: Sequence[FamilyReport], plan: LeakPlan) -> ProblemFacts:
    """Put together what the leak graph needs to know of a problem."""
    heard = [one for one in reports if not one.is_hearsay]
    hearsay = [one for one in reports if one.is_hearsay]
    query = confirm_query(_said(heard), problem.query, plan)
    if query.query is None:
        query = ConfirmedQuery(confirm_query(_said(hearsay), None, plan).query, confirmed=False)
    positions = _scored_positions(problem)
    winners = winner_ids(_won(heard, positions), plan)
    suspect = {product_id for win in _won(hearsay, positions) for product_id in win.answer[: win.positions]}
    return ProblemFacts(
        problem_id=problem.problem_id,
        kind=problem.kind,
        category=problem.category,
        query=query.query,
        query_confirmed=query.confirmed,
        gold_ids=frozenset(str(row["product_id"]) for row in problem.reward or () if row.get("product_id") is not None),
        winner_ids=winners.confirmed,
        suspect_winner_ids=winners.suspect | (suspect - winners.confirmed),
        task=_task(problem),
    )


def _said(reports: Sequence[FamilyReport]) -> list[QueryReport]:
    return [QueryReport(one.family, one.query) for one in reports if one.query]


def _won(reports: Sequence[FamilyReport], positions: int | None) -> list[Win]:
    return [Win(one.family, one.answer, positions) for one in reports if one.success]


def _scored_positions(problem: PublishedProblem) -> int | None:
    if problem.category == Category.PRODUCT:
        return 1
    return len(problem.reward) if problem.reward else None


def _task(problem: PublishedProblem) -> str | None:
    """Identity of an episode's task whatever world it runs in: its id without the world's name."""
    if problem.kind != ExecutionKind.ENVPACK:
        return None
    _world, slash, task = problem.problem_id.partition("/")
    return task if slash else problem.problem_id


def confirm_query(reports: Sequence[QueryReport], api_query: str | None, plan: LeakPlan) -> ConfirmedQuery:
    """Choose a problem's query text.

    The API's own text is always confirmed. Else the text most families report, confirmed from as many families as the
    plan asks for. Texts are compared as given, apart from white space at the ends. Ties go to the text that
    sorts first, so the result does not depend on the order of the reports.
    """
    if api_query is not None and api_query.strip():
        return ConfirmedQuery(api_query, confirmed=True)
    families: dict[str, set[str]] = defaultdict(set)
    for report in reports:
        if text := report.query.strip():
            families[text].add(report.family)
    if not families:
        return ConfirmedQuery(None, confirmed=False)
    text, voices = min(families.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    return ConfirmedQuery(text, confirmed=len(voices) >= plan.witness_families)


def winner_ids(wins: Sequence[Win], plan: LeakPlan) -> WinnerIds:
    """Product ids the winners of one problem agree on.

    An id is confirmed when enough of the winning families, in number and in share, gave it in a scored position.
    Every other id in a scored position is suspect. A family counts once however many versions it enters.
    """
    families = {win.family for win in wins}
    voices: dict[str, set[str]] = defaultdict(set)
    for win in wins:
        for product_id in win.answer[: win.positions]:
            voices[product_id].add(win.family)
    confirmed = frozenset(
        product_id
        for product_id, agreeing in voices.items()
        if len(agreeing) >= plan.witness_families and len(agreeing) > plan.winner_share * len(families)
    )
    return WinnerIds(confirmed, frozenset(voices) - confirmed)
