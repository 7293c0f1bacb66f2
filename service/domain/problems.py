"""What may be believed of a problem when only agents speak of it: its query text and its winners' products.

Agents write what they are judged by, so one family of agents proves nothing. Not a graph: `leakage` draws the edges.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

WITNESS_FAMILIES = 2
"""Independent families that must say the same before it counts."""


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


def confirm_query(reports: Sequence[QueryReport], api_query: str | None) -> ConfirmedQuery:
    """Choose a problem's query text.

    The API's own text is always confirmed. Else the text most families report, confirmed from two families up. Texts
    are compared as given, apart from white space at the ends. Ties go to the text that sorts first, so the result
    does not depend on the order of the reports.
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
    return ConfirmedQuery(text, confirmed=len(voices) >= WITNESS_FAMILIES)


def winner_ids(wins: Sequence[Win]) -> WinnerIds:
    """Product ids the winners of one problem agree on.

    An id is confirmed when more than half of the winning families, and at least two, gave it in a scored position.
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
        if len(agreeing) >= WITNESS_FAMILIES and 2 * len(agreeing) > len(families)
    )
    return WinnerIds(confirmed, frozenset(voices) - confirmed)
