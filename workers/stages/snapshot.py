"""Snapshot: choose rows, write them, audit them, release them or say why not. Decides nothing itself."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import msgspec
from sqlalchemy.orm import Session

from service.domain.filter.structure import Reason
from service.domain.leaks.audit import AuditReport, AuditRow, audit
from service.domain.leaks.benchmarks import public_items
from service.domain.leaks.contact_audit import with_contacts
from service.domain.leaks.pools import PoolReason
from service.domain.rows.manifest import Manifest, build_manifest
from service.domain.rows.records import Row, build_row, texts, withheld
from service.domain.rows.scanning import SECRETS, scan
from service.domain.rows.selection import SelectionReason
from service.domain.rows.spec import Options, SnapshotSpec, options_of
from service.domain.rows.splits import TRAINED, Config, Split
from service.domain.trajectory import ExecutionKind, parse
from service.errors import ErrorCode, SluiceError
from service.store import policies
from service.store.engine import reading, transaction
from service.store.models import Snapshot
from service.store.release import benchmarks, pools, requests, snapshots
from service.store.release.files import Draft
from service.store.release.pools import Releasable
from service.store.release.requests import OpenRequest
from service.store.release.snapshots import JudgedRow, NewRow, Scope
from service.store.work import leases
from service.store.work.leases import LeaseName
from workers import stored
from workers.choosing import Choice, Chosen, Order, choose, without_secretive
from workers.context import Context
from workers.leadership import held


class Written(NamedTuple):
    """A written draft: what it says of itself, its rows, and the fault that forbids its release (None: none)."""

    manifest: Manifest
    report: AuditReport
    rows: list[NewRow]
    refusal: dict[str, Any] | None


def run(_ids: Sequence[int], context: Context, _claimant: str) -> list[int]:
    """Release the newest pools as a snapshot, if that has not been decided yet, and answer whoever asked for one."""
    with held(context.engine, LeaseName.PUBLICATION) as token:
        if token is None:
            return []
        with reading(context.engine) as session:
            found = pools.releasable(session)
            asked = requests.open_requests(session)
        if found is None:
            return []
        readable = _readable(asked, context)
        with reading(context.engine) as session:
            orders = list(_orders(session, context, found, readable))
        with ExitStack() as faults:
            # Called last to first, and every one whatever the others raise: no request holds up another.
            for order in reversed(orders):
                faults.callback(_release, context, order, token)
    return []


def _readable(asked: Sequence[OpenRequest], context: Context) -> dict[Options, tuple[int, ...]]:
    """The requests by their options; one that another version recorded, and this one cannot read, is refused."""
    readable: dict[Options, tuple[int, ...]] = {}
    for request in asked:
        try:
            options = options_of(request.options)
        except SluiceError as error:
            with transaction(context.engine) as session:
                requests.answer(session, request.request_id, None, {"code": error.code, "message": error.message})
        else:
            readable[options] = (*readable.get(options, ()), request.request_id)
    return readable


def _orders(
    session: Session, context: Context, found: Releasable, asked: Mapping[Options, tuple[int, ...]]
) -> Iterator[Order]:
    """The snapshots that are due, each spec once: the standing one, then those asked for."""
    standing = context.policies.standing
    for options, request_ids in ({standing: ()} | dict(asked)).items():
        spec = context.policies.spec(options, found.benchmarks_digest)
        if request_ids or snapshots.decision(session, found.assignment_id, spec.digest) is None:
            rules = context.policies.rules_of(options)
            scope = Scope(
                rules.digest,
                found.revision,
                found.clustering_id,
                found.assignment_id,
                context.policies.leaks.families.digest,
            )
            yield Order(options, rules, spec, scope, options == standing, request_ids)


def _release(context: Context, order: Order, token: int) -> None:
    """Make one snapshot, or answer with the decision that there is already."""
    with reading(context.engine) as session:
        decided = snapshots.decision(session, order.scope.assignment_id, order.spec.digest)
        if decided is None:
            lacking = None if order.is_standing else _lacking(session, context, order)
            if lacking is not None:
                _refuse(context, order, lacking)
                return
            choice = choose(session, context, order)
            with context.files.draft(order.spec.formats) as draft:
                written = _write(session, context, order, choice, draft)
                if written.refusal is None:
                    draft.publish(written.manifest, written.report.to_json())
    if decided is not None:
        with transaction(context.engine) as session:
            _answer(session, order, decided.release_id)
    else:
        _decide(context, order, token, written)


def _refuse(context: Context, order: Order, lacking: dict[str, Any]) -> None:
    """Answer requests with what is lacking. That decides nothing about the pools: once it is there, ask again."""
    with transaction(context.engine) as session:
        for request_id in order.request_ids:
            requests.answer(session, request_id, None, lacking)


def _lacking(session: Session, context: Context, order: Order) -> dict[str, Any] | None:
    """Why there is not all that a snapshot needs, verdicts or a salt; None when there is."""
    if order.spec.salted_hotkeys and context.settings.hotkey_salt is None:
        message = "salted hotkeys were asked for, and SLUICE_HOTKEY_SALT is not set for the workers"
        return {"code": ErrorCode.PREREQUISITE_MISSING, "message": message}
    in_force = sum(snapshots.funnel(session, context.policies.rules.digest, order.scope.revision).values())
    judged = sum(snapshots.funnel(session, order.rules.digest, order.scope.revision).values())
    if judged >= in_force:
        return None
    message = (
        f"{in_force - judged} of {in_force} trajectories are not judged under {order.rules.label}; "
        f"`sluice judge --rules {order.rules.name}` judges them"
    )
    return {"code": ErrorCode.PREREQUISITE_MISSING, "message": message}


def _write(session: Session, context: Context, order: Order, choice: Choice, draft: Draft) -> Written:
    scope = order.scope
    rates = snapshots.solve_rates(session, scope.rules_digest, scope.revision)
    rows: list[NewRow] = []
    audited: list[AuditRow] = []
    races: set[str] = set()
    secretive: Counter[Config] = Counter()
    judged = snapshots.judged_by_id(session, scope, [chosen.trajectory_id for chosen in choice.rows])
    for row, chosen in zip(judged, choice.rows, strict=True):
        problem = stored.problem(row)
        built = _built(context, order, row, chosen, rates)
        if any(found.kind in SECRETS for found in scan(texts(built))):
            secretive[built.config] += 1
            if row.pool != Split.TRAIN or Config.REJECTED not in order.spec.wanted.configs:
                continue
            built = _built(context, order, row, Chosen(row.trajectory_id, SelectionReason.SECRET_FOUND, True), rates)
        draft.add(Split(row.pool), built, problem)
        rows.append(NewRow(row.trajectory_id, row.problem_id, built.config, row.pool))
        audited.append(stored.audit_row(row, is_followed=built.config in TRAINED))
        if row.race_id is not None:
            races.add(row.race_id)
    contents = draft.finish()
    funnel = without_secretive(choice.funnel, secretive)
    plan = context.policies.audit
    public = benchmarks.load(session, benchmarks.of_clustering(session, scope.clustering_id))
    report = with_contacts(audit(audited, plan, order.spec.splits), audited, public_items(public), plan.texts)
    manifest = build_manifest(
        order.spec,
        contents.parts,
        contents.files,
        funnel,
        report.to_json(),
        races,
        gold_digest=contents.gold_digest,
        kto=contents.kto,
    )
    return Written(manifest, report, rows, refusal(manifest, report, order.spec))


def _built(context: Context, order: Order, row: JudgedRow, chosen: Chosen, rates: Mapping[str, float]) -> Row:
    built = build_row(
        parse(row.payload, ExecutionKind(row.kind)),
        stored.verdict(row),
        stored.problem(row),
        stored.row_source(row, order.rules, rates.get(row.problem_id), _salt(context, order)),
        context.count_tokens,
        left_out=chosen.left_out,
    )
    return withheld(built) if chosen.withheld else built


def _salt(context: Context, order: Order) -> str | None:
    """What miners are to be named by; None: as they are."""
    return context.settings.hotkey_salt if order.spec.salted_hotkeys else None


def refusal(manifest: Manifest, report: AuditReport, spec: SnapshotSpec) -> dict[str, Any] | None:
    """Why a written snapshot must not be released, with the error code; None when it may be."""
    empty = [split for split in spec.splits if manifest.rows[split] == 0]
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


def _decide(context: Context, order: Order, token: int, written: Written) -> None:
    snapshot = _snapshot(written) if written.refusal is None else None
    with transaction(context.engine) as session:
        leases.require(session, LeaseName.PUBLICATION, token)
        for kind, policy in (("selection", order.spec.selection), ("audit", context.policies.audit)):
            policies.record(session, kind, policy.name, policy.digest, msgspec.to_builtins(policy))
        if snapshot is not None:
            snapshots.record(session, snapshot, written.rows)
        release_id = snapshots.decide(
            session,
            order.scope.assignment_id,
            order.spec.digest,
            snapshot_id=None if snapshot is None else written.manifest.snapshot_id,
            refusal=written.refusal,
            is_standing=order.is_standing,
        )
        _answer(session, order, release_id)


def _snapshot(written: Written) -> Snapshot:
    manifest = written.manifest
    return Snapshot(
        snapshot_id=manifest.snapshot_id,
        spec=manifest.spec,
        manifest=msgspec.to_builtins(manifest),
        audit=written.report.to_json(),
        train_rows=manifest.rows[Split.TRAIN],
        eval_rows=manifest.rows[Split.EVAL],
    )


def _answer(session: Session, order: Order, release_id: int) -> None:
    for request_id in order.request_ids:
        requests.answer(session, request_id, release_id)
