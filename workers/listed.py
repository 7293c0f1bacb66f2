"""What the source lists, as rows of the store. Reads, saves and decides nothing."""

from datetime import datetime

from service.domain.sn15.tombstones import TombstoneReason, of_run
from service.source.oro.listing import AgentListing, ItemListing, ProblemListing, RaceListing, RunListing
from service.store.corpus.tombstones import Word
from service.store.harvest.ledger import ExpectedItem
from service.store.models import AgentVersion, EvaluationRun, Problem, Race

UNCATEGORISED = "unknown"
RUNS, LEADERBOARD = "runs", "leaderboard"
"""Names of the listings that say what counts; a race's is its id."""


def problem(listed: ProblemListing) -> Problem:
    """A public problem, with what is published of it."""
    return Problem(
        problem_id=listed.problem_id,
        kind=listed.kind,
        category=listed.category or UNCATEGORISED,
        suite_id=listed.suite_id,
        query=listed.query,
        reward=listed.reward,
        voucher=listed.voucher,
    )


def race(listed: RaceListing, at: datetime) -> Race:
    """A race as it stands at a time."""
    return Race(
        race_id=listed.race_id,
        suite_id=listed.suite_id,
        race_number=listed.race_number,
        status=listed.status,
        is_complete=listed.is_complete,
        is_cancelled=listed.is_cancelled,
        complete_since=at if listed.is_complete else None,
        started_at=listed.started_at,
        completed_at=listed.completed_at,
        source=listed.raw,
    )


def agent(listed: AgentListing) -> AgentVersion:
    """An agent version; its family is its miner until more is known."""
    return AgentVersion(
        agent_version_id=listed.agent_version_id,
        agent_name=listed.agent_name or listed.agent_version_id,
        miner_hotkey=listed.miner_hotkey,
        version_number=listed.version_number,
        family=listed.miner_hotkey or listed.agent_version_id,
        source=listed.raw,
    )


def run(listed: RunListing) -> EvaluationRun:
    """A run of an agent version."""
    return EvaluationRun(
        eval_run_id=listed.eval_run_id,
        agent_version_id=listed.agent_version_id,
        race_id=listed.race_id,
        suite_id=listed.suite_id,
        validator_hotkey=listed.validator_hotkey,
        phase=listed.phase,
        kind=listed.kind,
        status=listed.status,
        is_over=listed.is_over,
        counts=listed.counts,
        invalidated_at=listed.invalidated_at,
        completed_at=listed.completed_at,
        source=listed.raw,
    )


def word_on_run(listed: RunListing) -> Word:
    """Whether a run counts."""
    reason = of_run(
        is_invalidated=listed.invalidated_at is not None,
        is_included=listed.is_included,
        is_successful=listed.is_successful,
    )
    return Word(listed.eval_run_id, reason, RUNS, listed.raw)


def word_on_agent(listed: AgentListing, listing: str) -> Word | None:
    """Whether an agent version stands, as one listing has it; None where it does not say."""
    if listed.is_discarded is None:
        return None
    reason = TombstoneReason.AGENT_DISCARDED if listed.is_discarded else None
    return Word(listed.agent_version_id, reason, listing, listed.raw)


def item_problem(item: ItemListing, suite_id: int | None) -> Problem:
    """The problem of an item, of which nothing but its category is known."""
    return Problem(
        problem_id=item.problem_id,
        kind=item.kind,
        category=item.category or UNCATEGORISED,
        suite_id=suite_id,
        query=item.query,
        reward=None,
        voucher=None,
    )


def expected_item(item: ItemListing) -> ExpectedItem:
    """The ledger entry of an item."""
    return ExpectedItem(
        item.eval_run_id, item.item_key, item.problem_id, item.episode_result_id, item.judgement, item.updated_at
    )
