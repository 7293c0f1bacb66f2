"""Public benchmarks."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = '0004'
down_revision: str | None = '0003'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

NO_BENCHMARKS = "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"
NO_CONTACTS = "5b4f3897c7b93f746f3b30d92afe258f60a61b256e55ab089ef07abb43272b94"
"""Digests of no benchmark, and of nothing that touches one."""


def upgrade() -> None:
    op.create_table('benchmark_items',
    sa.Column('items_digest', sa.String(), nullable=False),
    sa.Column('line', sa.BigInteger(), nullable=False),
    sa.Column('query', sa.String(), nullable=True),
    sa.Column('gold_ids', postgresql.ARRAY(sa.TEXT()), nullable=False),
    sa.PrimaryKeyConstraint('items_digest', 'line', name=op.f('pk_benchmark_items'))
    )
    op.create_table('benchmark_registrations',
    sa.Column('registration_id', sa.BigInteger(), sa.Identity(always=False), nullable=False),
    sa.Column('name', sa.String(), nullable=False),
    sa.Column('policy', sa.String(), nullable=False),
    sa.Column('items_digest', sa.String(), nullable=False),
    sa.Column('items', sa.BigInteger(), nullable=False),
    sa.Column('registered_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.PrimaryKeyConstraint('registration_id', name=op.f('pk_benchmark_registrations'))
    )
    op.create_index(op.f('ix_benchmark_registrations_name_registration_id'), 'benchmark_registrations', ['name', 'registration_id'], unique=False)
    op.create_table('benchmark_contacts',
    sa.Column('clustering_id', sa.BigInteger(), nullable=False),
    sa.Column('problem_id', sa.String(), nullable=False),
    sa.Column('name', sa.String(), nullable=False),
    sa.Column('line', sa.BigInteger(), nullable=False),
    sa.Column('kind', sa.String(), nullable=False),
    sa.Column('evidence', sa.String(), nullable=False),
    sa.ForeignKeyConstraint(['clustering_id'], ['clusterings.clustering_id'], name=op.f('fk_benchmark_contacts_clustering_id')),
    sa.ForeignKeyConstraint(['problem_id'], ['problems.problem_id'], name=op.f('fk_benchmark_contacts_problem_id')),
    sa.PrimaryKeyConstraint('clustering_id', 'problem_id', 'name', 'line', 'kind', 'evidence', name=op.f('pk_benchmark_contacts'))
    )
    op.create_table('benchmark_members',
    sa.Column('clustering_id', sa.BigInteger(), nullable=False),
    sa.Column('name', sa.String(), nullable=False),
    sa.Column('line', sa.BigInteger(), nullable=False),
    sa.Column('cluster_id', sa.String(), nullable=False),
    sa.ForeignKeyConstraint(['clustering_id'], ['clusterings.clustering_id'], name=op.f('fk_benchmark_members_clustering_id')),
    sa.PrimaryKeyConstraint('clustering_id', 'name', 'line', name=op.f('pk_benchmark_members'))
    )
    op.create_table('clustering_benchmarks',
    sa.Column('clustering_id', sa.BigInteger(), nullable=False),
    sa.Column('registration_id', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['clustering_id'], ['clusterings.clustering_id'], name=op.f('fk_clustering_benchmarks_clustering_id')),
    sa.ForeignKeyConstraint(['registration_id'], ['benchmark_registrations.registration_id'], name=op.f('fk_clustering_benchmarks_registration_id')),
    sa.PrimaryKeyConstraint('clustering_id', 'registration_id', name=op.f('pk_clustering_benchmarks'))
    )
    # What was clustered so far was clustered without benchmarks.
    op.add_column('clusterings', sa.Column('benchmarks_digest', sa.String(), nullable=False, server_default=NO_BENCHMARKS))
    op.add_column('clusterings', sa.Column('contacts_digest', sa.String(), nullable=False, server_default=NO_CONTACTS))
    op.alter_column('clusterings', 'benchmarks_digest', server_default=None)
    op.alter_column('clusterings', 'contacts_digest', server_default=None)
    op.drop_constraint(op.f('uq_clusterings_revision_plan_digest_rules_digest'), 'clusterings', type_='unique')
    op.create_unique_constraint(op.f('uq_clusterings_basis'), 'clusterings', ['revision', 'plan_digest', 'rules_digest', 'benchmarks_digest'])
    op.add_column('snapshot_marks', sa.Column('contacts_digest', sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column('snapshot_marks', 'contacts_digest')
    op.drop_constraint(op.f('uq_clusterings_basis'), 'clusterings', type_='unique')
    op.create_unique_constraint(op.f('uq_clusterings_revision_plan_digest_rules_digest'), 'clusterings', ['revision', 'plan_digest', 'rules_digest'])
    op.drop_column('clusterings', 'contacts_digest')
    op.drop_column('clusterings', 'benchmarks_digest')
    op.drop_table('clustering_benchmarks')
    op.drop_table('benchmark_members')
    op.drop_table('benchmark_contacts')
    op.drop_index(op.f('ix_benchmark_registrations_name_registration_id'), table_name='benchmark_registrations')
    op.drop_table('benchmark_registrations')
    op.drop_table('benchmark_items')
