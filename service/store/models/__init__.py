"""Every table, so that one import gives Alembic the whole metadata. Foreign keys point upstream only."""

from service.store.models.base import Base
from service.store.models.benchmarks import (
    BenchmarkContact,
    BenchmarkItem,
    BenchmarkMember,
    BenchmarkRegistration,
    ClusteringBenchmark,
)
from service.store.models.chain import Metagraph, MetagraphNeuron
from service.store.models.code import AgentCodeScan, AgentLink, ComparedAgent, ScannedTrajectory
from service.store.models.corpus import CorpusRevision, Evidence, Payload, Policy, Tombstone, Trajectory, Verdict
from service.store.models.coverage import TrajectoryHistory
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
from service.store.models.imports import IMPORTED, Import
from service.store.models.leakage import (
    Clustering,
    ClusterMember,
    LeakEdge,
    PoolAcceptance,
    PoolAssignment,
    PoolMember,
)
from service.store.models.local import LocalEnvelope, LocalGrading, TailPosition, WitnessLine
from service.store.models.release import (
    Job,
    Lease,
    Release,
    Snapshot,
    SnapshotAnswer,
    SnapshotMark,
    SnapshotRequest,
    SnapshotRow,
)
from service.store.models.standings import (
    AgentCode,
    AgentCodeBytes,
    LeaderboardEntry,
    RaceEntry,
    SeedCommitment,
    Suite,
)

__all__ = [
    "IMPORTED",
    "AgentCode",
    "AgentCodeBytes",
    "AgentCodeScan",
    "AgentLink",
    "AgentVersion",
    "Base",
    "BenchmarkContact",
    "BenchmarkItem",
    "BenchmarkMember",
    "BenchmarkRegistration",
    "ClusterMember",
    "Clustering",
    "ClusteringBenchmark",
    "ComparedAgent",
    "CorpusRevision",
    "EvaluationRun",
    "Evidence",
    "Import",
    "Job",
    "LeaderboardEntry",
    "LeakEdge",
    "Lease",
    "LedgerItem",
    "LedgerState",
    "LocalEnvelope",
    "LocalGrading",
    "Metagraph",
    "MetagraphNeuron",
    "Origin",
    "Payload",
    "Policy",
    "PoolAcceptance",
    "PoolAssignment",
    "PoolMember",
    "Problem",
    "Race",
    "RaceEntry",
    "Release",
    "ScannedTrajectory",
    "SeedCommitment",
    "Snapshot",
    "SnapshotAnswer",
    "SnapshotMark",
    "SnapshotRequest",
    "SnapshotRow",
    "Suite",
    "TailPosition",
    "Tombstone",
    "Trajectory",
    "TrajectoryHistory",
    "Verdict",
    "Walk",
    "WitnessLine",
]
