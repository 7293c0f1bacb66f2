"""ORO's rows to listings: the one place that knows the API's field names. Sends no request.

Each function takes one row and raises `Malformed` when the row is worthless; whatever else is odd reads as absent.
"""

from typing import Any

from service.domain.trajectory import ExecutionKind
from service.source.http.decoding import Malformed, Row, key
from service.source.oro.listing import (
    AgentListing,
    ItemListing,
    ProblemListing,
    RaceListing,
    RunListing,
    SuiteListing,
)

RACE_STATUSES = frozenset({"QUALIFYING_OPEN", "RACE_RUNNING", "RACE_COMPLETE", "CANCELLED", "RACE_CANCELLED"})
RUN_STATUSES = frozenset({"CLAIMED", "RUNNING", "SUCCESS", "FAILED", "TIMED_OUT", "STALE", "CANCELLED"})
PROBLEM_STATUSES = frozenset({"PENDING", "RUNNING", "SUCCESS", "FAILED", "TIMED_OUT", "SKIPPED"})


class UnknownKind(Malformed):
    """An execution kind this code cannot read."""


def kind(value: str | None) -> ExecutionKind:
    """The execution kind; absent means legacy, as in the SDK.

    Raises:
        UnknownKind: a value newer than this code.
    """
    for known in (ExecutionKind.LEGACY, ExecutionKind.ENVPACK):  # the others are of files, not of the API
        if known == (value or ExecutionKind.LEGACY):
            return known
    raise UnknownKind(f"execution_kind {value!r}")


def agent(row: Row) -> AgentListing:
    """A RaceQualifierPublic or a LeaderboardEntry."""
    return AgentListing(
        agent_version_id=row.needed("agent_version_id"),
        agent_name=row.label("agent_name"),
        miner_hotkey=row.key("miner_hotkey"),
        version_number=row.count("version_number"),
        raw=dict(row),
    )


def race(row: Row, agents: tuple[AgentListing, ...]) -> RaceListing:
    """A RacePublic with its qualifiers."""
    return RaceListing(
        race_id=row.needed("race_id"),
        suite_id=row.count("suite_id"),
        status=row.needed("status"),
        race_number=row.count("race_number"),
        started_at=row.moment("race_started_at"),
        completed_at=row.moment("race_completed_at"),
        agents=agents,
        raw=dict(row),
    )


def suite(row: Row) -> SuiteListing:
    """A SuitePublic."""
    suite_id = row.count("suite_id")
    if suite_id is None:
        raise Malformed("no suite_id")
    return SuiteListing(
        suite_id=suite_id,
        kind=kind(row.text("execution_kind")),
        world=row.row("environment").key("catalog_epoch"),
        raw=dict(row),
    )


def run(row: Row, run_kind: ExecutionKind) -> RunListing:
    """An EvaluationRunPublic; its kind is that of its suite."""
    race_id = row.key("race_id")
    return RunListing(
        eval_run_id=row.needed("eval_run_id"),
        agent_version_id=row.needed("agent_version_id"),
        race_id=race_id,
        suite_id=row.count("suite_id"),
        validator_hotkey=row.label("validator_hotkey"),
        phase=row.label("phase") or ("RACE" if race_id else "QUALIFYING"),
        status=row.needed("status"),
        is_included=row.flag("is_included", default=False),
        invalidated_at=row.moment("invalidated_at"),
        completed_at=row.moment("completed_at"),
        kind=run_kind,
        raw=dict(row),
    )


def legacy_item(result: Row, entry: Row, listed: RunListing, released: bool) -> ItemListing:
    """The ValidatorProblemResult of one run, in its ProblemProgressEntry."""
    problem_id = entry.needed("problem_id")
    status, score = result.label("status"), result.number("score")
    return ItemListing(
        eval_run_id=listed.eval_run_id,
        agent_version_id=listed.agent_version_id,
        item_key=problem_id,
        problem_id=problem_id,
        kind=ExecutionKind.LEGACY,
        category=_lower(entry.label("category")),
        query=None,
        released=released,
        episode_result_id=None,
        judgement={
            "status": status,
            "success": None if score is None else status == "SUCCESS" and score >= 1.0,
            "score": score,
            "reasoning_score": result.number("reasoning_score"),
            "inference_total": result.count("inference_total"),
            "inference_failure_count": result.count("inference_failure_count"),
            "execution_seconds": result.number("execution_time"),
            "components": result.details("score_components"),
        },
        updated_at=result.moment("updated_at"),
    )


def episode_item(row: Row, listed: RunListing, world: str, released: bool) -> ItemListing:
    """An EvaluationItemRead of an envpack run."""
    task_id = row.needed("item_id")
    verdict = row.text("verdict_status")
    return ItemListing(
        eval_run_id=listed.eval_run_id,
        agent_version_id=listed.agent_version_id,
        item_key=task_id,
        problem_id=key(f"{world}/{task_id}", "problem_id"),
        kind=ExecutionKind.ENVPACK,
        category=_lower(row.label("family")),
        query=None,
        released=released,
        episode_result_id=row.key("episode_result_id"),
        judgement={
            "status": row.label("status"),
            "success": {"passed": True, "failed": False}.get(verdict or ""),
            "score": row.number("score"),
            "paid_reward": row.number("paid_reward"),
            "components": row.details("check_summary"),
        },
    )


def all_given(details: Row, given: int) -> bool:
    """Whether an EvaluationItemsRead has nothing still to come, where `given` items are there.

    Without an expected count, nothing at all means that the items are not there yet.
    """
    persisted = details.count("persisted_item_count")
    expected = details.count("expected_item_count")
    if expected is None:
        return given >= max(1, persisted or 0)
    return given >= expected and (persisted is None or persisted >= expected)


def problem(row: Row, listed: SuiteListing) -> ProblemListing:
    """A ProblemPublic of a legacy suite, with its gold where that is published."""
    metadata = row.row("metadata")
    voucher = metadata.get("voucher")
    return ProblemListing(
        problem_id=row.needed("problem_id"),
        kind=ExecutionKind.LEGACY,
        suite_id=listed.suite_id,
        category=_lower(metadata.label("category")),
        query=metadata.text("query"),
        reward=_products(metadata.get("reward")),
        voucher=voucher if isinstance(voucher, dict) else None,
    )


def task(row: Row, listed: SuiteListing) -> ProblemListing:
    """A QualifyingTaskRead of an envpack suite."""
    return ProblemListing(
        problem_id=key(f"{world_of(listed)}/{row.needed('task_id')}", "problem_id"),
        kind=ExecutionKind.ENVPACK,
        suite_id=listed.suite_id,
        category=_lower(row.label("family")),
        query=row.text("goal_text"),
        reward=None,
        voucher=None,
    )


def world_of(listed: SuiteListing) -> str:
    """The world a suite's tasks belong to: task ids repeat from one to the next."""
    return listed.world or f"suite-{listed.suite_id}"


def _lower(value: str | None) -> str | None:
    return value.lower() if value else None


def _products(reward: Any) -> list[dict[str, Any]] | None:
    """One gold product, or several for a shop."""
    listed = reward if isinstance(reward, list) else [reward]
    return [product for product in listed if isinstance(product, dict)] or None
