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
        "agent_code_bytes",
        sa.Column("code_sha256", sa.String(), nullable=False),
        sa.Column("zstd", sa.LargeBinary(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("code_sha256", name=op.f("pk_agent_code_bytes")),
    )
    op.create_table(
        "imports",
        sa.Column("import_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("file_sha256", sa.String(), nullable=True),
        sa.Column("format", sa.String(), nullable=True),
        sa.Column("counts", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("fault", sa.String(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("import_id", name=op.f("pk_imports")),
    )
    op.create_table(
        "local_envelopes",
        sa.Column("envelope_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("eval_run_id", sa.String(), nullable=False),
        sa.Column("problem_id", sa.String(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("ordinal", sa.BigInteger(), nullable=False),
        sa.Column("last_ordinal", sa.BigInteger(), nullable=False),
        sa.Column("line_sha256", sa.String(), nullable=False),
        sa.Column("zstd", sa.LargeBinary(), nullable=True),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(), nullable=True),
        sa.Column("defects", postgresql.ARRAY(sa.TEXT()), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("graded_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("envelope_id", name=op.f("pk_local_envelopes")),
        sa.UniqueConstraint(
            "eval_run_id",
            "problem_id",
            "kind",
            "line_sha256",
            name=op.f("uq_local_envelopes_eval_run_id_problem_id_kind_line_sha256"),
            postgresql_nulls_not_distinct=True,
        ),
    )
    op.create_index("ix_local_envelopes_span", "local_envelopes", ["ended_at", "started_at"], unique=False)
    op.create_index(
        "ix_local_envelopes_waiting",
        "local_envelopes",
        ["eval_run_id", "problem_id"],
        unique=False,
        postgresql_where=sa.text("graded_at IS NULL"),
    )
    op.create_table(
        "suites",
        sa.Column("suite_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("world", sa.String(), nullable=True),
        sa.Column("source", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.PrimaryKeyConstraint("suite_id", name=op.f("pk_suites")),
    )
    op.create_table(
        "tail_positions",
        sa.Column("position_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("device", sa.BigInteger(), nullable=False),
        sa.Column("inode", sa.BigInteger(), nullable=False),
        sa.Column("offset_bytes", sa.BigInteger(), nullable=False),
        sa.Column("lines", sa.BigInteger(), nullable=False),
        sa.Column("head_sha256", sa.String(), nullable=False),
        sa.Column("head_bytes", sa.Integer(), nullable=False),
        sa.Column("tail_sha256", sa.String(), nullable=False),
        sa.Column("garbage_lines", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("position_id", name=op.f("pk_tail_positions")),
        sa.UniqueConstraint(
            "source", "path", "device", "inode", name=op.f("uq_tail_positions_source_path_device_inode")
        ),
    )
    op.create_table(
        "trajectory_history",
        sa.Column("history_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("total", sa.Integer(), nullable=True),
        sa.Column("series", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("read_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("history_id", name=op.f("pk_trajectory_history")),
    )
    op.create_table(
        "witness_lines",
        sa.Column("line_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("line_sha256", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("resolution_ms", sa.Integer(), nullable=False),
        sa.Column("method", sa.String(), nullable=True),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("arguments", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("body_bytes", sa.BigInteger(), nullable=True),
        sa.Column("request_bytes", sa.BigInteger(), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("line_id", name=op.f("pk_witness_lines")),
        sa.UniqueConstraint("line_sha256", name=op.f("uq_witness_lines_line_sha256")),
    )
    op.create_index(op.f("ix_witness_lines_at"), "witness_lines", ["at"], unique=False)
    op.create_index(op.f("ix_witness_lines_seen_at"), "witness_lines", ["seen_at"], unique=False)
    op.create_table(
        "agent_code",
        sa.Column("agent_version_id", sa.String(), nullable=False),
        sa.Column(
            "state",
            sa.Enum(
                "expected",
                "fetched",
                "changed",
                "embargoed",
                "failed",
                "gone",
                name="ledgerstate",
                native_enum=False,
                length=16,
            ),
            nullable=False,
        ),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_try_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("code_sha256", sa.String(), nullable=True),
        sa.Column("fetched_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["agent_version_id"], ["agent_versions.agent_version_id"], name=op.f("fk_agent_code_agent_version_id")
        ),
        sa.ForeignKeyConstraint(
            ["code_sha256"], ["agent_code_bytes.code_sha256"], name=op.f("fk_agent_code_code_sha256")
        ),
        sa.PrimaryKeyConstraint("agent_version_id", name=op.f("pk_agent_code")),
    )
    op.create_table(
        "leaderboard_entries",
        sa.Column("suite_id", sa.Integer(), nullable=False),
        sa.Column("agent_version_id", sa.String(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=True),
        sa.Column("final_score", sa.Double(), nullable=True),
        sa.Column("race_score", sa.Double(), nullable=True),
        sa.Column("weighted_score", sa.Double(), nullable=True),
        sa.Column("is_discarded", sa.Boolean(), nullable=False),
        sa.Column("is_current_top", sa.Boolean(), nullable=False),
        sa.Column("eliminated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("source", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_version_id"],
            ["agent_versions.agent_version_id"],
            name=op.f("fk_leaderboard_entries_agent_version_id"),
        ),
        sa.ForeignKeyConstraint(["suite_id"], ["suites.suite_id"], name=op.f("fk_leaderboard_entries_suite_id")),
        sa.PrimaryKeyConstraint("suite_id", "agent_version_id", name=op.f("pk_leaderboard_entries")),
    )
    op.create_index(
        op.f("ix_leaderboard_entries_agent_version_id"), "leaderboard_entries", ["agent_version_id"], unique=False
    )
    op.create_table(
        "metagraphs",
        sa.Column("metagraph_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("race_id", sa.String(), nullable=True),
        sa.Column("netuid", sa.Integer(), nullable=False),
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("block_hash", sa.String(), nullable=True),
        sa.Column("taken_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("lag_blocks", sa.BigInteger(), nullable=False),
        sa.Column("is_late", sa.Boolean(), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["race_id"], ["races.race_id"], name=op.f("fk_metagraphs_race_id")),
        sa.PrimaryKeyConstraint("metagraph_id", name=op.f("pk_metagraphs")),
        sa.UniqueConstraint("race_id", name=op.f("uq_metagraphs_race_id")),
    )
    op.create_index(
        "uq_metagraphs_newest", "metagraphs", ["netuid"], unique=True, postgresql_where=sa.text("race_id IS NULL")
    )
    op.create_table(
        "race_entries",
        sa.Column("race_id", sa.String(), nullable=False),
        sa.Column("agent_version_id", sa.String(), nullable=False),
        sa.Column("qualification_type", sa.String(), nullable=True),
        sa.Column("qualifying_score", sa.Double(), nullable=True),
        sa.Column("race_score", sa.Double(), nullable=True),
        sa.Column("weighted_score", sa.Double(), nullable=True),
        sa.Column("race_rank", sa.Integer(), nullable=True),
        sa.Column("is_discarded", sa.Boolean(), nullable=False),
        sa.Column("eliminated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("source", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_version_id"], ["agent_versions.agent_version_id"], name=op.f("fk_race_entries_agent_version_id")
        ),
        sa.ForeignKeyConstraint(["race_id"], ["races.race_id"], name=op.f("fk_race_entries_race_id")),
        sa.PrimaryKeyConstraint("race_id", "agent_version_id", name=op.f("pk_race_entries")),
    )
    op.create_index(op.f("ix_race_entries_agent_version_id"), "race_entries", ["agent_version_id"], unique=False)
    op.create_table(
        "seed_commitments",
        sa.Column("commitment_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("race_id", sa.String(), nullable=False),
        sa.Column("is_revealed", sa.Boolean(), nullable=False),
        sa.Column("source", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("recorded_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["race_id"], ["races.race_id"], name=op.f("fk_seed_commitments_race_id")),
        sa.PrimaryKeyConstraint("commitment_id", name=op.f("pk_seed_commitments")),
    )
    op.create_index("ix_seed_commitments_race", "seed_commitments", ["race_id", "commitment_id"], unique=False)
    op.create_table(
        "snapshot_marks",
        sa.Column("snapshot_id", sa.String(), nullable=False),
        sa.Column("late_known", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["snapshot_id"], ["snapshots.snapshot_id"], name=op.f("fk_snapshot_marks_snapshot_id")),
        sa.PrimaryKeyConstraint("snapshot_id", name=op.f("pk_snapshot_marks")),
    )
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
    op.create_table(
        "metagraph_neurons",
        sa.Column("metagraph_id", sa.BigInteger(), nullable=False),
        sa.Column("uid", sa.Integer(), nullable=False),
        sa.Column("hotkey", sa.String(), nullable=False),
        sa.Column("has_permit", sa.Boolean(), nullable=False),
        sa.Column("stake", sa.Double(), nullable=False),
        sa.Column("incentive", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["metagraph_id"], ["metagraphs.metagraph_id"], name=op.f("fk_metagraph_neurons_metagraph_id")
        ),
        sa.PrimaryKeyConstraint("metagraph_id", "uid", name=op.f("pk_metagraph_neurons")),
        sa.UniqueConstraint("metagraph_id", "hotkey", name=op.f("uq_metagraph_neurons_metagraph_id_hotkey")),
    )
    op.create_table(
        "local_gradings",
        sa.Column("trajectory_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("payload_sha256", sa.String(), nullable=False),
        sa.Column("window_start", sa.DateTime(timezone=True), nullable=True),
        sa.Column("window_end", sa.DateTime(timezone=True), nullable=True),
        sa.Column("is_due", sa.Boolean(), nullable=False),
        sa.Column("graded_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["trajectory_id"], ["trajectories.trajectory_id"], name=op.f("fk_local_gradings_trajectory_id")
        ),
        sa.PrimaryKeyConstraint("trajectory_id", name=op.f("pk_local_gradings")),
    )
    op.create_index(
        "ix_local_gradings_due", "local_gradings", ["trajectory_id"], unique=False, postgresql_where=sa.text("is_due")
    )
    op.create_index("ix_local_gradings_span", "local_gradings", ["window_end", "window_start"], unique=False)
    op.add_column("agent_versions", sa.Column("read_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("evaluation_runs", sa.Column("next_listing_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("evaluation_runs", sa.Column("listing_attempts", sa.Integer(), server_default="0", nullable=False))
    op.add_column("evidence", sa.Column("payload_sha256", sa.String(), nullable=True))
    op.execute(
        "UPDATE evidence SET payload_sha256 = trajectories.payload_sha256 FROM trajectories WHERE trajectories.trajectory_id = evidence.trajectory_id"
    )
    op.alter_column("evidence", "payload_sha256", nullable=False)
    op.add_column("evidence", sa.Column("is_late", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.create_index(
        "ix_evidence_late", "evidence", ["trajectory_id"], unique=False, postgresql_where=sa.text("is_late")
    )
    op.create_foreign_key(
        op.f("fk_evidence_payload_sha256"), "evidence", "payloads", ["payload_sha256"], ["payload_sha256"]
    )
    op.add_column("harvest_ledger", sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("harvest_ledger", sa.Column("etag", sa.String(), nullable=True))
    op.add_column("races", sa.Column("is_cancelled", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.add_column("races", sa.Column("complete_since", sa.DateTime(timezone=True), nullable=True))
    op.add_column("races", sa.Column("read_at", sa.DateTime(timezone=True), nullable=True))
    _open_items("'expected', 'changed', 'embargoed', 'failed'")
    op.execute(
        "INSERT INTO tombstones (revision, subject, subject_id, reason, is_lifted, source)"
        " SELECT corpus_revisions.revision, 'run', evaluation_runs.eval_run_id, 'run_invalidated', false, evaluation_runs.source"
        " FROM evaluation_runs JOIN corpus_revisions ON corpus_revisions.sealed_at IS NULL"
        " WHERE evaluation_runs.invalidated_at IS NOT NULL AND EXISTS"
        " (SELECT 1 FROM trajectories WHERE trajectories.eval_run_id = evaluation_runs.eval_run_id)"
    )
    op.execute(
        "UPDATE agent_versions SET read_at = settled.at FROM"
        " (SELECT agent_version_id, max(coalesce(completed_at, now())) AS at FROM evaluation_runs GROUP BY agent_version_id"
        " HAVING bool_and(is_over AND (NOT counts OR listed_at IS NOT NULL))) AS settled"
        " WHERE settled.agent_version_id = agent_versions.agent_version_id"
    )


def downgrade() -> None:
    op.execute("UPDATE harvest_ledger SET state = 'fetched' WHERE state = 'changed'")
    _open_items("'expected', 'embargoed', 'failed'")
    op.drop_column("races", "read_at")
    op.drop_column("races", "complete_since")
    op.drop_column("races", "is_cancelled")
    op.drop_column("harvest_ledger", "etag")
    op.drop_column("harvest_ledger", "updated_at")
    op.drop_constraint(op.f("fk_evidence_payload_sha256"), "evidence", type_="foreignkey")
    op.drop_index("ix_evidence_late", table_name="evidence", postgresql_where=sa.text("is_late"))
    op.drop_column("evidence", "is_late")
    op.drop_column("evidence", "payload_sha256")
    op.drop_column("evaluation_runs", "listing_attempts")
    op.drop_column("evaluation_runs", "next_listing_at")
    op.drop_column("agent_versions", "read_at")
    op.drop_index("ix_local_gradings_span", table_name="local_gradings")
    op.drop_index("ix_local_gradings_due", table_name="local_gradings", postgresql_where=sa.text("is_due"))
    op.drop_table("local_gradings")
    op.drop_table("metagraph_neurons")
    op.drop_index("ix_tombstones_subject", table_name="tombstones")
    op.drop_index(op.f("ix_tombstones_revision"), table_name="tombstones")
    op.drop_table("tombstones")
    op.drop_table("snapshot_marks")
    op.drop_index("ix_seed_commitments_race", table_name="seed_commitments")
    op.drop_table("seed_commitments")
    op.drop_index(op.f("ix_race_entries_agent_version_id"), table_name="race_entries")
    op.drop_table("race_entries")
    op.drop_index("uq_metagraphs_newest", table_name="metagraphs", postgresql_where=sa.text("race_id IS NULL"))
    op.drop_table("metagraphs")
    op.drop_index(op.f("ix_leaderboard_entries_agent_version_id"), table_name="leaderboard_entries")
    op.drop_table("leaderboard_entries")
    op.drop_table("agent_code")
    op.drop_index(op.f("ix_witness_lines_seen_at"), table_name="witness_lines")
    op.drop_index(op.f("ix_witness_lines_at"), table_name="witness_lines")
    op.drop_table("witness_lines")
    op.drop_table("trajectory_history")
    op.drop_table("tail_positions")
    op.drop_table("suites")
    op.drop_index(
        "ix_local_envelopes_waiting", table_name="local_envelopes", postgresql_where=sa.text("graded_at IS NULL")
    )
    op.drop_index("ix_local_envelopes_span", table_name="local_envelopes")
    op.drop_table("local_envelopes")
    op.drop_table("imports")
    op.drop_table("agent_code_bytes")


def _open_items(states: str) -> None:
    op.drop_index("ix_harvest_ledger_open", table_name="harvest_ledger")
    where = sa.text(f"state IN ({states})")
    op.create_index("ix_harvest_ledger_open", "harvest_ledger", ["next_try_at"], postgresql_where=where)
