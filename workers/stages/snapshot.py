"""Snapshot: choose rows, write them, audit them, release them or say why not. Decides nothing itself."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from service.domain.audit import AuditReport, audit
from service.domain.manifest import Manifest, build_manifest
from service.domain.records import Split, build_row, row_id
from service.domain.selection import Candidate, Selection, candidate, select
from service.domain.structure import Outcome, Reason
from service.domain.trajectory import ExecutionKind, parse
from service.errors import ErrorCode
from service.store import leases, pools, snapshots
from service.store.engine import reading, transaction
from service.store.files import Draft
from service.store.models import Snapshot
from service.store.pools import Undecided
from service.store.snapshots import JudgedRow, NewRow
from workers import stored
from workers.context import Context
from workers.leadership import held

LEASE = "snapshot"


class Choice(NamedTuple):
    """The rows of one snapshot by trajectory key, and how many trajectories ended where."""

    rows: dict[str, JudgedRow]
    funnel: dict[str, Any]


class Outcomes(NamedTuple):
    """A written draft: what it says of itself, and the fault that keeps it from being released (None: released)."""

    manifest: Manifest
    report: AuditReport
    refusal: dict[str, Any] | None


def run(_ids: Sequence[int], context: Context, _claimant: str) -> list[int]:
    """Release the newest pools as a snapshot, if that has not been decided yet."""
    spec = context.policies.spec
    with held(context.engine, LEASE) as token:
        if token is None:
            return []
        with reading(context.engine) as session:
            undecided = pools.undecided(session, spec.digest)
            if undecided is None:
                return []
            choice = _choose(session, context, undecided)
            with context.files.draft() as draft:
                outcome = _write(session, context, undecided, choice, draft)
                if outcome.refusal is None:
                    draft.publish(outcome.manifest, outcome.report.to_json())
        _record(context, undecided, choice, outcome, token)
    return []


def _choose(session: Session, context: Context, of: Undecided) -> Choice:
    rules = context.policies.rules
    kept = {
        stored.key(row): row
        for row in snapshots.judged(
            session,
            rules_digest=rules.digest,
            revision=of.revision,
            clustering_id=of.clustering_id,
            assignment_id=of.assignment_id,
            outcome=Outcome.KEPT,
        )
    }
    served = {key: row for key, row in kept.items() if row.pool in set(Split)}
    selection = select(_candidates(session, served), context.policies.selection)
    rows = {key: served[key] for key in sorted(selection.chosen, key=row_id)}
    return Choice(rows, _funnel(snapshots.funnel(session, rules.digest, of.revision), kept, selection))


def _candidates(session: Session, rows: Mapping[str, JudgedRow]) -> list[Candidate]:
    payloads = snapshots.payloads(session, [row.trajectory_id for row in rows.values()])
    return [
        candidate(key, row.family, stored.problem(row), parse(payload, ExecutionKind(row.kind)), stored.verdict(row))
        for (key, row), (_, payload) in zip(rows.items(), payloads, strict=True)
    ]


def _funnel(verdicts: Mapping[str, int], kept: Mapping[str, JudgedRow], selection: Selection) -> dict[str, Any]:
    return {
        "trajectories": sum(verdicts.values()),
        "verdicts": dict(sorted(verdicts.items())),
        "pools": dict(sorted(Counter(row.pool for row in kept.values()).items())),
        "selection": selection.counts,
        "rows": len(selection.chosen),
    }


def _write(session: Session, context: Context, of: Undecided, choice: Choice, draft: Draft) -> Outcomes:
    solve_rates = snapshots.solve_rates(session, context.policies.rules.digest, of.revision)
    payloads = snapshots.payloads(session, [row.trajectory_id for row in choice.rows.values()])
    for row, (_, payload) in zip(choice.rows.values(), payloads, strict=True):
        record = build_row(
            parse(payload, ExecutionKind(row.kind)),
            stored.verdict(row),
            stored.problem(row),
            stored.row_source(row, context.policies.rules, solve_rates[row.problem_id]),
            context.count_tokens,
        )
        draft.add(Split(row.pool), record)
    contents = draft.finish()
    report = audit([stored.audit_row(key, row) for key, row in choice.rows.items()], context.policies.audit)
    races = {row.race_id for row in choice.rows.values() if row.race_id is not None}
    manifest = build_manifest(
        context.policies.spec, contents.parts, contents.files, choice.funnel, report.to_json(), races
    )
    return Outcomes(manifest, report, refusal(manifest, report))


def refusal(manifest: Manifest, report: AuditReport) -> dict[str, Any] | None:
    """Why a written snapshot must not be released, with the error code; None when it may be."""
    empty = [split for split, rows in manifest.rows.items() if rows == 0]
    funnel = manifest.funnel
    if empty:
        kept = funnel["verdicts"].get(Reason.KEPT, 0)
        cause = f"{funnel['trajectories']} trajectories, {kept} kept, by pool {funnel['pools'] or 'none'}"
        message = f"no rows in {' and '.join(empty)}: {cause}, left out in selection {funnel['selection'] or 'none'}"
        return {"code": ErrorCode.EMPTY_SPLIT, "message": message, "funnel": funnel}
    if not report.ok:
        failed = ", ".join(check.name for check in report.checks if not check.ok)
        return {"code": ErrorCode.AUDIT_FAILED, "message": f"audit failed: {failed}", "audit": report.to_json()}
    return None


def _record(context: Context, of: Undecided, choice: Choice, outcome: Outcomes, token: int) -> None:
    manifest = outcome.manifest
    released = None if outcome.refusal else manifest.snapshot_id
    snapshot = Snapshot(
        snapshot_id=manifest.snapshot_id,
        spec=manifest.spec,
        manifest=stored.plain(manifest),
        audit=outcome.report.to_json(),
        train_rows=manifest.rows[Split.TRAIN],
        eval_rows=manifest.rows[Split.EVAL],
    )
    with transaction(context.engine) as session:
        leases.require(session, LEASE, token)
        if released is not None:
            rows = choice.rows.values()
            config = stored.config
            new = [NewRow(row.trajectory_id, row.problem_id, config(row), row.pool) for row in rows]
            snapshots.record(session, snapshot, new)
        snapshots.decide(session, of.assignment_id, manifest.spec_digest, snapshot_id=released, refusal=outcome.refusal)
