"""What the released code of agents was found to do, and which agents are one family by it. Holds no source.

Append-only but for the notes of what has been done already.
"""

from sqlalchemy import BigInteger, ForeignKey, LargeBinary, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from service.store.models.base import Base, JsonObject, RecordedAt, Serial


class AgentCodeScan(Base):
    """What one version of the scanner found in one source."""

    __tablename__ = "agent_code_scans"

    code_sha256: Mapped[str] = mapped_column(ForeignKey("agent_code_bytes.code_sha256"), primary_key=True)
    scanner: Mapped[str] = mapped_column(primary_key=True)
    body: Mapped[JsonObject]
    """A `domain.code_scan.CodeScan` as JSON: kinds and line numbers, never text."""
    sketch: Mapped[bytes] = mapped_column(LargeBinary)
    """Sorted shingle numbers, 8 bytes each: `domain.code_sketch`."""
    recorded_at: Mapped[RecordedAt]


class ScannedTrajectory(Base):
    """Which scan the evidence of a trajectory has taken in last."""

    __tablename__ = "scanned_trajectories"

    trajectory_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("trajectories.trajectory_id"), primary_key=True)
    code_sha256: Mapped[str]
    scanner: Mapped[str]


class AgentLink(Base):
    """Two families that are one, from a corpus revision on. `family_a < family_b`; never taken back."""

    __tablename__ = "agent_links"
    __table_args__ = (UniqueConstraint("family_a", "family_b", "rule_digest"),)

    link_id: Mapped[Serial]
    revision: Mapped[int] = mapped_column(BigInteger, ForeignKey("corpus_revisions.revision"), index=True)
    rule_digest: Mapped[str]
    """Digest of the `domain.families.FamilyRule` that drew it."""
    family_a: Mapped[str]
    family_b: Mapped[str]
    version_a: Mapped[str] = mapped_column(ForeignKey("agent_versions.agent_version_id"))
    version_b: Mapped[str] = mapped_column(ForeignKey("agent_versions.agent_version_id"))
    """The versions whose code is nearly the same."""
    similarity: Mapped[float]
    recorded_at: Mapped[RecordedAt]


class ComparedAgent(Base):
    """An agent version whose code has been compared with that of all others under one rule."""

    __tablename__ = "compared_agents"

    agent_version_id: Mapped[str] = mapped_column(ForeignKey("agent_versions.agent_version_id"), primary_key=True)
    rule_digest: Mapped[str] = mapped_column(primary_key=True)
    """Of the `domain.families.FamilyRule`."""
