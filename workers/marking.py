"""Marks: write into the status of published snapshots what has become known of their rows. Changes no other file."""

import logging

from service.domain.rows.manifest import STATUS_NAME
from service.domain.rows.marks import MARKED, marked
from service.store.engine import reading, transaction
from service.store.release import marks
from workers.context import Context

log = logging.getLogger(__name__)


def mark(context: Context) -> list[str]:
    """Bring the status of every snapshot up to what is known; returns the ids of those that changed.

    A snapshot whose files are not on this machine is left to a worker that has them.
    """
    with reading(context.engine) as session:
        due = marks.due(session)
    here = set(context.files.ids()) if due else set()
    return [snapshot_id for snapshot_id in due if snapshot_id in here and _mark(snapshot_id, context)]


def _mark(snapshot_id: str, context: Context) -> bool:
    """Mark one snapshot while no one else does, so that the last to write knows most; whether its status changed."""
    with transaction(context.engine) as session:
        marks.lock(session, snapshot_id)
        known = marks.late_known(session)
        present = context.files.document(snapshot_id, STATUS_NAME)
        status = marked(present, marks.of_snapshot(session, snapshot_id))
        is_new = status != present
        if is_new:
            context.files.set_status(snapshot_id, status)
        marks.record(session, snapshot_id, known)
    if is_new and status["state"] == MARKED:
        rows = {reason: found["rows"] for reason, found in status["marks"].items()}
        log.warning("snapshot %s holds rows that SN15 has changed its word on: %s", snapshot_id, rows)
    return is_new
