"""Late truth, standings, agent code, the validator's own side, the chain, imports."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0002"
down_revision: str | None = "0001"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "tombstones",
        sa.Column("tombstone_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("subject_id", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("is_lifted", sa.Boolean(), nullable=False),
        sa.Column("source", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["revision"], ["corpus_revisions.revision"], name=op.f("fk_tombstones_revision")),
        sa.PrimaryKeyConstraint("tombstone_id", name=op.f("pk_tombstones")),
    )
    op.create_index(op.f("ix_tombstones_revision"), "tombstones", ["revision"], unique=False)
    op.create_index("ix_tombstones_subject", "tombstones", ["subject", "subject_id", "tombstone_id"], unique=False)
    op.add_column("evidence", sa.Column("payload_sha256", sa.String(), nullable=True))
    op.execute(
        "UPDATE evidence SET payload_sha256 = trajectories.payload_sha256 FROM trajectories WHERE trajectories.trajectory_id = evidence.trajectory_id"
    )
    op.alter_column("evidence", "payload_sha256", nullable=False)
    op.create_foreign_key(
        op.f("fk_evidence_payload_sha256"), "evidence", "payloads", ["payload_sha256"], ["payload_sha256"]
    )
    op.add_column("harvest_ledger", sa.Column("etag", sa.String(), nullable=True))
    _open_items("'expected', 'changed', 'embargoed', 'failed'")


def downgrade() -> None:
    op.execute("UPDATE harvest_ledger SET state = 'fetched' WHERE state = 'changed'")
    _open_items("'expected', 'embargoed', 'failed'")
    op.drop_column("harvest_ledger", "etag")
    op.drop_constraint(op.f("fk_evidence_payload_sha256"), "evidence", type_="foreignkey")
    op.drop_column("evidence", "payload_sha256")
    op.drop_index("ix_tombstones_subject", table_name="tombstones")
    op.drop_index(op.f("ix_tombstones_revision"), table_name="tombstones")
    op.drop_table("tombstones")


def _open_items(states: str) -> None:
    op.drop_index("ix_harvest_ledger_open", table_name="harvest_ledger")
    where = sa.text(f"state IN ({states})")
    op.create_index("ix_harvest_ledger_open", "harvest_ledger", ["next_try_at"], postgresql_where=where)
