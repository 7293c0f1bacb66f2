"""First schema: harvest, corpus, leak clusters, releases."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0001"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "agent_versions",
        sa.Column("agent_version_id", sa.String(), nullable=False),
        sa.Column("agent_name", sa.String(), nullable=False),
        sa.Column("miner_hotkey", sa.String(), nullable=True),
        sa.Column("version_number", sa.Integer(), nullable=True),
        sa.Column("family", sa.String(), nullable=False),
        sa.Column("source", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.PrimaryKeyConstraint("agent_version_id", name=op.f("pk_agent_versions")),
    )
    op.create_table(
        "corpus_revisions",
        sa.Column("revision", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("sealed_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("revision", name=op.f("pk_corpus_revisions")),
    )
    op.create_index(
        "uq_corpus_revisions_open",
        "corpus_revisions",
        [sa.literal_column("(sealed_at IS NULL)")],
        unique=True,
        postgresql_where=sa.text("sealed_at IS NULL"),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
    )
    op.create_table(
        "origins",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_origins")),
    )
    op.create_table(
        "payloads",
        sa.Column("payload_sha256", sa.String(), nullable=False),
        sa.Column("zstd", sa.LargeBinary(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("payload_sha256", name=op.f("pk_payloads")),
    )
    op.create_table(
        "policies",
        sa.Column("policy_digest", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("body", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("policy_digest", name=op.f("pk_policies")),
    )
    op.create_table(
        "problems",
        sa.Column("problem_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("category", sa.String(), nullable=False),
        sa.Column("suite_id", sa.Integer(), nullable=True),
        sa.Column("query", sa.String(), nullable=True),
        sa.Column("reward", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("voucher", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.PrimaryKeyConstraint("problem_id", name=op.f("pk_problems")),
    )
    op.create_table(
        "races",
        sa.Column("race_id", sa.String(), nullable=False),
        sa.Column("suite_id", sa.Integer(), nullable=True),
        sa.Column("race_number", sa.Integer(), nullable=True),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("is_complete", sa.Boolean(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("source", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("walked_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("race_id", name=op.f("pk_races")),
    )
    op.create_table(
        "snapshots",
        sa.Column("snapshot_id", sa.String(), nullable=False),
        sa.Column("spec", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("manifest", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("audit", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("train_rows", sa.BigInteger(), nullable=False),
        sa.Column("eval_rows", sa.BigInteger(), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("snapshot_id", name=op.f("pk_snapshots")),
    )
    op.create_table(
        "walks",
        sa.Column("walk_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("races", sa.Integer(), server_default="0", nullable=False),
        sa.Column("runs", sa.Integer(), server_default="0", nullable=False),
        sa.Column("items", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column(
            "oddities",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("walk_id", name=op.f("pk_walks")),
    )
    op.create_table(
        "clusterings",
        sa.Column("clustering_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("plan_digest", sa.String(), nullable=False),
        sa.Column("rules_digest", sa.String(), nullable=False),
        sa.Column("facts_known", sa.BigInteger(), nullable=False),
        sa.Column("clusters", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["plan_digest"], ["policies.policy_digest"], name=op.f("fk_clusterings_plan_digest")),
        sa.ForeignKeyConstraint(["revision"], ["corpus_revisions.revision"], name=op.f("fk_clusterings_revision")),
        sa.ForeignKeyConstraint(["rules_digest"], ["policies.policy_digest"], name=op.f("fk_clusterings_rules_digest")),
        sa.PrimaryKeyConstraint("clustering_id", name=op.f("pk_clusterings")),
        sa.UniqueConstraint(
            "revision", "plan_digest", "rules_digest", name=op.f("uq_clusterings_revision_plan_digest_rules_digest")
        ),
    )
    op.create_table(
        "evaluation_runs",
        sa.Column("eval_run_id", sa.String(), nullable=False),
        sa.Column("agent_version_id", sa.String(), nullable=False),
        sa.Column("race_id", sa.String(), nullable=True),
        sa.Column("suite_id", sa.Integer(), nullable=True),
        sa.Column("validator_hotkey", sa.String(), nullable=True),
        sa.Column("phase", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("is_over", sa.Boolean(), nullable=False),
        sa.Column("counts", sa.Boolean(), nullable=False),
        sa.Column("invalidated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("source", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("listed_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["agent_version_id"], ["agent_versions.agent_version_id"], name=op.f("fk_evaluation_runs_agent_version_id")
        ),
        sa.ForeignKeyConstraint(["race_id"], ["races.race_id"], name=op.f("fk_evaluation_runs_race_id")),
        sa.PrimaryKeyConstraint("eval_run_id", name=op.f("pk_evaluation_runs")),
    )
    op.create_index(op.f("ix_evaluation_runs_agent_version_id"), "evaluation_runs", ["agent_version_id"], unique=False)
    op.create_index(op.f("ix_evaluation_runs_race_id"), "evaluation_runs", ["race_id"], unique=False)
    op.create_table(
        "jobs",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("snapshot_id", sa.String(), nullable=False),
        sa.Column("spec", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("result", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["snapshot_id"], ["snapshots.snapshot_id"], name=op.f("fk_jobs_snapshot_id")),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_jobs")),
    )
    op.create_index(op.f("ix_jobs_state"), "jobs", ["state"], unique=False)
    op.create_table(
        "cluster_members",
        sa.Column("clustering_id", sa.BigInteger(), nullable=False),
        sa.Column("problem_id", sa.String(), nullable=False),
        sa.Column("cluster_id", sa.String(), nullable=False),
        sa.Column("query", sa.String(), nullable=True),
        sa.Column("query_confirmed", sa.Boolean(), nullable=False),
        sa.Column("gold_kind", sa.String(), nullable=False),
        sa.Column("winner_ids", postgresql.ARRAY(sa.TEXT()), nullable=False),
        sa.Column("gold_ids", postgresql.ARRAY(sa.TEXT()), nullable=False),
        sa.ForeignKeyConstraint(
            ["clustering_id"], ["clusterings.clustering_id"], name=op.f("fk_cluster_members_clustering_id")
        ),
        sa.ForeignKeyConstraint(["problem_id"], ["problems.problem_id"], name=op.f("fk_cluster_members_problem_id")),
        sa.PrimaryKeyConstraint("clustering_id", "problem_id", name=op.f("pk_cluster_members")),
    )
    op.create_index(op.f("ix_cluster_members_cluster_id"), "cluster_members", ["cluster_id"], unique=False)
    op.create_table(
        "harvest_ledger",
        sa.Column("ledger_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("eval_run_id", sa.String(), nullable=False),
        sa.Column("item_key", sa.String(), nullable=False),
        sa.Column("problem_id", sa.String(), nullable=False),
        sa.Column("episode_result_id", sa.String(), nullable=True),
        sa.Column("judgement", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column(
            "state",
            sa.Enum(
                "expected", "fetched", "embargoed", "failed", "gone", name="ledgerstate", native_enum=False, length=16
            ),
            nullable=False,
        ),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_try_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("claimed_by", sa.String(), nullable=True),
        sa.Column("listed_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("fetched_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["eval_run_id"], ["evaluation_runs.eval_run_id"], name=op.f("fk_harvest_ledger_eval_run_id")
        ),
        sa.ForeignKeyConstraint(["problem_id"], ["problems.problem_id"], name=op.f("fk_harvest_ledger_problem_id")),
        sa.PrimaryKeyConstraint("ledger_id", name=op.f("pk_harvest_ledger")),
        sa.UniqueConstraint("eval_run_id", "item_key", name=op.f("uq_harvest_ledger_eval_run_id_item_key")),
    )
    op.create_index(
        "ix_harvest_ledger_open",
        "harvest_ledger",
        ["next_try_at"],
        unique=False,
        postgresql_where=sa.text("state IN ('expected', 'embargoed', 'failed')"),
    )
    op.create_index(op.f("ix_harvest_ledger_problem_id"), "harvest_ledger", ["problem_id"], unique=False)
    op.create_table(
        "leak_edges",
        sa.Column("clustering_id", sa.BigInteger(), nullable=False),
        sa.Column("problem_a", sa.String(), nullable=False),
        sa.Column("problem_b", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("evidence", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["clustering_id"], ["clusterings.clustering_id"], name=op.f("fk_leak_edges_clustering_id")
        ),
        sa.ForeignKeyConstraint(["problem_a"], ["problems.problem_id"], name=op.f("fk_leak_edges_problem_a")),
        sa.ForeignKeyConstraint(["problem_b"], ["problems.problem_id"], name=op.f("fk_leak_edges_problem_b")),
        sa.PrimaryKeyConstraint(
            "clustering_id", "problem_a", "problem_b", "kind", "evidence", name=op.f("pk_leak_edges")
        ),
    )
    op.create_table(
        "pool_assignments",
        sa.Column("assignment_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("clustering_id", sa.BigInteger(), nullable=False),
        sa.Column("plan_digest", sa.String(), nullable=False),
        sa.Column("refusal", sa.String(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["clustering_id"], ["clusterings.clustering_id"], name=op.f("fk_pool_assignments_clustering_id")
        ),
        sa.ForeignKeyConstraint(
            ["plan_digest"], ["policies.policy_digest"], name=op.f("fk_pool_assignments_plan_digest")
        ),
        sa.PrimaryKeyConstraint("assignment_id", name=op.f("pk_pool_assignments")),
        sa.UniqueConstraint("clustering_id", "plan_digest", name=op.f("uq_pool_assignments_clustering_id_plan_digest")),
    )
    op.create_table(
        "pool_members",
        sa.Column("assignment_id", sa.BigInteger(), nullable=False),
        sa.Column("problem_id", sa.String(), nullable=False),
        sa.Column("draw", sa.String(), nullable=False),
        sa.Column("pool", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["assignment_id"], ["pool_assignments.assignment_id"], name=op.f("fk_pool_members_assignment_id")
        ),
        sa.ForeignKeyConstraint(["problem_id"], ["problems.problem_id"], name=op.f("fk_pool_members_problem_id")),
        sa.PrimaryKeyConstraint("assignment_id", "problem_id", name=op.f("pk_pool_members")),
    )
    op.create_table(
        "releases",
        sa.Column("release_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("assignment_id", sa.BigInteger(), nullable=False),
        sa.Column("spec_digest", sa.String(), nullable=False),
        sa.Column("snapshot_id", sa.String(), nullable=True),
        sa.Column("refusal", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("decided_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["assignment_id"], ["pool_assignments.assignment_id"], name=op.f("fk_releases_assignment_id")
        ),
        sa.ForeignKeyConstraint(["snapshot_id"], ["snapshots.snapshot_id"], name=op.f("fk_releases_snapshot_id")),
        sa.PrimaryKeyConstraint("release_id", name=op.f("pk_releases")),
        sa.UniqueConstraint("assignment_id", "spec_digest", name=op.f("uq_releases_assignment_id_spec_digest")),
    )
    op.create_table(
        "trajectories",
        sa.Column("trajectory_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("ledger_id", sa.BigInteger(), nullable=False),
        sa.Column("eval_run_id", sa.String(), nullable=False),
        sa.Column("item_key", sa.String(), nullable=False),
        sa.Column("problem_id", sa.String(), nullable=False),
        sa.Column("payload_sha256", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("harvested_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["eval_run_id"], ["evaluation_runs.eval_run_id"], name=op.f("fk_trajectories_eval_run_id")
        ),
        sa.ForeignKeyConstraint(["ledger_id"], ["harvest_ledger.ledger_id"], name=op.f("fk_trajectories_ledger_id")),
        sa.ForeignKeyConstraint(
            ["payload_sha256"], ["payloads.payload_sha256"], name=op.f("fk_trajectories_payload_sha256")
        ),
        sa.ForeignKeyConstraint(["problem_id"], ["problems.problem_id"], name=op.f("fk_trajectories_problem_id")),
        sa.PrimaryKeyConstraint("trajectory_id", name=op.f("pk_trajectories")),
        sa.UniqueConstraint("eval_run_id", "item_key", name=op.f("uq_trajectories_eval_run_id_item_key")),
    )
    op.create_index(op.f("ix_trajectories_ledger_id"), "trajectories", ["ledger_id"], unique=False)
    op.create_index(op.f("ix_trajectories_payload_sha256"), "trajectories", ["payload_sha256"], unique=False)
    op.create_index(op.f("ix_trajectories_problem_id"), "trajectories", ["problem_id"], unique=False)
    op.create_table(
        "evidence",
        sa.Column("trajectory_id", sa.BigInteger(), nullable=False),
        sa.Column("evidence_digest", sa.String(), nullable=False),
        sa.Column("seq", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("body", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["trajectory_id"], ["trajectories.trajectory_id"], name=op.f("fk_evidence_trajectory_id")
        ),
        sa.PrimaryKeyConstraint("trajectory_id", "evidence_digest", name=op.f("pk_evidence")),
    )
    op.create_index("ix_evidence_latest", "evidence", ["trajectory_id", "seq"], unique=False)
    op.create_table(
        "snapshot_rows",
        sa.Column("snapshot_id", sa.String(), nullable=False),
        sa.Column("trajectory_id", sa.BigInteger(), nullable=False),
        sa.Column("problem_id", sa.String(), nullable=False),
        sa.Column("config", sa.String(), nullable=False),
        sa.Column("split", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["problem_id"], ["problems.problem_id"], name=op.f("fk_snapshot_rows_problem_id")),
        sa.ForeignKeyConstraint(["snapshot_id"], ["snapshots.snapshot_id"], name=op.f("fk_snapshot_rows_snapshot_id")),
        sa.ForeignKeyConstraint(
            ["trajectory_id"], ["trajectories.trajectory_id"], name=op.f("fk_snapshot_rows_trajectory_id")
        ),
        sa.PrimaryKeyConstraint("snapshot_id", "trajectory_id", name=op.f("pk_snapshot_rows")),
    )
    op.create_index("ix_snapshot_rows_history", "snapshot_rows", ["split", "problem_id"], unique=False)
    op.create_table(
        "verdicts",
        sa.Column("verdict_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("trajectory_id", sa.BigInteger(), nullable=False),
        sa.Column("evidence_digest", sa.String(), nullable=False),
        sa.Column("rules_digest", sa.String(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("structural_class", sa.String(), nullable=False),
        sa.Column("trust", sa.String(), nullable=False),
        sa.Column("calls", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("signals", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("answer", postgresql.ARRAY(sa.TEXT()), nullable=False),
        sa.Column("reported_query", sa.String(), nullable=True),
        sa.Column("judged_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["revision"], ["corpus_revisions.revision"], name=op.f("fk_verdicts_revision")),
        sa.ForeignKeyConstraint(["rules_digest"], ["policies.policy_digest"], name=op.f("fk_verdicts_rules_digest")),
        sa.ForeignKeyConstraint(
            ["trajectory_id", "evidence_digest"],
            ["evidence.trajectory_id", "evidence.evidence_digest"],
            name=op.f("fk_verdicts_trajectory_id_evidence_digest"),
        ),
        sa.PrimaryKeyConstraint("verdict_id", name=op.f("pk_verdicts")),
        sa.UniqueConstraint(
            "trajectory_id",
            "evidence_digest",
            "rules_digest",
            name=op.f("uq_verdicts_trajectory_id_evidence_digest_rules_digest"),
        ),
    )
    op.create_index(op.f("ix_verdicts_revision"), "verdicts", ["revision"], unique=False)
    op.create_index("ix_verdicts_rules_outcome", "verdicts", ["rules_digest", "outcome"], unique=False)
    op.execute("ALTER TABLE payloads ALTER COLUMN zstd SET STORAGE EXTERNAL")
    op.execute("INSERT INTO corpus_revisions DEFAULT VALUES")


def downgrade() -> None:
    op.drop_index("ix_verdicts_rules_outcome", table_name="verdicts")
    op.drop_index(op.f("ix_verdicts_revision"), table_name="verdicts")
    op.drop_table("verdicts")
    op.drop_index("ix_snapshot_rows_history", table_name="snapshot_rows")
    op.drop_table("snapshot_rows")
    op.drop_index("ix_evidence_latest", table_name="evidence")
    op.drop_table("evidence")
    op.drop_index(op.f("ix_trajectories_problem_id"), table_name="trajectories")
    op.drop_index(op.f("ix_trajectories_payload_sha256"), table_name="trajectories")
    op.drop_index(op.f("ix_trajectories_ledger_id"), table_name="trajectories")
    op.drop_table("trajectories")
    op.drop_table("releases")
    op.drop_table("pool_members")
    op.drop_table("pool_assignments")
    op.drop_table("leak_edges")
    op.drop_index(op.f("ix_harvest_ledger_problem_id"), table_name="harvest_ledger")
    op.drop_index(
        "ix_harvest_ledger_open",
        table_name="harvest_ledger",
        postgresql_where=sa.text("state IN ('expected', 'embargoed', 'failed')"),
    )
    op.drop_table("harvest_ledger")
    op.drop_index(op.f("ix_cluster_members_cluster_id"), table_name="cluster_members")
    op.drop_table("cluster_members")
    op.drop_index(op.f("ix_jobs_state"), table_name="jobs")
    op.drop_table("jobs")
    op.drop_index(op.f("ix_evaluation_runs_race_id"), table_name="evaluation_runs")
    op.drop_index(op.f("ix_evaluation_runs_agent_version_id"), table_name="evaluation_runs")
    op.drop_table("evaluation_runs")
    op.drop_table("clusterings")
    op.drop_table("walks")
    op.drop_table("snapshots")
    op.drop_table("races")
    op.drop_table("problems")
    op.drop_table("policies")
    op.drop_table("payloads")
    op.drop_table("origins")
    op.drop_table("leases")
    op.drop_index(
        "uq_corpus_revisions_open", table_name="corpus_revisions", postgresql_where=sa.text("sealed_at IS NULL")
    )
    op.drop_table("corpus_revisions")
    op.drop_table("agent_versions")
