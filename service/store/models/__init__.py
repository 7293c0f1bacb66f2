"""Every table, so that one import gives Alembic the whole metadata. Foreign keys point upstream only."""

from service.store.models.base import Base
from service.store.models.chain import Metagraph, MetagraphNeuron
from service.store.models.corpus import CorpusRevision, Evidence, Payload, Policy, Tombstone, Trajectory, Verdict
from service.store.models.harvest import (
    AgentVersion,
    EvaluationRun,
    LedgerItem,
    LedgerState,
    Origin,
    Problem,
    Race,
    Walk,
)
from service.store.models.leakage import Clustering, ClusterMember, LeakEdge, PoolAssignment, PoolMember
from service.store.models.release import Job, Lease, Release, Snapshot, SnapshotRow
from service.store.models.standings import (
    AgentCode,
    AgentCodeBytes,
    LeaderboardEntry,
    RaceEntry,
    SeedCommitment,
    Suite,
)

__all__ = [
    "AgentCode",
    "AgentCodeBytes",
    "AgentVersion",
    "Base",
    "ClusterMember",
    "Clustering",
    "CorpusRevision",
    "EvaluationRun",
    "Evidence",
    "Job",
    "LeaderboardEntry",
    "LeakEdge",
    "Lease",
    "LedgerItem",
    "LedgerState",
    "Metagraph",
    "MetagraphNeuron",
    "Origin",
    "Payload",
    "Policy",
    "PoolAssignment",
    "PoolMember",
    "Problem",
    "Race",
    "RaceEntry",
    "Release",
    "SeedCommitment",
    "Snapshot",
    "SnapshotRow",
    "Suite",
    "Tombstone",
    "Trajectory",
    "Verdict",
    "Walk",
]
