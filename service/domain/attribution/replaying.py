"""Ask a deterministic search again, and compare what it answers with what a trajectory shows and logs. Judges nothing.

The search is handed in: this knows no catalogue. A record holds for one index alone; where the run may have met
another one, there is nothing to compare, and no record must be made.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any
from urllib.parse import unquote_plus

from service.domain.tools import listed_ids
from service.domain.trajectory import TOOLS, Trajectory

RECORD_VERSION = 1

Answer = Callable[[str, Mapping[str, str]], Sequence[str] | None]
"""(tool, arguments as text) -> product ids in order; None where the search cannot say."""


class Replayed(StrEnum):
    """What asking again came to."""

    SAME = "same"
    DIFFERS = "differs"
    NOT_ASKED = "not_asked"
    """There is no result to compare, or the search cannot say."""


def replay(trajectory: Trajectory, answer: Answer, index: str) -> dict[str, Any]:
    """Ask again for every result that a trajectory shows, and for every logged search that lists its products.

    Args:
        trajectory: what happened.
        answer: the search; the same arguments always give the same ids.
        index: name of what it searches.

    Returns:
        A record for `Evidence.witness`: a `Replayed` for each call of a tool that asks the catalogue, and for each
        logged search, in the order of the trajectory.
    """
    tools = TOOLS[trajectory.kind].logged
    return {
        "kind": "search",
        "version": RECORD_VERSION,
        "index": index,
        "shown": [
            _compared(call.name, call.arguments, listed_ids(call.result), answer).value
            for call in trajectory.tool_calls
            if call.name in tools
        ],
        "logged": [
            _compared(search.path.rpartition("/")[2], _unquoted(search.params), search.product_ids, answer).value
            for search in trajectory.searches
        ],
    }


def _compared(tool: str, arguments: object, ids: Sequence[str] | None, answer: Answer) -> Replayed:
    if ids is None or not isinstance(arguments, dict):
        return Replayed.NOT_ASKED
    answered = answer(tool, {name: str(value) for name, value in arguments.items() if value is not None})
    if answered is None:
        return Replayed.NOT_ASKED
    return Replayed.SAME if list(answered) == list(ids) else Replayed.DIFFERS


def _unquoted(params: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as the shopper meant them: clients quote a search's words once or twice."""
    words = params.get("q")
    return {**params, "q": unquote_plus(unquote_plus(words))} if isinstance(words, str) else dict(params)
