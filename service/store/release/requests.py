"""Requests for snapshots with options of somebody's own, and the releases that answer them. Append-only."""

from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from service.store.models import Release, SnapshotAnswer, SnapshotRequest


class OpenRequest(NamedTuple):
    """A request that has no answer."""

    request_id: int
    options: dict[str, Any]


def add(session: Session, options: dict[str, Any]) -> int:
    """Record a request; returns its number."""
    request = SnapshotRequest(options=options)
    session.add(request)
    session.flush()
    return request.request_id


def open_requests(session: Session) -> list[OpenRequest]:
    """Requests without an answer, the oldest first."""
    rows = session.execute(
        select(SnapshotRequest.request_id, SnapshotRequest.options)
        .join(SnapshotAnswer, SnapshotAnswer.request_id == SnapshotRequest.request_id, isouter=True)
        .where(SnapshotAnswer.request_id.is_(None))
        .order_by(SnapshotRequest.request_id)
    )
    return [OpenRequest(*row) for row in rows]


def answer(session: Session, request_id: int, release_id: int | None, refusal: dict[str, Any] | None = None) -> None:
    """Answer a request with a release, or say why there can be none; the first answer stands."""
    statement = insert(SnapshotAnswer).values(request_id=request_id, release_id=release_id, refusal=refusal)
    session.execute(statement.on_conflict_do_nothing(index_elements=["request_id"]))


class Answer(NamedTuple):
    """What became of a request: a snapshot, or the error code and message of a refusal."""

    snapshot_id: str | None
    refusal: dict[str, Any] | None


def answer_to(session: Session, request_id: int) -> Answer | None:
    """What became of a request; None while it is open."""
    row = session.execute(
        select(Release.snapshot_id, func.coalesce(SnapshotAnswer.refusal, Release.refusal))
        .select_from(SnapshotAnswer)
        .join(Release, SnapshotAnswer.release_id == Release.release_id, isouter=True)
        .where(SnapshotAnswer.request_id == request_id)
    ).one_or_none()
    return None if row is None else Answer(*row)
