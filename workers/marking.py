"""Marks: write into the status of published snapshots what has become known of their rows. Changes no other file."""

import logging

from service.domain.rows.manifest import STATUS_NAME
from service.domain.rows.marks import MARKED, marked
from service.store.engine import reading, transaction
from service.store.release import benchmark_contacts, marks, takedown
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
        known, contacts = marks.late_known(session), marks.contacts_known(session)
        present = context.files.document(snapshot_id, STATUS_NAME)
        touching = benchmark_contacts.of_snapshot(session, snapshot_id)
        status = marked(present, marks.of_snapshot(session, snapshot_id), touching)
        status |= takedown.status_of(session, context.files, snapshot_id, present)
        is_new = status != present
        if is_new:
            context.files.set_status(snapshot_id, status)
        marks.record(session, snapshot_id, known, contacts)
    if is_new and status["state"] == MARKED:
        rows = {reason: found["rows"] for reason, found in status["marks"].items()}
        public = [found["benchmark"] for found in status["contaminated_by"]]
        log.warning("snapshot %s: rows SN15 has changed its word on: %s; touches: %s", snapshot_id, rows, public)
    return is_new
