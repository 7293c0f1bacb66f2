"""Links between families of agents, as rows of corpus revisions, so that a sealed one has the same families for ever.

Draws no link itself. A link is never taken back: families only grow together from one revision to the next.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from sqlalchemy import exists, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from service.domain.agent_code.sketch import Sketch
from service.domain.leaks.families import CodedAgent, Link, joined
from service.store.corpus.revisions import open_revision
from service.store.models import AgentCode, AgentCodeScan, AgentLink, AgentVersion, ComparedAgent

STORED = np.dtype("<u8")
"""How the numbers of a sketch are stored."""


def uncompared(session: Session, scanner: str, rule_digest: str) -> Sequence[str]:
    """Agent versions whose code was scanned and not yet compared with that of the others."""
    done = exists().where(
        ComparedAgent.agent_version_id == AgentCode.agent_version_id, ComparedAgent.rule_digest == rule_digest
    )
    return session.scalars(
        select(AgentCode.agent_version_id)
        .join(AgentCodeScan, AgentCodeScan.code_sha256 == AgentCode.code_sha256)
        .where(AgentCodeScan.scanner == scanner, ~done)
        .order_by(AgentCode.agent_version_id)
    ).all()


def coded(session: Session, scanner: str) -> list[CodedAgent]:
    """Every agent version whose code was scanned, in order of id."""
    rows = session.execute(
        select(AgentVersion.agent_version_id, AgentVersion.family, AgentCode.code_sha256)
        .join(AgentCode, AgentCode.agent_version_id == AgentVersion.agent_version_id)
        .join(AgentCodeScan, AgentCodeScan.code_sha256 == AgentCode.code_sha256)
        .where(AgentCodeScan.scanner == scanner)
        .order_by(AgentVersion.agent_version_id)
    )
    return [CodedAgent(version, family, str(code_sha256)) for version, family, code_sha256 in rows]


def sketches(session: Session, scanner: str) -> dict[str, Sketch]:
    """The sketch of every scanned source, by its sha256."""
    rows = session.execute(
        select(AgentCodeScan.code_sha256, AgentCodeScan.sketch)
        .where(AgentCodeScan.scanner == scanner)
        .order_by(AgentCodeScan.code_sha256)
    )
    return {code_sha256: np.frombuffer(sketch, STORED).astype(np.uint64) for code_sha256, sketch in rows}


def add(session: Session, rule_digest: str, links: Iterable[Link], compared: Iterable[str]) -> None:
    """Store links in the open corpus revision, and that the code of some versions has been compared."""
    values = [{**link._asdict(), "rule_digest": rule_digest} for link in links]
    if values:
        revision = open_revision(session)
        rows = [{**value, "revision": revision} for value in values]
        session.execute(insert(AgentLink).on_conflict_do_nothing(), rows)
    done = [{"agent_version_id": version, "rule_digest": rule_digest} for version in compared]
    if done:
        session.execute(insert(ComparedAgent).on_conflict_do_nothing(), done)


def links(session: Session, rule_digest: str, revision: int | None = None) -> list[tuple[str, str]]:
    """Pairs of families that are one at a sealed revision; None: by all that is committed."""
    statement = select(AgentLink.family_a, AgentLink.family_b).where(AgentLink.rule_digest == rule_digest)
    if revision is not None:
        statement = statement.where(AgentLink.revision <= revision)
    return [(a, b) for a, b in session.execute(statement.order_by(AgentLink.family_a, AgentLink.family_b))]


def merged(session: Session, rule_digest: str, revision: int | None = None) -> Mapping[str, str]:
    """What the linked families are called at a sealed revision; a family that is not here is its own."""
    return joined((), links(session, rule_digest, revision))
