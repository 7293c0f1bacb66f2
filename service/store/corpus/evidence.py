"""States of the evidence around a trajectory: what is known now, and adding what has become known. Judges nothing.

Append-only: a new state is a new row, and the filter judges the newest.
"""

from collections.abc import Callable, Collection
from itertools import count

import msgspec
from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import distinct_on, insert
from sqlalchemy.orm import Session

from service.domain import evidence
from service.store.models import Evidence, Trajectory


def latest(session: Session, trajectory_ids: Collection[int]) -> dict[int, evidence.Evidence]:
    """The present evidence of each trajectory that has any."""
    rows = session.execute(
        select(Evidence.trajectory_id, Evidence.body)
        .where(Evidence.trajectory_id.in_(trajectory_ids))
        .ext(distinct_on(Evidence.trajectory_id))
        .order_by(Evidence.trajectory_id, Evidence.seq.desc())
    )
    return {trajectory_id: msgspec.convert(body, evidence.Evidence) for trajectory_id, body in rows}


def revise(session: Session, trajectory_id: int, change: Callable[[evidence.Evidence], evidence.Evidence]) -> bool:
    """Add the next state of a trajectory's evidence; returns whether it differs from the present one.

    Two who learn of something at once wait for each other, so that neither's word is lost. A state that was there
    before is added again under a digest of its own, so that what was read at an earlier time stays as it was.

    Args:
        session: open transaction; the trajectory stays locked until it ends.
        trajectory_id: whose evidence.
        change: the next state, given the present one. Called once, under the lock.
    """
    locked = select(Trajectory.payload_sha256).where(Trajectory.trajectory_id == trajectory_id).with_for_update()
    first_sha256 = session.scalar(locked)
    present = latest(session, [trajectory_id])[trajectory_id]
    following = msgspec.structs.replace(change(present), returns=present.returns)
    if following.digest == present.digest:
        return False
    had = select(Evidence.evidence_digest).where(Evidence.trajectory_id == trajectory_id)
    following = _unlike(following, set(session.scalars(had)))
    session.execute(
        insert(Evidence).values(
            trajectory_id=trajectory_id,
            evidence_digest=following.digest,
            payload_sha256=following.payload_sha256 or first_sha256,
            body=msgspec.to_builtins(following),
            is_late=(following.judgement, following.payload_sha256) != (present.judgement, present.payload_sha256),
        )
    )
    return True


def _unlike(state: evidence.Evidence, digests: Collection[str]) -> evidence.Evidence:
    """The state, counted on until its digest is none of those that are there."""
    for returns in count():
        state = msgspec.structs.replace(state, returns=returns)
        if state.digest not in digests:
            return state
    raise AssertionError("count() has no end")


def late_known(session: Session) -> int:
    """Number of states that came of the source changing its judgement or its bytes."""
    return session.scalar(select(func.count()).select_from(Evidence).where(Evidence.is_late)) or 0
