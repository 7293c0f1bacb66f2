"""What others than the agent say of a trajectory: the validator's own side, a search asked again, the released code.

Not the agent's own logs: those are `trust`'s. The records are made elsewhere (`witness`, `grading`, `replaying`,
`agent_source`); what is read here is only what they come to. A record about other bytes says nothing of these.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from service.domain.agent_code.code_scan import CodeScan, Dispatch, FindingKind
from service.domain.attribution.evidence import Evidence
from service.domain.attribution.grading import Agrees, Grade
from service.domain.attribution.replaying import Replayed
from service.domain.attribution.trust import Contradiction
from service.domain.attribution.witness import Fit
from service.domain.trajectory import TOOLS, ExecutionKind, Trajectory


class Testimony(NamedTuple):
    """What others say. Of requests and calls: those that they confirm."""

    contradictions: tuple[Contradiction, ...] = ()
    proxy_read: bool = False
    """The validator's proxy log was compared with the log of these bytes."""
    replies_served: frozenset[int] = frozenset()
    searches_served: frozenset[int] = frozenset()
    results_replayed: frozenset[int] = frozenset()
    """Places among all calls."""


class CodeRule(NamedTuple):
    """What the released code says of calls that the log leaves open."""

    runs_replies: bool
    """It takes every call out of a model's reply."""
    calls_tools: bool
    """It calls every tool itself."""
    asks_model: bool


STATED = ("execution_seconds", "inference_total", "inference_failure_count")
"""What a sandbox states of a run and nobody decides later; status and success may be judged anew."""
NOTHING = Testimony()
NO_CODE = CodeRule(False, False, False)


def testimony(trajectory: Trajectory, evidence: Evidence) -> Testimony:
    """Read what others say of a trajectory."""
    if trajectory.empty or not (evidence.witness or evidence.code):
        return NOTHING
    found: dict[Contradiction, None] = {}
    proxy_read = False
    replies: set[int] = set()
    searches: set[int] = set()
    replayed: set[int] = set()
    for record in evidence.witness:
        match record.get("kind"):
            case "proxy":
                fits = _fits(record, trajectory)
                if fits is not None:
                    proxy_read = True
                    replies.update(_matched(fits[0]))
                    searches.update(_matched(fits[1]))
                    found |= dict.fromkeys(_not_served(*fits))
            case "envelope":
                found |= dict.fromkeys(_not_scored(record, trajectory.kind))
            case "search":
                same, differs = _results(record, trajectory)
                replayed.update(same)
                if differs:
                    found[Contradiction.RESULT_NOT_REPLAYED] = None
            case _:
                pass
    found |= dict.fromkeys(_code(evidence.code, trajectory))
    known = tuple(found), proxy_read
    return Testimony(*known, frozenset(replies), frozenset(searches), frozenset(replayed))


def code_rule(code: CodeScan | None) -> CodeRule:
    """What a scan says of who issues calls; nothing where it could not read all of the code."""
    if code is None or not code.is_readable:
        return NO_CODE
    kinds = {finding.kind for finding in code.findings}
    if FindingKind.OBFUSCATED in kinds:
        return NO_CODE
    return CodeRule(
        runs_replies=code.dispatch is Dispatch.MODEL and FindingKind.CODE_DISPATCH not in kinds,
        calls_tools=code.dispatch is Dispatch.CODE and FindingKind.MODEL_DISPATCH not in kinds,
        asks_model=FindingKind.MODEL_REQUEST in kinds,
    )


def _fits(record: Mapping[str, Any], trajectory: Trajectory) -> tuple[Sequence[Any], Sequence[Any]] | None:
    """What the proxy's log says of the replies and of the searches; None where it is about other bytes."""
    replies, searches = record.get("inferences"), record.get("searches")
    if not isinstance(replies, list | tuple) or not isinstance(searches, list | tuple):
        return None
    is_same = len(replies) == len(trajectory.inferences) and len(searches) == len(trajectory.searches)
    return (replies, searches) if is_same else None


def _matched(fits: Sequence[Any]) -> Iterator[int]:
    return (index for index, fit in enumerate(fits) if fit == Fit.MATCHED)


def _not_served(replies: Sequence[Any], searches: Sequence[Any]) -> Iterator[Contradiction]:
    if Fit.UNMATCHED in replies:
        yield Contradiction.REPLY_NOT_SERVED
    if Fit.UNMATCHED in searches:
        yield Contradiction.SEARCH_NOT_SERVED
    if Fit.SIZE_DIFFERS in replies or Fit.SIZE_DIFFERS in searches:
        yield Contradiction.SERVED_SIZE


def _not_scored(record: Mapping[str, Any], kind: ExecutionKind) -> Iterator[Contradiction]:
    """What was scored is the first line. Of an episode only statements are compared: its bytes are not local."""
    is_other = record.get("grade") in (Grade.DIFFERS, Grade.CONFLICT)
    if kind is ExecutionKind.LEGACY and is_other and record.get("agrees") not in (Agrees.FIRST, Agrees.BOTH):
        yield Contradiction.RELEASE_NOT_SCORED
    scored = record.get("scored")
    if isinstance(scored, Mapping) and any(scored.get(name) is False for name in STATED):
        yield Contradiction.REPORT_NOT_SCORED


def _results(record: Mapping[str, Any], trajectory: Trajectory) -> tuple[list[int], bool]:
    """Places of the calls whose results were found again, and whether any differed."""
    shown, logged = record.get("shown"), record.get("logged")
    names = TOOLS[trajectory.kind].logged
    places = [place for place, call in enumerate(trajectory.tool_calls) if call.name in names]
    if not isinstance(shown, list | tuple) or not isinstance(logged, list | tuple):
        return [], False
    if len(shown) != len(places) or len(logged) != len(trajectory.searches):
        return [], False
    same = [place for place, word in zip(places, shown, strict=True) if word == Replayed.SAME]
    return same, Replayed.DIFFERS in shown or Replayed.DIFFERS in logged


def _code(code: CodeScan | None, trajectory: Trajectory) -> Iterator[Contradiction]:
    """Only a log can be contradicted, and only the legacy format holds one."""
    if code is None or trajectory.kind is not ExecutionKind.LEGACY:
        return
    if any(finding.kind is FindingKind.TOUCHES_LOG for finding in code.findings):
        yield Contradiction.CODE_TOUCHES_LOG
    rule = code_rule(code)
    if rule.calls_tools and not rule.asks_model and any(not reply.failed for reply in trajectory.inferences):
        yield Contradiction.CODE_ASKS_NO_MODEL
