"""One row: a trajectory as messages and tools, with flat columns that say where it came from.

Not a file format (`store.release.files` writes rows) and not a choice (`selection` makes it). A row holds nothing that
depends on when or where it was harvested, so equal trajectories under equal rules give equal bytes on every machine.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any

import msgspec

from service.domain.attribution.provenance import Issuer
from service.domain.filter.structure import Verdict
from service.domain.leaks.leakage import ProblemFacts
from service.domain.rows.chat import Message, ToolUse, chat_messages, clean_text, render_chat
from service.domain.rows.prompts import PROMPT_SOURCE, ToolSet, tool_set
from service.domain.rows.scanning import masked
from service.domain.rows.splits import Config, row_config
from service.domain.trajectory import Trajectory

ROW_SCHEMA_VERSION = "sluice-row/2"
"""Names the columns, their order and their meaning; a change of any is a new version and a new snapshot id."""

LICENCE_UNKNOWN = "unknown"
"""SN15 states no licence for trajectories; said per row until it does."""


class GoldKind(StrEnum):
    """How well the right answer of a problem is known, so how far its cleanliness can be proved."""

    GOLD_KNOWN = "gold-known"
    WINNER_KNOWN = "winner-known"
    TEXT_ONLY = "text-only"


TRAINABLE = {
    Config.AGENTIC: frozenset({Issuer.MODEL}),
    Config.UNATTRIBUTED: frozenset({Issuer.MODEL, Issuer.UNKNOWN}),
}
"""Issuers whose messages are marked `train`, by configuration."""


class RowSource(msgspec.Struct, frozen=True, kw_only=True):
    """What the ledger knows of one kept trajectory. None where SN15 did not say."""

    eval_run_id: str
    agent_version_id: str
    agent_family: str
    miner_hotkey: str | None
    race_id: str | None
    """None: a qualifying run."""
    cluster_id: str
    rules: str
    """Name and version of the rule set, such as `sluice-1/1`."""
    rules_digest: str
    reasoning_score: float | None
    """0.1 to 0.9; None: unjudged."""
    difficulty: float | None
    """Share of the judged trajectories of this problem that succeeded, 0 to 1; None: too few to say."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One row, in the column order of its files."""

    row_id: str
    messages: tuple[Message, ...]
    tools: str
    """JSON list of tool schemas: as a nested value, `datasets` would merge the keys of all rows into every schema."""
    config: Config
    trajectory_key: str
    eval_run_id: str
    problem_id: str
    race_id: str | None
    agent_version_id: str
    agent_family: str
    miner_hotkey: str | None
    kind: str
    category: str
    cluster_id: str
    outcome: str
    reason: str
    """`kept`; else the gate that the trajectory failed first, or why it was left out though it was kept."""
    structural_class: str
    trust: str
    reasoning_score: float | None
    teacher_model: str | None
    """Model named most often in the logged requests, as the agent logged it; None: no request was logged."""
    think: str
    """`verbatim`: every assistant text is in a logged reply; `reconstructed`: at least one is not; `none`: no text."""
    answer_ids: tuple[str, ...]
    gold_kind: GoldKind
    query_confirmed: bool
    """False: the user turn is what one agent family reported."""
    difficulty: float | None
    tokens: int
    """Of the rendered chat, tools included. 0 in rejected rows: nobody follows them, and a count takes milliseconds."""
    rules: str
    rules_digest: str
    prompt_source: str
    tools_source: str
    licence: str


def trajectory_key(eval_run_id: str, problem_id: str) -> str:
    """Name of a trajectory that holds on every machine."""
    return f"{eval_run_id}/{problem_id}"


def split_key(key: str) -> tuple[str, str]:
    """Run and problem of a `trajectory_key`; the problem is empty where the text is none."""
    eval_run_id, _, problem_id = key.partition("/")
    return eval_run_id, problem_id


