"""`/v1/trajectories`: pages of trajectories, and one with its verdict and, where it may be shown, its content."""

from typing import Any, NamedTuple

import msgspec
from fastapi import APIRouter

from service.api.context import Here, Reading
from service.api.parameters import After, Limit, TrajectoryId, Wanted, WantedClass, WantedKind, WantedVerdict
from service.api.schemas import Content, Step, TrajectoryDetail, TrajectoryItem, TrajectoryPage, Verdict
from service.api.verdict_schemas import ExplainedVerdict
from service.domain.attribution.evidence import Evidence
from service.domain.filter.explanation import explain
from service.domain.sn15.failures import category_of
from service.domain.trajectory import ExecutionKind, parse
from service.domain.wire.unknown_fields import unknown_names
from service.errors import ErrorCode, SluiceError
from service.store.corpus import trajectories
from service.store.figures import trajectory_pages
from service.store.figures.dossier import Dossier, VerdictRow, dossier
from service.store.figures.statistics import Dimension

router = APIRouter(tags=["corpus"])

JUDGEMENT_FIELDS = (
    *("status", "success", "score", "reasoning_score", "inference_total", "inference_failure_count"),
    *("execution_seconds", "paid_reward", "outcome"),
)
"""What is shown of SN15's judgement, beside why the item failed.

Its score components are not: for an eval problem they hint at the gold.
"""


@router.get("/v1/trajectories")
def page(
    context: Here,
    session: Reading,
    after: After = 0,
    limit: Limit = 100,
    agent: Wanted = None,
    structural_class: WantedClass = None,
    verdict: WantedVerdict = None,
    reason: Wanted = None,
    category: Wanted = None,
    race: Wanted = None,
    kind: WantedKind = None,
) -> TrajectoryPage:
    """One page of trajectories in order of id, narrowed by exact values."""
    asked = {
        Dimension.AGENT: agent,
        Dimension.CLASS: structural_class,
        Dimension.VERDICT: verdict,
        Dimension.REASON: reason,
        Dimension.CATEGORY: category,
        Dimension.RACE: race,
        Dimension.KIND: kind,
    }
    filters = {dimension: value for dimension, value in asked.items() if value is not None}
    # One row more than asked for tells whether there is a next page.
    rows = trajectory_pages.page(session, context.rules_digest, after=after, limit=limit + 1, filters=filters)
    shown = rows[:limit]
    return TrajectoryPage(
        trajectories=[TrajectoryItem.model_validate(row) for row in shown],
        next_after=shown[-1].trajectory_id if len(rows) > limit else None,
    )


@router.get("/v1/trajectories/{trajectory_id}")
def detail(context: Here, session: Reading, trajectory_id: TrajectoryId) -> TrajectoryDetail:
    """One trajectory with its verdict, and its content where it may be shown."""
    found = dossier(session, context.rules_digest, trajectory_id)
    if found is None:
        raise SluiceError(ErrorCode.NOT_FOUND, "there is no such trajectory", trajectory_id=trajectory_id)
    payload = trajectories.payload(session, trajectory_id) if found.is_open else None
    content = _content(payload, found) if payload is not None else None
    return TrajectoryDetail(
        **found.row._asdict(),
        verdict=_verdict(found.verdict, found.is_open) if found.verdict else None,
        judgement=_judgement(found.verdict, content) if found.verdict and found.is_open else None,
        content=content.shown if content is not None else None,
        withheld=found.withheld,
    )


@router.get("/v1/trajectories/{trajectory_id}/verdict")
def explained(context: Here, session: Reading, trajectory_id: TrajectoryId) -> ExplainedVerdict:
    """Who made each call of one trajectory and why we say so, in order of time, and which gate decided."""
    found = dossier(session, context.rules_digest, trajectory_id)
    if found is None:
        raise SluiceError(ErrorCode.NOT_FOUND, "there is no such trajectory", trajectory_id=trajectory_id)
    payload = trajectories.payload(session, trajectory_id)
    if found.verdict is None or payload is None:
        raise SluiceError(ErrorCode.NOT_FOUND, "the trajectory has no verdict yet", trajectory_id=trajectory_id)
    rules = context.policies.rules
    told = explain(
        parse(payload, ExecutionKind(found.row.kind)),
        msgspec.convert(found.verdict.evidence, Evidence),
        found.verdict.verdict,
        rules,
        with_content=found.is_open,
    )
    return ExplainedVerdict(
        **msgspec.to_builtins(told),
        trajectory_id=trajectory_id,
        rules=f"{rules.name}/{rules.version}",
        withheld=found.withheld,
    )


class _Read(NamedTuple):
    shown: Content
    failure_given: str | None
    """Why the item failed, in the payload's own words."""


def _verdict(verdict: VerdictRow, is_open: bool) -> Verdict:
    told = verdict._asdict() if is_open else verdict._asdict() | {"signals": None, "answer": None}
    return Verdict.model_validate(told)


def _judgement(verdict: VerdictRow, content: _Read | None) -> dict[str, Any]:
    told = verdict.evidence.get("judgement") or {}
    if not told:
        return {}
    given = told.get("failure_category") or (content.failure_given if content else None)
    shown = {name: told.get(name) for name in JUDGEMENT_FIELDS}
    return shown | {"failure_category": category_of(given), "failure_given": given}


def _content(payload: bytes, found: Dossier) -> _Read:
    kind = ExecutionKind(found.row.kind)
    trajectory = parse(payload, kind)
    content = Content(
        query=trajectory.query,
        steps=[Step.model_validate(step) for step in trajectory.steps],
        defects=[defect.value for defect in trajectory.defects],
        unknown_fields=unknown_names(payload, kind),
    )
    return _Read(content, trajectory.feedback.failure_given if trajectory.feedback else None)
