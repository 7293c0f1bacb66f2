"""Trajectories with their payload bytes and evidence. Stores each payload once; parses nothing."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import orjson
import zstandard
from psycopg.types.json import Jsonb
from sqlalchemy import BigInteger, any_, bindparam, select
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.orm import Session

from service.domain.rows.records import split_key
from service.store.copying import copy_missing
from service.store.corpus import evidence
from service.store.models import Evidence, Payload, Trajectory

ZSTD_LEVEL = 3
"""Level 9 packs dialogues 5 % smaller and takes five times as long, which was a tenth of a harvest."""


class NewTrajectory(NamedTuple):
    """One fetched item, ready to be stored."""

    ledger_id: int
    eval_run_id: str
    item_key: str
    problem_id: str
    kind: str
    payload: bytes
    """Decompressed bytes exactly as the source served them."""
    evidence_digest: str
    evidence: dict[str, object]


def add(session: Session, items: Sequence[NewTrajectory]) -> list[int]:
    """Store fetched items with COPY. An item that is already stored adds nothing: its first bytes stand.

    Returns:
        The id of each item's trajectory, in order, new or not.
    """
    if not items:
        return []
    compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL)
    digests = [hashlib.sha256(item.payload).hexdigest() for item in items]
    payloads = {digest: item.payload for digest, item in zip(digests, items, strict=True)}
    copy_missing(
        session,
        Payload.__table__,  # type: ignore[arg-type]
        ("payload_sha256", "zstd", "size_bytes"),
        ((digest, compressor.compress(raw), len(raw)) for digest, raw in sorted(payloads.items())),
    )
    copy_missing(
        session,
        Trajectory.__table__,  # type: ignore[arg-type]
        ("ledger_id", "eval_run_id", "item_key", "problem_id", "payload_sha256", "kind"),
        (
            (i.ledger_id, i.eval_run_id, i.item_key, i.problem_id, digest, i.kind)
            for digest, i in zip(digests, items, strict=True)
        ),
    )
    ids = _ids(session, items)
    copy_missing(
        session,
        Evidence.__table__,  # type: ignore[arg-type]
        ("trajectory_id", "evidence_digest", "payload_sha256", "body"),
        (
            (number, i.evidence_digest, digest, Jsonb(i.evidence, orjson.dumps))
            for number, digest, i in zip(ids, digests, items, strict=True)
        ),
    )
    return ids


def revise(session: Session, trajectory_id: int, payload: bytes) -> bool:
    """Add the bytes that the source serves now as the next state of a trajectory; nothing when they are the present.

    What was stored before stays, and so does every reading of it.
    """
    digest = hashlib.sha256(payload).hexdigest()
    compressed = zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(payload)
    values = {"payload_sha256": digest, "zstd": compressed, "size_bytes": len(payload)}
    session.execute(insert(Payload).values(values).on_conflict_do_nothing(index_elements=["payload_sha256"]))
    first = session.scalar(select(Trajectory.payload_sha256).where(Trajectory.trajectory_id == trajectory_id))
    named = None if digest == first else digest
    return evidence.revise(
        session, trajectory_id, lambda present: msgspec.structs.replace(present, payload_sha256=named)
    )


def _ids(session: Session, items: Sequence[NewTrajectory]) -> list[int]:
    """The trajectory of each item; an item of the ledger has one at most."""
    wanted = bindparam("ledger_ids", [item.ledger_id for item in items], ARRAY(BigInteger))
    rows = session.execute(
        select(Trajectory.ledger_id, Trajectory.trajectory_id).where(Trajectory.ledger_id == any_(wanted))
    )
    ids = {ledger_id: trajectory_id for ledger_id, trajectory_id in rows}
    return [ids[item.ledger_id] for item in items]


def payload(session: Session, trajectory_id: int) -> bytes | None:
    """The present bytes of one trajectory as the source served them; None when there is no such trajectory."""
    compressed = session.scalar(
        select(Payload.zstd)
        .join(Evidence, Evidence.payload_sha256 == Payload.payload_sha256)
        .where(Evidence.trajectory_id == trajectory_id)
        .order_by(Evidence.seq.desc())
        .limit(1)
    )
    return None if compressed is None else zstandard.decompress(compressed)


def named(session: Session, key: str) -> int | None:
    """Id of the trajectory that has this key (`records.trajectory_key`); None when there is none, or more than one."""
    eval_run_id, problem_id = split_key(key)
    wanted = (Trajectory.eval_run_id == eval_run_id) & (Trajectory.problem_id == problem_id)
    found = session.scalars(select(Trajectory.trajectory_id).where(wanted).limit(2)).all()
    return found[0] if len(found) == 1 else None
