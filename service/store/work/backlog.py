"""What each stage has still to do, as queries: Postgres says what is to be done, messages only say when to look.

Holds no queue and starts nothing. A stage's backlog is empty exactly when running the stage would change nothing.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.domain.agent_code.code_scan import SCANNER_VERSION
from service.domain.policy import Policies
from service.store.corpus import code_scans, families, revisions, verdicts
from service.store.harvest import ledger
from service.store.models import Clustering
from service.store.release import benchmarks, clusters, pools, requests, snapshots


def items_due(session: Session, now: datetime, limit: int) -> Sequence[int]:
    """Ingest: ledger ids to ask the source for, in no order that counts; `planning` has what an order is made from."""
    return ledger.due(session, now, limit)


def trajectories_unjudged(session: Session, rules_digest: str, limit: int) -> Sequence[int]:
    """Filter: trajectory ids to judge."""
    return verdicts.unjudged(session, rules_digest, limit)


def code_due(session: Session, family_rule_digest: str) -> bool:
    """Scan: whether code is unscanned, not yet evidence of a trajectory, or not compared with that of others."""
    return code_scans.anything_due(session, SCANNER_VERSION) or bool(
        families.uncompared(session, SCANNER_VERSION, family_rule_digest)
    )


def clustering_due(session: Session, leak_plan_digest: str, rules_digest: str) -> bool:
    """Cluster: whether verdicts, tombstones, problem facts or benchmarks are newer than the newest clustering."""
    newest = session.scalar(
        select(Clustering)
        .where(Clustering.plan_digest == leak_plan_digest, Clustering.rules_digest == rules_digest)
        .order_by(Clustering.clustering_id.desc())
        .limit(1)
    )
    known = clusters.facts_known(session)
    if newest is None:
        return known > 0
    return (
        known > newest.facts_known
        or benchmarks.standing_digest(session) != newest.benchmarks_digest
        or revisions.has_unsealed_rows(session)
        or revisions.last_sealed(session) > newest.revision
    )


def assignment_due(session: Session, pool_plan_digest: str) -> bool:
    """Assign: whether the newest clustering has no pools yet."""
    return clusters.unassigned(session, pool_plan_digest) is not None


def release_due(session: Session, policies: Policies) -> bool:
    """Snapshot: whether the newest pools have neither been released nor refused under the standing spec."""
    found = pools.releasable(session)
    if found is None:
        return False
    spec = policies.spec(policies.standing, found.benchmarks_digest)
    return snapshots.decision(session, found.assignment_id, spec.digest) is None


def requests_due(session: Session) -> bool:
    """Snapshot: whether a request is open, and there are pools to answer it from."""
    return bool(requests.open_requests(session)) and pools.releasable(session) is not None
