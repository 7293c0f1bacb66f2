"""States of the evidence around a trajectory: what is known now, and adding what has become known. Judges nothing.

Append-only: a new state is a new row, and the filter judges the newest.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec
from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import distinct_on, insert
from sqlalchemy.orm import Session

from service.domain.attribution import evidence
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


Change = Callable[[evidence.Evidence], evidence.Evidence]


def revise(session: Session, trajectory_id: int, change: Change) -> bool:
    """Add the next state of a trajectory's evidence; returns whether it differs from the present one.

    Two who learn of something at once wait for each other, so that neither's word is lost. A state that was there
    before is added again under a digest of its own, so that what was read at an earlier time stays as it was.

    Args:
        session: open transaction; the trajectory stays locked until it ends.
        trajectory_id: whose evidence.
        change: the next state, given the present one. Called once, under the lock.
    """
    return revise_all(session, {trajectory_id: change}) == 1


def revise_all(session: Session, changes: Mapping[int, Change]) -> int:
    """Do to each of many trajectories what `revise` does to one; returns how many have a new state."""
    trajectory_ids = list(changes)
    locked = (
        select(Trajectory.trajectory_id, Trajectory.payload_sha256)
        .where(Trajectory.trajectory_id.in_(trajectory_ids))
        .order_by(Trajectory.trajectory_id)  # all lock in one order, so that none waits for one who waits for it
        .with_for_update()
    )
    first_sha256 = {number: sha256 for number, sha256 in session.execute(locked)}
    had = defaultdict[int, set[str]](set)
    digests = select(Evidence.trajectory_id, Evidence.evidence_digest)
    for number, digest in session.execute(digests.where(Evidence.trajectory_id.in_(trajectory_ids))):
        had[number].add(digest)
    states = []
    for number, present in sorted(latest(session, trajectory_ids).items()):
        following = msgspec.structs.replace(changes[number](present), returns=present.returns)
        digest = following.digest
        if digest != present.digest:
            states.append(_row(number, present, *_unlike(following, digest, had[number]), first_sha256[number]))
    if states:
        session.execute(insert(Evidence), states)
    return len(states)


def _row(
    number: int, present: evidence.Evidence, following: evidence.Evidence, digest: str, first_sha256: str
) -> dict[str, Any]:
    return {
        "trajectory_id": number,
        "evidence_digest": digest,
        "payload_sha256": following.payload_sha256 or first_sha256,
        "body": msgspec.to_builtins(following),
        "is_late": (following.judgement, following.payload_sha256) != (present.judgement, present.payload_sha256),
    }


def _unlike(state: evidence.Evidence, digest: str, had: Collection[str]) -> tuple[evidence.Evidence, str]:
    """The state and its digest, counted on until that is none of those that are there."""
    while digest in had:
        state = msgspec.structs.replace(state, returns=state.returns + 1)
        digest = state.digest
    return state, digest


def late_known(session: Session) -> int:
    """Number of states that came of the source changing its judgement or its bytes."""
    return session.scalar(select(func.count()).select_from(Evidence).where(Evidence.is_late)) or 0
