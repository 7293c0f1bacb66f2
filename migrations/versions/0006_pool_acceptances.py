"""Accepted pools."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = '0006'
down_revision: str | None = '0005'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table('pool_acceptances',
    sa.Column('assignment_id', sa.BigInteger(), nullable=False),
    sa.Column('reason', sa.String(), nullable=False),
    sa.Column('accepted_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.ForeignKeyConstraint(['assignment_id'], ['pool_assignments.assignment_id'], name=op.f('fk_pool_acceptances_assignment_id')),
    sa.PrimaryKeyConstraint('assignment_id', name=op.f('pk_pool_acceptances'))
    )
    op.add_column('pool_assignments', sa.Column('is_accepted', sa.Boolean(), server_default='false', nullable=False))
    op.drop_constraint(op.f('uq_pool_assignments_clustering_id_plan_digest'), 'pool_assignments', type_='unique')
    op.create_unique_constraint(op.f('uq_pool_assignments_clustering_id_plan_digest_is_accepted'), 'pool_assignments', ['clustering_id', 'plan_digest', 'is_accepted'])


def downgrade() -> None:
    op.drop_constraint(op.f('uq_pool_assignments_clustering_id_plan_digest_is_accepted'), 'pool_assignments', type_='unique')
    op.create_unique_constraint(op.f('uq_pool_assignments_clustering_id_plan_digest'), 'pool_assignments', ['clustering_id', 'plan_digest'])
    op.drop_column('pool_assignments', 'is_accepted')
    op.drop_table('pool_acceptances')
