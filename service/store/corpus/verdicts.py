"""Verdicts: what is still to be judged, and what has been judged. Applies no rule itself."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import zstandard
from psycopg.types.json import Jsonb
from sqlalchemy import TEXT, BigInteger, Subquery, any_, bindparam, cast, exists, select
from sqlalchemy.dialects.postgresql import ARRAY, distinct_on
from sqlalchemy.orm import Session, aliased

from service.store.copying import copy_missing
from service.store.corpus.revisions import open_revision
from service.store.models import Evidence, Payload, Trajectory, Verdict


class Unjudged(NamedTuple):
    """One trajectory with the evidence a verdict is wanted for."""

    trajectory_id: int
    kind: str
    payload: bytes
    evidence_digest: str
    evidence: str
    """As JSON."""


class NewVerdict(NamedTuple):
    """One verdict as it is stored; see `models.Verdict` for the fields."""

    trajectory_id: int
    evidence_digest: str
    outcome: str
    reason: str
    structural_class: str
    trust: str
    calls: Sequence[Any]
    """Anything that is spelled as `CallProvenance` is."""
    signals: dict[str, Any]
    answer: list[str]
    reported_query: str | None


def _unjudged_evidence(rules_digest: str) -> Any:
    """Evidence rows that are the latest of their trajectory and have no verdict under the rules."""
    later = aliased(Evidence)
    return (
        ~exists().where(
            Verdict.trajectory_id == Evidence.trajectory_id,
            Verdict.evidence_digest == Evidence.evidence_digest,
            Verdict.rules_digest == rules_digest,
        ),
        ~exists().where(later.trajectory_id == Evidence.trajectory_id, later.seq > Evidence.seq),
    )


def unjudged(session: Session, rules_digest: str, limit: int) -> Sequence[int]:
    """Ids of trajectories whose latest evidence has no verdict under these rules."""
    return session.scalars(
        select(Evidence.trajectory_id)
        .where(*_unjudged_evidence(rules_digest))
        .order_by(Evidence.trajectory_id)
        .limit(limit)
    ).all()


def load_unjudged(session: Session, trajectory_ids: Collection[int], rules_digest: str) -> Iterator[Unjudged]:
    """Payload and evidence of those of `trajectory_ids` that are still unjudged, unpacked one at a time."""
    wanted = bindparam("trajectory_ids", list(trajectory_ids), ARRAY(BigInteger))
    rows = session.execute(
        select(
            *(Trajectory.trajectory_id, Trajectory.kind, Payload.zstd, Evidence.evidence_digest),
            cast(Evidence.body, TEXT),
        )
        .join(Evidence, Evidence.trajectory_id == Trajectory.trajectory_id)
        .join(Payload, Payload.payload_sha256 == Evidence.payload_sha256)
        .where(Trajectory.trajectory_id == any_(wanted), *_unjudged_evidence(rules_digest))
        .order_by(Trajectory.trajectory_id)
    )
    decompress = zstandard.ZstdDecompressor().decompress
    for trajectory_id, kind, zstd, evidence_digest, body in rows:
        yield Unjudged(trajectory_id, kind, decompress(zstd), evidence_digest, body)


def add(session: Session, rules_digest: str, verdicts: Iterable[NewVerdict]) -> int:
    """Store verdicts in the open corpus revision. One that is already there adds nothing; returns the new ones."""
    revision = open_revision(session)
    return copy_missing(
        session,
        Verdict.__table__,  # type: ignore[arg-type]
        (
            *("rules_digest", "revision", "trajectory_id", "evidence_digest", "outcome", "reason"),
            *("structural_class", "trust", "calls", "signals", "answer", "reported_query"),
        ),
        (
            (rules_digest, revision, *v[:6], _json(v.calls), _json(v.signals), v.answer, v.reported_query)
            for v in verdicts
        ),
    )


def _json(value: Any) -> Jsonb:
    return Jsonb(value, msgspec.json.encode)


def current(rules_digest: str, revision: int | None = None) -> Subquery:
    """Selectable of the verdict that stands for each trajectory: the one on its latest judged evidence.

    Args:
        rules_digest: rule set whose verdicts count.
        revision: sealed corpus revision to read at; None reads everything committed.
    """
    statement = (
        select(Verdict, Evidence.body.label("evidence"), Evidence.payload_sha256)
        .join(
            Evidence,
            (Evidence.trajectory_id == Verdict.trajectory_id) & (Evidence.evidence_digest == Verdict.evidence_digest),
        )
        .where(Verdict.rules_digest == rules_digest)
        .ext(distinct_on(Verdict.trajectory_id))
        .order_by(Verdict.trajectory_id, Evidence.seq.desc())
    )
    if revision is not None:
        statement = statement.where(Verdict.revision <= revision)
    return statement.subquery("current_verdicts")
