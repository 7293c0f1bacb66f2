"""Snapshot requests."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = '0005'
down_revision: str | None = '0004'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table('snapshot_requests',
    sa.Column('request_id', sa.BigInteger(), sa.Identity(always=False), nullable=False),
    sa.Column('options', postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
    sa.Column('requested_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.PrimaryKeyConstraint('request_id', name=op.f('pk_snapshot_requests'))
    )
    op.create_table('snapshot_answers',
    sa.Column('request_id', sa.BigInteger(), nullable=False),
    sa.Column('release_id', sa.BigInteger(), nullable=True),
    sa.Column('refusal', postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
    sa.Column('answered_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.ForeignKeyConstraint(['release_id'], ['releases.release_id'], name=op.f('fk_snapshot_answers_release_id')),
    sa.ForeignKeyConstraint(['request_id'], ['snapshot_requests.request_id'], name=op.f('fk_snapshot_answers_request_id')),
    sa.PrimaryKeyConstraint('request_id', name=op.f('pk_snapshot_answers'))
    )
    op.add_column('releases', sa.Column('is_standing', sa.Boolean(), server_default='true', nullable=False))


def downgrade() -> None:
    op.drop_column('releases', 'is_standing')
    op.drop_table('snapshot_answers')
    op.drop_table('snapshot_requests')
