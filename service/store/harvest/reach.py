"""How far the harvest reaches: problems with a kept trajectory, agent versions seen on enough problems. Only counts."""

from typing import NamedTuple

from sqlalchemy import Subquery, func, select
from sqlalchemy.orm import Session

from service.domain.filter.structure import Outcome
from service.store.corpus import verdicts
from service.store.corpus.tombstones import entombed
from service.store.harvest.ledger import OPEN_STATES
from service.store.models import EvaluationRun, LedgerItem, Trajectory


class Reach(NamedTuple):
    """Problems and agent versions of the ledger, each in one place."""

    problems: int
    problems_kept: int
    """With a kept trajectory that counts."""
    problems_open: int
    """Without one, but with items that may still be asked for."""
    problems_without: int
    """Without either."""
    versions: int
    versions_sampled: int
    """Judged on enough problems."""
    versions_begun: int
    """Judged on fewer, but on some."""
    versions_unseen: int


def reach(session: Session, rules_digest: str, sample_problems: int) -> Reach:
    """Count them.

    Args:
        session: reading transaction.
        rules_digest: rule set whose verdicts count.
        sample_problems: distinct problems on which a version is to be judged.
    """
    current = verdicts.current(rules_digest)
    kept, still_open = _kept_problems(current), _open_problems()
    problems = select(LedgerItem.problem_id).distinct().subquery()
    joined = problems.outerjoin(kept, kept.c.problem_id == problems.c.problem_id).outerjoin(
        still_open, still_open.c.problem_id == problems.c.problem_id
    )
    has_kept, has_open = kept.c.problem_id.is_not(None), still_open.c.problem_id.is_not(None)
    of_problems = session.execute(
        select(
            func.count(),
            func.count().filter(has_kept),
            func.count().filter(~has_kept, has_open),
            func.count().filter(~has_kept, ~has_open),
        ).select_from(joined)
    ).one()
    seen = _seen(current)
    versions = select(EvaluationRun.agent_version_id).join(LedgerItem).distinct().subquery()
    of_versions = session.execute(
        select(
            func.count(),
            func.count().filter(seen.c.problems >= sample_problems),
            func.count().filter(seen.c.problems < sample_problems),
            func.count().filter(seen.c.problems.is_(None)),
        ).select_from(versions.outerjoin(seen, seen.c.agent_version_id == versions.c.agent_version_id))
    ).one()
    return Reach(*of_problems, *of_versions)


def _kept_problems(current: Subquery) -> Subquery:
    graves = entombed()
    return (
        select(Trajectory.problem_id)
        .join(current, current.c.trajectory_id == Trajectory.trajectory_id)
        .join(graves, graves.c.trajectory_id == Trajectory.trajectory_id, isouter=True)
        .where(current.c.outcome == Outcome.KEPT.value, graves.c.trajectory_id.is_(None))
        .distinct()
        .subquery("kept_problems")
    )


def _open_problems() -> Subquery:
    return select(LedgerItem.problem_id).where(LedgerItem.state.in_(OPEN_STATES)).distinct().subquery("open_problems")


def _seen(current: Subquery) -> Subquery:
    return (
        select(EvaluationRun.agent_version_id, func.count(Trajectory.problem_id.distinct()).label("problems"))
        .join(Trajectory, Trajectory.eval_run_id == EvaluationRun.eval_run_id)
        .join(current, current.c.trajectory_id == Trajectory.trajectory_id)
        .group_by(EvaluationRun.agent_version_id)
        .subquery("seen")
    )
