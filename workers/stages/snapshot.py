"""Snapshot: choose rows, write them, audit them, release them or say why not. Decides nothing itself."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from sqlalchemy.orm import Session

from service.domain.filter.structure import Outcome, Reason
from service.domain.leaks.audit import AuditReport, AuditRow, audit
from service.domain.leaks.contact_audit import with_contacts
from service.domain.leaks.likeness import Behaviour, alike, behaviour
from service.domain.leaks.pools import Pool, PoolReason
from service.domain.rows.candidates import Candidate, candidate
from service.domain.rows.manifest import Manifest, build_manifest
from service.domain.rows.records import build_row, row_id
from service.domain.rows.selection import select
from service.domain.rows.splits import Split, row_config
from service.domain.trajectory import ExecutionKind, parse
from service.errors import ErrorCode
from service.store import policies
from service.store.engine import reading, transaction
from service.store.models import Snapshot
from service.store.release import benchmarks, pools, snapshots
from service.store.release.benchmarks import public_items
from service.store.release.files import Draft
from service.store.release.pools import Undecided
from service.store.release.snapshots import NewRow, Scope
from service.store.work import leases
from service.store.work.leases import LeaseName
from workers import stored
from workers.context import Context
from workers.leadership import held


class Choice(NamedTuple):
    """The trajectories of one snapshot in the order of its rows, and how many ended where."""

    trajectory_ids: list[int]
    funnel: dict[str, Any]


class Written(NamedTuple):
    """A written draft: what it says of itself, its rows, and the fault that forbids its release (None: none)."""

    manifest: Manifest
    report: AuditReport
    rows: list[NewRow]
    refusal: dict[str, Any] | None


def run(_ids: Sequence[int], context: Context, _claimant: str) -> list[int]:
    """Release the newest pools as a snapshot, if that has not been decided yet."""
    with held(context.engine, LeaseName.PUBLICATION) as token:
        if token is None:
            return []
        with reading(context.engine) as session:
            undecided = pools.undecided(session, context.policies.spec.digest)
            if undecided is None:
                return []
            scope = Scope(context.policies.rules.digest, *undecided, context.policies.leaks.families.digest)
            choice = _choose(session, context, scope)
            with context.files.draft() as draft:
                written = _write(session, context, scope, choice, draft)
                if written.refusal is None:
                    draft.publish(written.manifest, written.report.to_json())
        _record(context, undecided, written, token)
    return []


def _choose(session: Session, context: Context, scope: Scope) -> Choice:
    by_pool: Counter[str] = Counter()
    quarantined: Counter[str] = Counter()
    ids: dict[str, int] = {}
    candidates: list[Candidate] = []
    did: list[Behaviour] = []
    for row in snapshots.judged(session, scope, Outcome.KEPT):
        by_pool[row.pool] += 1
        if row.pool == Pool.QUARANTINED:
            quarantined[row.pool_reason] += 1
        if row.pool in set(Split):
            ids[stored.key(row)] = row.trajectory_id
            trajectory = parse(row.payload, ExecutionKind(row.kind))
            candidates.append(
                candidate(
                    stored.key(row),
                    row.family,
                    stored.problem(row),
                    trajectory,
                    stored.verdict(row),
                    split=Split(row.pool),
                    policy=context.policies.selection,
                    tombstoned=row.tombstone is not None,
                )
            )
            did.append(behaviour(row.agent_version_id, row.family, row.problem_id, trajectory))
    selection = select(alike(candidates, did, context.policies.leaks.families), context.policies.selection)
    verdicts = snapshots.funnel(session, scope.rules_digest, scope.revision)
    funnel = {
        "trajectories": sum(verdicts.values()),
        "verdicts": dict(sorted(verdicts.items())),
        "pools": dict(sorted(by_pool.items())),
        "quarantined": dict(sorted(quarantined.items())),
        "selection": selection.counts,
        "rows": len(selection.chosen),
    }
    return Choice([ids[key] for key in sorted(selection.chosen, key=row_id)], funnel)


def _write(session: Session, context: Context, scope: Scope, choice: Choice, draft: Draft) -> Written:
    rates = snapshots.solve_rates(session, scope.rules_digest, scope.revision)
    rows: list[NewRow] = []
    audited: list[AuditRow] = []
    races: set[str] = set()
    for row in snapshots.judged_by_id(session, scope, choice.trajectory_ids):
        verdict, problem = stored.verdict(row), stored.problem(row)
        source = stored.row_source(row, context.policies.rules, rates.get(row.problem_id))
        trajectory = parse(row.payload, ExecutionKind(row.kind))
        draft.add(Split(row.pool), build_row(trajectory, verdict, problem, source, context.count_tokens))
        rows.append(NewRow(row.trajectory_id, row.problem_id, row_config(verdict), row.pool))
        audited.append(stored.audit_row(row))
        if row.race_id is not None:
            races.add(row.race_id)
    contents = draft.finish()
    plan = context.policies.audit
    public = benchmarks.load(session, benchmarks.of_clustering(session, scope.clustering_id))
    report = with_contacts(audit(audited, plan), audited, public_items(public), plan.texts)
    manifest = build_manifest(
        context.policies.spec, contents.parts, contents.files, choice.funnel, report.to_json(), races
    )
    return Written(manifest, report, rows, refusal(manifest, report))


def refusal(manifest: Manifest, report: AuditReport) -> dict[str, Any] | None:
    """Why a written snapshot must not be released, with the error code; None when it may be."""
    empty = [split for split, rows in manifest.rows.items() if rows == 0]
    funnel = manifest.funnel
    if empty:
        kept = funnel["verdicts"].get(Reason.KEPT, 0)
        cause = f"{funnel['trajectories']} trajectories, {kept} kept, by pool {funnel['pools'] or 'none'}"
        excluded = funnel["quarantined"].get(PoolReason.BENCHMARK, 0)
        if excluded:
            names = [name for name, told in report.figures["benchmarks"].items() if told["excluded_from_train"]]
            cause += f", {excluded} kept out of train by the benchmarks {', '.join(names)}"
        message = f"no rows in {' and '.join(empty)}: {cause}, left out in selection {funnel['selection'] or 'none'}"
        return {"code": ErrorCode.EMPTY_SPLIT, "message": message, "funnel": funnel}
    if not report.ok:
        failed = ", ".join(check.name for check in report.checks if not check.ok)
        return {"code": ErrorCode.AUDIT_FAILED, "message": f"audit failed: {failed}", "audit": report.to_json()}
    return None


def _record(context: Context, of: Undecided, written: Written, token: int) -> None:
    manifest = written.manifest
    snapshot = Snapshot(
        snapshot_id=manifest.snapshot_id,
        spec=manifest.spec,
        manifest=msgspec.to_builtins(manifest),
        audit=written.report.to_json(),
        train_rows=manifest.rows[Split.TRAIN],
        eval_rows=manifest.rows[Split.EVAL],
    )
    with transaction(context.engine) as session:
        leases.require(session, LeaseName.PUBLICATION, token)
        for kind, policy in (("selection", context.policies.selection), ("audit", context.policies.audit)):
            policies.record(session, kind, policy.name, policy.digest, msgspec.to_builtins(policy))
        if written.refusal is None:
            snapshots.record(session, snapshot, written.rows)
        snapshots.decide(
            session,
            of.assignment_id,
            manifest.spec_digest,
            snapshot_id=None if written.refusal else manifest.snapshot_id,
            refusal=written.refusal,
        )
