"""How far the logs around a trajectory can be believed: what disagrees, and what positive evidence is missing.

Not attribution: who issued a call is `provenance`. All logs are written inside the agent's own process, so they can
contradict a trajectory but never witness one. How far apart is too far is the rule set's to say.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

import msgspec

from service.domain.filter.rules import EvidenceRule
from service.domain.tools import TOOLS, listed_ids, product_ids
from service.domain.trajectory import Defect, Inference, Judgement, Search, ToolCall, Trajectory

_UNREAD = frozenset({Defect.BAD_PROXY_CALL, Defect.BAD_STEP, Defect.MALFORMED_JSON})
"""Defects that leave lines of the log out."""


class Contradiction(StrEnum):
    """Two pieces of evidence that cannot both be true."""

    INFERENCE_COUNT = "inference_count"
    """The log holds another number of inferences than were reported."""
    EXECUTION_TIME = "execution_time"
    """Payload and report state different execution times: they are not of the same execution."""
    LOG_OUTLASTS_EXECUTION = "log_outlasts_execution"
    SEARCHES_NOT_LOGGED = "searches_not_logged"
    """The client logged inferences, but none of the searches whose results the trajectory shows."""
    RESULT_NOT_LOGGED = "result_not_logged"
    """A search's logged result lacks ids that the trajectory shows as its result."""
    REPLY_SIZE = "reply_size"
    """A reply is longer than its reported tokens can spell."""
    REPLY_NOT_SERVED = "reply_not_served"
    """The validator's proxy served no such request to a model."""
    SEARCH_NOT_SERVED = "search_not_served"
    """The validator's proxy served no such search."""
    SERVED_SIZE = "served_size"
    """The proxy served such a request, with a reply of another size."""
    RELEASE_NOT_SCORED = "release_not_scored"
    """What the validator's sandbox wrote and scored is not what was released."""
    REPORT_NOT_SCORED = "report_not_scored"
    """What the validator's sandbox stated of the run is not what was reported."""
    RESULT_NOT_REPLAYED = "result_not_replayed"
    """The same search gives other products than are shown or logged as its result."""
    CODE_TOUCHES_LOG = "code_touches_log"
    """The released code names files or fields of the log that only the executor and its client write."""
    CODE_ASKS_NO_MODEL = "code_asks_no_model"
    """Replies are logged, and the released code calls the tools itself and asks no model."""


class Missing(StrEnum):
    """Positive evidence that a trajectory lacks."""

    COUNT = "count"
    USAGE = "usage"
    SEARCHES = "searches"
    """Some shown results have no logged search."""
    PROMPT_SIZE = "prompt_size"
    """A prompt had no room for the query and the results before it."""
    PROMPT_GROWTH = "prompt_growth"
    """Prompts did not grow with the results."""
    WHOLE_LOG = "whole_log"
    """Lines of the log could not be read."""


class SearchBacking(NamedTuple):
    """How many calls that show catalogue results have a logged search that asked the same."""

    backed: int
    unbacked: int
    disagreeing: int
    searches: dict[int, int | None]
    """By place among all calls: the search logged for the call; None: not one search alone, or none."""


class Prompt(NamedTuple):
    """A reply that issued calls: its prompt's size, and the bytes of results the agent had by then."""

    tokens: int
    history_bytes: int


def reported_inferences(trajectory: Trajectory, judgement: Judgement) -> int | None:
    """The reported count; None when there is no report. A null count beside a payload with steps means zero."""
    if judgement.inference_total is None and judgement.status is not None and not trajectory.empty:
        return 0
    return judgement.inference_total


def search_backing(trajectory: Trajectory, calls: Sequence[ToolCall]) -> SearchBacking:
    """Compare the results that a trajectory shows with the searches logged around it, equal ones in order."""
    asked, viewed = _asked(trajectory.searches)
    backed = unbacked = disagreeing = 0
    searches: dict[int, int | None] = {}
    logged = TOOLS[trajectory.kind].logged
    for place, call in enumerate(calls):
        result = call.result
        if call.name not in logged or not result or isinstance(result, str):
            continue
        arguments = call.arguments if isinstance(call.arguments, dict) else {}
        text = _asked_text(arguments)
        waiting = asked.get(text) if text else viewed.get(product_ids(arguments))
        searches[place] = None
        if waiting:
            backed += 1
            searches[place] = index = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            disagreeing += bool(text) and _disagrees(listed_ids(result) or (), trajectory.searches, index)
        elif not text and {name for ids in viewed for name in ids}.issuperset(product_ids(arguments)):
            backed += 1
        else:
            unbacked += 1
    return SearchBacking(backed, unbacked, disagreeing, searches)


def _disagrees(ids: Sequence[str], searches: Sequence[Search], index: int) -> bool:
    """Whether a shown result holds ids that no logged search listed, its own first; the log must list them all."""
    if searches[index].product_ids == tuple(ids):
        return False
    listings = [search.product_ids for search in searches if search.path.endswith("find_product")]
    return None not in listings and not {name for listed in listings for name in listed or ()}.issuperset(ids)


def _asked(searches: Sequence[Search]) -> tuple[dict[str, list[int]], dict[tuple[str, ...], list[int]]]:
    """Logged searches by their words and by the products they name."""
    asked: dict[str, list[int]] = {}
    viewed: dict[tuple[str, ...], list[int]] = {}
    for index, search in enumerate(searches):
        params = search.params
        text = _asked_text(params)
        if text:
            asked.setdefault(text, []).append(index)
        if ("product_ids" in params or "product_id" in params) and (ids := product_ids(params)):
            viewed.setdefault(ids, []).append(index)
    return asked, viewed


