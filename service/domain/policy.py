"""The policies in force: which rule set, plans and selection decide what the corpus means. Applies none of them."""

from dataclasses import dataclass

from service.domain.filter.rules import SLUICE_1, RuleSet
from service.domain.harvest.gains import PLAN_1, PlanPolicy
from service.domain.leaks.audit import AUDIT_1, AuditPlan
from service.domain.leaks.leakage import LEAK_1, LeakPlan
from service.domain.leaks.pools import POOLS_1, PoolPlan
from service.domain.rows.spec import STANDING, Options, SnapshotSpec


@dataclass(frozen=True, slots=True)
class Policies:
    """One policy of each kind. All are versioned data with a digest, never settings of the environment."""

    rules: RuleSet = SLUICE_1
    leaks: LeakPlan = LEAK_1
    pools: PoolPlan = POOLS_1
    standing: Options = STANDING
    """What the snapshots are made by that nobody asks for."""
    audit: AuditPlan = AUDIT_1
    plan: PlanPolicy = PLAN_1
    """Decides in which order items are fetched, and so nothing about what a snapshot of a whole harvest holds."""

    def rules_of(self, options: Options) -> RuleSet:
        """The rule set that options name: the one in force under its name."""
        return self.rules if options.rules == self.rules.name else options.rule_set

    def spec(self, options: Options, benchmarks_digest: str) -> SnapshotSpec:
        """The spec of a snapshot with these options, made under these policies while those benchmarks stood."""
        rules = self.rules_of(options)
        return SnapshotSpec(
            rules=rules.label,
            rules_digest=rules.digest,
            leak_plan_digest=self.leaks.digest,
            pool_plan_digest=self.pools.digest,
            audit_digest=self.audit.digest,
            benchmarks_digest=benchmarks_digest,
            selection=options.policy,
            wanted=options.wanted,
            splits=options.splits,
            formats=options.formats,
            salted_hotkeys=options.salted_hotkeys,
        )


DEFAULT_POLICIES = Policies()
