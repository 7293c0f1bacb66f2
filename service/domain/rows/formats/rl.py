"""Prompts for reinforcement learning, one a problem, and the answers of train problems in lines of their own.

A prompt never holds its answer, and the answers of held-out problems are in no line: whoever trains on the prompts of
eval by mistake has no reward for them.
"""

from typing import Any

from service.domain.leaks.leakage import ProblemFacts
from service.domain.rows.formats.turns import as_chat
from service.domain.rows.records import Row

GIVEN, WINNER = "given", "winner"


def prompt(row: Row) -> dict[str, Any]:
    """The opening of a row's chat, up to the agent's first turn."""
    opening = []
    for message in row.messages:
        if message.role not in ("system", "user"):
            break
        opening.append(as_chat(message))
    return {
        "prompt": opening,
        "tools": row.tools,
        "problem_id": row.problem_id,
        "cluster_id": row.cluster_id,
        "kind": row.kind,
        "category": row.category,
        "difficulty": row.difficulty,
        "gold_kind": row.gold_kind.value,
        "query_confirmed": row.query_confirmed,
        "prompt_source": row.prompt_source,
        "tools_source": row.tools_source,
    }


def gold(problem: ProblemFacts) -> dict[str, Any] | None:
    """The right products of a problem: as SN15 gives them, else those most winning families agree on; None: unknown."""
    ids = problem.gold_ids or problem.winner_ids
    if not ids:
        return None
    return {
        "problem_id": problem.problem_id,
        "gold_kind": GIVEN if problem.gold_ids else WINNER,
        "gold_ids": sorted(ids),
    }
