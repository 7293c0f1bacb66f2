"""The policies in force: which rule set, plans and selection decide what the corpus means. Applies none of them."""

from dataclasses import dataclass

from service.domain.filter.rules import SLUICE_1, RuleSet
from service.domain.harvest.gains import PLAN_1, PlanPolicy
from service.domain.leaks.audit import AUDIT_1, AuditPlan
from service.domain.leaks.leakage import LEAK_1, LeakPlan
from service.domain.leaks.pools import POOLS_1, PoolPlan
from service.domain.rows.candidates import SELECTION_1, SelectionPolicy
from service.domain.rows.manifest import SnapshotSpec


@dataclass(frozen=True, slots=True)
class Policies:
    """One policy of each kind. All are versioned data with a digest, never settings of the environment."""

    rules: RuleSet = SLUICE_1
    leaks: LeakPlan = LEAK_1
    pools: PoolPlan = POOLS_1
    selection: SelectionPolicy = SELECTION_1
    audit: AuditPlan = AUDIT_1
    plan: PlanPolicy = PLAN_1
    """Decides in which order items are fetched, and so nothing about what a snapshot of a whole harvest holds."""

    @property
    def spec(self) -> SnapshotSpec:
        """The spec of the snapshots made under these policies."""
        return SnapshotSpec(
            rules=f"{self.rules.name}/{self.rules.version}",
            rules_digest=self.rules.digest,
            leak_plan_digest=self.leaks.digest,
            pool_plan_digest=self.pools.digest,
            audit_digest=self.audit.digest,
            selection=self.selection,
        )


DEFAULT_POLICIES = Policies()
