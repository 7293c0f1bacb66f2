"""The fields each of ORO's rows had in oro-sdk 7.0.2, only to notice new ones, and which of them is its id."""

_FIELDS_BY_SHAPE = {
    "RacePublic": """
        race_id suite_id status race_number qualifying_closes_at race_started_at race_completed_at
        winner_agent_version_id winner_score qualifying_threshold winner_agent_name qualifier_count
        scored_count top50_mean top50_std created_at projected_completion_at
    """,
    "RaceQualifierPublic": """
        agent_version_id qualification_type agent_name miner_hotkey version_number qualifying_score
        race_score eliminated_at race_rank is_discarded weighted_score window
    """,
    "LeaderboardEntry": """
        rank agent_version_id agent_name miner_hotkey version_number final_score race_score
        eligible_at is_discarded is_miner_banned is_current_top was_top top_at is_active_qualifier
        outranked_by_agent_version_id eliminated_at weighted_score window
    """,
    "RaceSeedCommitmentResponse": """
        race_id scheme secret_sha256 drand_chain_hash drand_offset_seconds drand_round drand_round_time
        committed_at revealed drand_signature drand_randomness secret world_seed world_pack_sha256
        rejected_attempts
    """,
    "AgentVersionStatus": """
        agent_version_id agent_name miner_hotkey version_number submitted_at state eliminated_at
        eliminated_in_race_number suite_id required_successes success_count active_count is_closed
        final_score race_score reasoning_coefficient release_state code_available_at
        is_active_qualifier outranked_by_agent_version_id weighted_score window
    """,
    "SuitePublic": """
        suite_id suite_version is_active execution_kind environment benchmark_name benchmark_number
    """,
    "ProblemPublic": """
        problem_id suite_id metadata
    """,
    "QualifyingTaskRead": """
        task_id family goal_text
    """,
    "EvaluationRunPublic": """
        eval_run_id agent_version_id suite_id validator_hotkey status claimed_at lease_expires_at
        is_included last_heartbeat_at completed_at invalidated_at invalidated_by invalidation_reason
        failure_reason validator_score reasoning_quality reasoning_coefficient
        score_components_summary service_versions sandbox_metadata inference_failure_count
        inference_total phase race_id race_number
    """,
    "EvaluationItemRead": """
        item_id item_kind status eval_run_id validator_hotkey family score verdict_status
        paid_reward check_summary reward_summary step_count episode_result_id
    """,
    "ProblemProgressEntry": """
        problem_id category phase race_id validator_results
    """,
    "ValidatorProblemResult": """
        eval_run_id validator_hotkey status score score_components reasoning_score updated_at
        inference_failure_count inference_total execution_time
    """,
}

ID_FIELDS = {
    "RacePublic": "race_id",
    "RaceQualifierPublic": "agent_version_id",
    "LeaderboardEntry": "agent_version_id",
    "SuitePublic": "suite_id",
    "ProblemPublic": "problem_id",
    "QualifyingTaskRead": "task_id",
    "EvaluationRunPublic": "eval_run_id",
    "EvaluationItemRead": "item_id",
}
"""No listing holds two rows of one id. An agent's problems have none: each may come once for every validator."""

KNOWN_FIELDS = {shape: frozenset(names.split()) for shape, names in _FIELDS_BY_SHAPE.items()}
