"""Code scans and agent families."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0003"
down_revision: str | None = "0002"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "agent_code_scans",
        sa.Column("code_sha256", sa.String(), nullable=False),
        sa.Column("scanner", sa.String(), nullable=False),
        sa.Column("body", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("sketch", sa.LargeBinary(), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["code_sha256"], ["agent_code_bytes.code_sha256"], name=op.f("fk_agent_code_scans_code_sha256")
        ),
        sa.PrimaryKeyConstraint("code_sha256", "scanner", name=op.f("pk_agent_code_scans")),
    )
    op.create_table(
        "agent_links",
        sa.Column("link_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("rule_digest", sa.String(), nullable=False),
        sa.Column("family_a", sa.String(), nullable=False),
        sa.Column("family_b", sa.String(), nullable=False),
        sa.Column("version_a", sa.String(), nullable=False),
        sa.Column("version_b", sa.String(), nullable=False),
        sa.Column("similarity", sa.Double(), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["revision"], ["corpus_revisions.revision"], name=op.f("fk_agent_links_revision")),
        sa.ForeignKeyConstraint(
            ["version_a"], ["agent_versions.agent_version_id"], name=op.f("fk_agent_links_version_a")
        ),
        sa.ForeignKeyConstraint(
            ["version_b"], ["agent_versions.agent_version_id"], name=op.f("fk_agent_links_version_b")
        ),
        sa.PrimaryKeyConstraint("link_id", name=op.f("pk_agent_links")),
        sa.UniqueConstraint(
            "family_a", "family_b", "rule_digest", name=op.f("uq_agent_links_family_a_family_b_rule_digest")
        ),
    )
    op.create_index(op.f("ix_agent_links_revision"), "agent_links", ["revision"], unique=False)
    op.create_table(
        "compared_agents",
        sa.Column("agent_version_id", sa.String(), nullable=False),
        sa.Column("rule_digest", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_version_id"], ["agent_versions.agent_version_id"], name=op.f("fk_compared_agents_agent_version_id")
        ),
        sa.PrimaryKeyConstraint("agent_version_id", "rule_digest", name=op.f("pk_compared_agents")),
    )
    op.create_table(
        "scanned_trajectories",
        sa.Column("trajectory_id", sa.BigInteger(), nullable=False),
        sa.Column("code_sha256", sa.String(), nullable=False),
        sa.Column("scanner", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["trajectory_id"], ["trajectories.trajectory_id"], name=op.f("fk_scanned_trajectories_trajectory_id")
        ),
        sa.PrimaryKeyConstraint("trajectory_id", name=op.f("pk_scanned_trajectories")),
    )


def downgrade() -> None:
    op.drop_table("scanned_trajectories")
    op.drop_table("compared_agents")
    op.drop_index(op.f("ix_agent_links_revision"), table_name="agent_links")
    op.drop_table("agent_links")
    op.drop_table("agent_code_scans")
