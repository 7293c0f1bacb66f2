"""States of the evidence around a trajectory: what is known now, and adding what has become known. Judges nothing.

Append-only: a new state is a new row, and the filter judges the newest.
"""

from collections.abc import Callable, Collection

import msgspec
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import distinct_on, insert
from sqlalchemy.orm import Session

from service.domain import provenance
from service.store.models import Evidence, Trajectory


def latest(session: Session, trajectory_ids: Collection[int]) -> dict[int, provenance.Evidence]:
    """The present evidence of each trajectory that has any."""
    rows = session.execute(
        select(Evidence.trajectory_id, Evidence.body)
        .where(Evidence.trajectory_id.in_(trajectory_ids))
        .ext(distinct_on(Evidence.trajectory_id))
        .order_by(Evidence.trajectory_id, Evidence.seq.desc())
    )
    return {trajectory_id: msgspec.convert(body, provenance.Evidence) for trajectory_id, body in rows}


def revise(session: Session, trajectory_id: int, change: Callable[[provenance.Evidence], provenance.Evidence]) -> bool:
    """Add the next state of a trajectory's evidence; returns whether it differs from the present one.

    Two who learn of something at once wait for each other, so that neither's word is lost.

    Args:
        session: open transaction; the trajectory stays locked until it ends.
        trajectory_id: whose evidence.
        change: the next state, given the present one. Called once, under the lock.
    """
    session.execute(select(Trajectory.trajectory_id).where(Trajectory.trajectory_id == trajectory_id).with_for_update())
    first_sha256 = session.scalar(select(Trajectory.payload_sha256).where(Trajectory.trajectory_id == trajectory_id))
    present = latest(session, [trajectory_id])[trajectory_id]
    following = change(present)
    if following.digest == present.digest:
        return False
    session.execute(
        insert(Evidence)
        .values(
            trajectory_id=trajectory_id,
            evidence_digest=following.digest,
            payload_sha256=following.payload_sha256 or first_sha256,
            body=msgspec.to_builtins(following),
        )
        .on_conflict_do_nothing(index_elements=["trajectory_id", "evidence_digest"])
    )
    return True