def row_id(key: str) -> str:
    """Name of a row, from its trajectory's key. Sorting by it mixes runs, so files need no shuffle."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def build_row(
    trajectory: Trajectory,
    verdict: Verdict,
    problem: ProblemFacts,
    source: RowSource,
    count_tokens: Callable[[str], int],
    *,
    left_out: str | None = None,
) -> Row:
    """Build the row of one trajectory.

    Args:
        trajectory: what happened.
        verdict: what was decided on it.
        problem: what is known of its problem.
        source: where it comes from.
        count_tokens: exact tokens of a text.
        left_out: why it is not in the snapshot though it was kept; None: it is, or its verdict says why.
    """
    config = row_config(verdict) if left_out is None else Config.REJECTED
    messages = tuple(map(_masked, chat_messages(trajectory, verdict.calls, problem.query, _trainable(config))))
    tools = tool_set(trajectory.kind, trajectory.tool_calls)
    key = trajectory_key(source.eval_run_id, problem.problem_id)
    return Row(
        row_id=row_id(key),
        messages=messages,
        tools=tools_text(tools),
        config=config,
        trajectory_key=key,
        eval_run_id=source.eval_run_id,
        problem_id=problem.problem_id,
        race_id=source.race_id,
        agent_version_id=source.agent_version_id,
        agent_family=source.agent_family,
        miner_hotkey=source.miner_hotkey,
        kind=trajectory.kind.value,
        category=problem.category,
        cluster_id=source.cluster_id,
        outcome=verdict.outcome.value,
        reason=left_out or verdict.reason.value,
        structural_class=verdict.structural_class.value,
        trust=verdict.trust.value,
        reasoning_score=source.reasoning_score,
        teacher_model=teacher_model(trajectory),
        think=think_label(messages),
        answer_ids=tuple(clean_text(name) for name in verdict.answer),
        gold_kind=gold_kind(problem),
        query_confirmed=problem.query_confirmed,
        difficulty=source.difficulty,
        tokens=0 if config is Config.REJECTED else count_tokens(render_chat(messages, tools.schemas)),
        rules=source.rules,
        rules_digest=source.rules_digest,
        prompt_source=PROMPT_SOURCE[trajectory.kind],
        tools_source=tools.source,
        licence=LICENCE_UNKNOWN,
    )


def withheld(row: Row) -> Row:
    """The row without anything that somebody wrote; what it is and where it comes from stays."""
    return msgspec.structs.replace(
        row, messages=(), tools="[]", answer_ids=(), teacher_model=None, think="none", tokens=0
    )


def texts(row: Row) -> Iterator[str]:
    """Everything in a row that somebody wrote: words, arguments, results."""
    for message in row.messages:
        yield message.content
        for use in message.tool_calls or ():
            yield use.function.name
            yield use.function.arguments


def _masked(message: Message) -> Message:
    """The message without personal data; most have none, and are themselves."""
    content, uses = masked(message.content), message.tool_calls
    if uses is not None:
        uses = tuple(_masked_use(use) for use in uses)
    if content == message.content and uses == message.tool_calls:
        return message
    return msgspec.structs.replace(message, content=content, tool_calls=uses)


def _masked_use(use: ToolUse) -> ToolUse:
    arguments = masked(use.function.arguments)
    if arguments == use.function.arguments:
        return use
    return msgspec.structs.replace(use, function=msgspec.structs.replace(use.function, arguments=arguments))


def _trainable(config: Config) -> frozenset[Issuer]:
    return TRAINABLE.get(config, frozenset())


def tools_text(tools: ToolSet) -> str:
    """Tool schemas as the JSON text of a row's `tools` column."""
    return json.dumps(tools.schemas, ensure_ascii=False)


def teacher_model(trajectory: Trajectory) -> str | None:
    """The model named most often in the logged requests; ties go to the name that sorts first."""
    names = [clean_text(inference.model) for inference in trajectory.inferences if inference.model]
    return min(set(names), key=lambda name: (-names.count(name), name), default=None)


def think_label(messages: tuple[Message, ...]) -> str:
    """Whether the assistant's words are those of logged replies."""
    flags = {message.reconstructed for message in messages if message.reconstructed is not None}
    if True in flags:
        return "reconstructed"
    return "verbatim" if flags else "none"


def gold_kind(problem: ProblemFacts) -> GoldKind:
    """How well the problem's answer is known."""
    if problem.gold_ids:
        return GoldKind.GOLD_KNOWN
    return GoldKind.WINNER_KNOWN if problem.winner_ids else GoldKind.TEXT_ONLY


def row_line(row: Row) -> bytes:
    """The row as one line of JSON (no newline), columns in order: the line of its JSONL file, and what is digested."""
    return msgspec.json.encode(row)


def as_plain(row: Row) -> dict[str, Any]:
    """The row as plain lists, dicts and scalars."""
    plain: dict[str, Any] = msgspec.to_builtins(row)
    return plain
