"""Why a trajectory is not in a snapshot, from what was known when that was made. Chooses no row."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import cast, func, select
from sqlalchemy.dialects.postgresql import ARRAY, TEXT
from sqlalchemy.orm import Session

from service.domain.filter.structure import Outcome
from service.domain.rows.splits import config_of
from service.domain.rows.wanted import Offered, Unwanted, Wanted, day_of, unwanted
from service.store.corpus.tombstones import entombed
from service.store.corpus.verdicts import current
from service.store.models import (
    EvaluationRun,
    PoolMember,
    Problem,
    Snapshot,
    Trajectory,
)
from service.store.release import snapshots

UNKNOWN = "unknown"
"""The snapshot was not released here, so nobody here knows what was known."""
NOT_JUDGED = "not_judged_then"
"""It had no verdict at the snapshot's revision of the corpus: it came later."""
TOMBSTONED = "tombstoned"
SELECTION = "selection"
"""It was wanted and admissible by itself: trust, an unconfirmed query, duplicates, caps or balance left it out."""


def reasons(session: Session, snapshot_id: str, tokens: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], str]:
    """Why each of some trajectories is not in a snapshot.

    Args:
        session: open transaction.
        snapshot_id: the snapshot.
        tokens: run and problem of each trajectory, with the tokens of its row.

    Returns:
        By run and problem: a verdict's reason, `pool:NAME`, `tombstoned`, a wish of the spec (`Unwanted`), `selection`,
        `not_judged_then` or `unknown`.
    """
    origin = snapshots.origin(session, snapshot_id)
    if origin is None:
        return dict.fromkeys(tokens, UNKNOWN)
    spec = session.get_one(Snapshot, snapshot_id).spec
    wanted = msgspec.convert(spec["wanted"], Wanted) if "wanted" in spec else Wanted()
    rules_digest = spec["rules_digest"]
    disputed = snapshots.disputed(session, rules_digest, origin.revision) if wanted.unanimous else frozenset()
    told = {}
    for row in _rows(session, sorted(tokens), rules_digest, origin):
        key = row.eval_run_id, row.problem_id
        told[key] = _reason(row, spec, wanted, (row.agent_version_id, row.problem_id) in disputed, tokens[key])
    return {key: told.get(key, NOT_JUDGED) for key in tokens}


def _rows(
    session: Session, keys: Sequence[tuple[str, str]], rules_digest: str, origin: snapshots.Origin
) -> Sequence[Any]:
    verdict, dead = current(rules_digest, origin.revision), entombed(origin.revision)
    judgement = verdict.c.evidence["judgement"]
    columns = (cast([key[place] for key in keys], ARRAY(TEXT)) for place in (0, 1))
    wanted = func.unnest(*columns).table_valued("run", "problem").render_derived()
    return session.execute(
        select(
            *(Trajectory.eval_run_id, Trajectory.problem_id, Trajectory.kind, Problem.category),
            *(EvaluationRun.race_id, EvaluationRun.agent_version_id, EvaluationRun.completed_at),
            *(verdict.c.outcome, verdict.c.reason, verdict.c.structural_class, PoolMember.pool),
            dead.c.reason.label("tombstone"),
            judgement["reasoning_score"].as_float().label("reasoning_score"),
            func.coalesce(judgement["paid_reward"].as_float(), judgement["score"].as_float()).label("reward"),
        )
        .join(wanted, (wanted.c.run == Trajectory.eval_run_id) & (wanted.c.problem == Trajectory.problem_id))
        .join(verdict, verdict.c.trajectory_id == Trajectory.trajectory_id)
        .join(EvaluationRun, EvaluationRun.eval_run_id == Trajectory.eval_run_id)
        .join(Problem, Problem.problem_id == Trajectory.problem_id)
        .join(
            PoolMember,
            (PoolMember.problem_id == Trajectory.problem_id) & (PoolMember.assignment_id == origin.assignment_id),
            isouter=True,
        )
        .join(dead, dead.c.trajectory_id == Trajectory.trajectory_id, isouter=True)
    ).all()


def _reason(row: Any, spec: Mapping[str, Any], wanted: Wanted, is_disputed: bool, tokens: int) -> str:
    if row.outcome != Outcome.KEPT:
        return str(row.reason)
    if row.pool is None:
        return NOT_JUDGED
    if row.pool not in spec.get("splits", ("train", "eval")):
        return f"pool:{row.pool}"
    offered = Offered(
        config=config_of(row.outcome, row.structural_class),
        kind=row.kind,
        structural_class=row.structural_class,
        category=row.category,
        race_id=row.race_id,
        completed_on=day_of(row.completed_at),
        reward=row.reward,
        reasoning_score=row.reasoning_score,
        is_disputed=is_disputed,
    )
    refused = unwanted(offered, wanted)
    if refused is None and wanted.max_tokens is not None and tokens > wanted.max_tokens:
        refused = Unwanted.TOKENS
    if refused is not None:
        return refused.value
    return TOMBSTONED if row.tombstone is not None else SELECTION