def contradictions(
    trajectory: Trajectory, judgement: Judgement, backing: SearchBacking, rule: EvidenceRule
) -> tuple[Contradiction, ...]:
    """Everything that disagrees. Empty: the evidence is consistent, which does not make it true."""
    if trajectory.empty:
        return ()  # no log was uploaded that could disagree
    reported = reported_inferences(trajectory, judgement)
    logged = len(trajectory.inferences)
    found = (
        (Contradiction.INFERENCE_COUNT, reported is not None and logged != reported and log_whole(trajectory)),
        (Contradiction.EXECUTION_TIME, _times_differ(trajectory.execution_seconds, judgement.execution_seconds, rule)),
        (Contradiction.LOG_OUTLASTS_EXECUTION, _log_outlasts(trajectory, judgement, rule)),
        (Contradiction.SEARCHES_NOT_LOGGED, logged and backing.unbacked and not backing.backed),
        (Contradiction.RESULT_NOT_LOGGED, backing.disagreeing),
        (Contradiction.REPLY_SIZE, any([_is_oversized(reply, rule) for reply in trajectory.inferences])),
    )
    return tuple([name for name, holds in found if holds])


def missing(
    trajectory: Trajectory,
    judgement: Judgement,
    backing: SearchBacking,
    prompts: Sequence[Prompt],
    rule: EvidenceRule,
) -> tuple[Missing, ...]:
    """The positive evidence that is absent."""
    query_bytes = len(trajectory.query or "")
    replies = [reply for reply in trajectory.inferences if not reply.failed and not reply.dropped]
    found = (
        (Missing.COUNT, reported_inferences(trajectory, judgement) is None),
        (Missing.USAGE, any([reply.prompt_tokens is None or reply.completion_tokens is None for reply in replies])),
        (Missing.SEARCHES, backing.unbacked),
        (Missing.PROMPT_SIZE, any([not _has_room(one, query_bytes, rule.shown_share, rule) for one in prompts])),
        (Missing.PROMPT_GROWTH, _grows(prompts, rule) is False),
        (Missing.WHOLE_LOG, not log_whole(trajectory)),
    )
    return tuple([name for name, holds in found if holds])


def echoes(trajectory: Trajectory, prompts: Sequence[Prompt], rule: EvidenceRule) -> bool:
    """The replies cannot be decisions: prompts do not grow with the results and could not hold them."""
    if len(prompts) < 2:
        return False  # one prompt cannot grow
    query_bytes = len(trajectory.query or "")
    return _grows(prompts, rule) is False and any(not _has_room(one, query_bytes, 1.0, rule) for one in prompts)


def shown_bytes(call: ToolCall) -> int:
    """Size of what a call adds to an honest conversation: its result."""
    try:
        return len(msgspec.json.encode(call.result))
    except (UnicodeError, RecursionError, OverflowError):
        return 0


def _asked_text(params: dict[str, Any]) -> str:
    """A search's words; the log spells them quoted, and clients quote them twice."""
    words = params.get("q") or params.get("query")
    if not words or not isinstance(words, str):
        return ""
    if "%" in words:
        words = unquote_plus(unquote_plus(words))
    elif "+" in words:
        words = words.replace("+", " ")
    return " ".join(words.lower().split())


def log_whole(trajectory: Trajectory) -> bool:
    """Whether every line of the log could be read."""
    return not trajectory.defects or _UNREAD.isdisjoint(trajectory.defects)


def _is_oversized(reply: Inference, rule: EvidenceRule) -> bool:
    if reply.completion_tokens is None or reply.content is None:
        return False
    return len(reply.content) > rule.reply_bytes_per_token * (reply.completion_tokens + 1)


def _times_differ(stated: float | None, reported: float | None, rule: EvidenceRule) -> bool:
    if stated is None or reported is None:
        return False
    return abs(stated - reported) > rule.time_share * max(stated, reported, 0.0) + rule.time_slack_seconds


def _log_outlasts(trajectory: Trajectory, judgement: Judgement, rule: EvidenceRule) -> bool:
    """The whole log, parallel calls and waits included, must fit into the execution."""
    seconds = judgement.execution_seconds
    if seconds is None:
        seconds = trajectory.execution_seconds
    log: list[Inference | Search] = [*trajectory.inferences, *trajectory.searches]
    if seconds is None or not log:
        return False
    start = min([line.timestamp_ms - line.duration_ms for line in log])
    end = max([line.timestamp_ms for line in log])
    return (end - start) / 1000 > seconds * (1 + rule.time_share) + rule.time_slack_seconds


def _has_room(prompt: Prompt, query_bytes: int, share: float, rule: EvidenceRule) -> bool:
    return prompt.tokens * rule.bytes_per_token >= query_bytes + share * prompt.history_bytes


def _grows(prompts: Sequence[Prompt], rule: EvidenceRule) -> bool | None:
    """Whether some prompt grew with the history since the first. None: too little history to tell."""
    if len(prompts) < 2:
        return None
    first = prompts[0]
    later = [prompt for prompt in prompts if prompt.history_bytes - first.history_bytes >= rule.history_bytes]
    if not later:
        return None
    return any(
        (one.tokens - first.tokens) * rule.bytes_per_token
        >= rule.shown_share * (one.history_bytes - first.history_bytes)
        for one in later
    )
