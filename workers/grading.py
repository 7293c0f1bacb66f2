"""Grade released items by what the validator beside us wrote and served. Compares nothing itself; judges nothing.

What leaves is a record of the comparison in the item's evidence. Which verdict follows from it is the filter's matter.
"""

import hashlib
from datetime import UTC, datetime
from typing import Any

import msgspec
from sqlalchemy.orm import Session

from service.domain.attribution import grading, witness
from service.domain.attribution.evidence import Evidence
from service.domain.attribution.witness import Rival, Served, Span
from service.domain.trajectory import ExecutionKind
from service.domain.wire.envelopes import EnvelopeDefect, EnvelopeKind
from service.source.validator import envelopes
from service.source.validator.tail import Line
from service.store.corpus import evidence, trajectories
from service.store.engine import reading, transaction
from service.store.validator import gradings
from service.store.validator.gradings import DueItem, EnvelopeRow, RivalRow, Stretch
from service.store.validator.local import NewLine
from workers.context import Context

BATCH = 50
KINDS = ("envelope", "proxy")
"""Records that are ours; others in the evidence stay."""


def grade_due(context: Context) -> None:
    """Grade every item that was released and has something to be compared with."""
    while not context.stopping.is_set():
        with reading(context.engine) as session:
            items = gradings.due(session, BATCH)
        if not items:
            return
        for item in items:
            if context.stopping.is_set():
                return
            with transaction(context.engine) as session:
                grade(session, item, context.now())


def grade(session: Session, item: DueItem, now: datetime) -> None:
    """Compare one item, and make what that came to its evidence's next state."""
    payload = trajectories.payload(session, item.trajectory_id) or b""
    judgement = evidence.latest(session, [item.trajectory_id])[item.trajectory_id].judgement
    stored = gradings.envelopes(session, item)
    lines = [envelopes.read(_line(row), EnvelopeKind(row.kind)) for row in stored.rows]
    found = grading.grade(lines, payload, judgement, ExecutionKind(item.kind))
    served, stretch = _witnessed(session, item, payload)
    records = tuple(record for record in (found, served) if record is not None)

    def change(present: Evidence) -> Evidence:
        others = tuple(record for record in present.witness if record.get("kind") not in KINDS)
        return msgspec.structs.replace(present, witness=others + records)

    evidence.revise(session, item.trajectory_id, change)
    compared = hashlib.sha256(payload).hexdigest()
    gradings.mark_graded(session, item, stored.through, compared, stretch, now)


def _witnessed(session: Session, item: DueItem, payload: bytes) -> tuple[dict[str, Any] | None, Stretch | None]:
    """What the proxy's log says of a legacy item's requests, and the time over which they spread."""
    if ExecutionKind(item.kind) is not ExecutionKind.LEGACY:
        return None, None
    claimed = witness.claims(payload)
    stretches = [_stretch(span) for span in witness.neighbourhoods(claimed)]
    whole = (stretches[0][0], stretches[-1][1]) if stretches else None
    covered = gradings.covered(session)
    if covered is None or not claimed:
        return None, whole
    served = [_served(line) for line in gradings.lines_within(session, stretches)]
    rivals = [_rival(row) for row in gradings.rivals(session, item, stretches)]
    return witness.compare(claimed, served, _span(covered), rivals), whole


def _line(row: EnvelopeRow) -> Line:
    return Line(
        file_key="",
        ordinal=0,
        offset_bytes=0,
        content=row.content,
        size_bytes=row.size_bytes,
        sha256="",
        is_cut=EnvelopeDefect.CUT in row.defects,
        is_oversized=EnvelopeDefect.OVERSIZED in row.defects,
    )


def _served(line: NewLine) -> Served:
    return Served(
        at_ms=_milliseconds(line.at),
        resolution_ms=line.resolution_ms,
        method=line.method,
        path=line.path,
        arguments=line.arguments,
        status=line.status,
        body_bytes=line.body_bytes,
        request_bytes=line.request_bytes,
        seconds=line.seconds,
    )


def _rival(row: RivalRow) -> Rival:
    return Rival(_span((row.started_at, row.ended_at)), row.is_same_problem)


def _span(stretch: Stretch) -> Span:
    return Span(_milliseconds(stretch[0]), _milliseconds(stretch[1]))


def _stretch(span: Span) -> Stretch:
    return datetime.fromtimestamp(span.start_ms / 1000, UTC), datetime.fromtimestamp(span.end_ms / 1000, UTC)


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
