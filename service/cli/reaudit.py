"""A published snapshot audited again from the bytes of its files: whether they are what was published, and leak."""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec
from sqlalchemy import Engine

from service.domain.leaks.audit import SPLITS, AuditReport, AuditRow, Check, audit
from service.domain.leaks.benchmarks import public_items
from service.domain.leaks.contact_audit import with_contacts
from service.domain.policy import DEFAULT_POLICIES
from service.domain.rows.manifest import STATUS_NAME, FileEntry, Manifest, id_of, rows_digest
from service.domain.rows.scanning import SECRETS, scan
from service.domain.rows.splits import TRAINED
from service.store.engine import reading
from service.store.release import published
from service.store.release.auditing import KnownAnswers, known_answers, known_benchmarks
from service.store.release.files import FileStore
from service.store.release.shards import sha256_of

EXAMPLES = 5
NOTHING_KNOWN = KnownAnswers(frozenset(), frozenset())


class _Message(msgspec.Struct):
    role: str
    content: str | None = None


class _Row(msgspec.Struct):
    """The columns of a row that matter here."""

    row_id: str
    problem_id: str
    agent_family: str
    trajectory_key: str
    messages: list[_Message]


def reaudit(engine: Engine, files: FileStore, snapshot_id: str) -> AuditReport:
    """Check the files of a snapshot against its manifest, the manifest against its id, and the rows for leaks.

    Raises:
        SluiceError: NOT_FOUND when there is no such snapshot.
    """
    manifest = files.manifest(snapshot_id)
    with reading(engine) as session:
        known = known_answers(session, snapshot_id)
        public = public_items(known_benchmarks(session, snapshot_id))
    present = files.entries(snapshot_id)
    damaged = [entry.name for entry in present if not _is_intact(files.path(snapshot_id, entry.name), entry)]
    redacted = frozenset(files.document(snapshot_id, STATUS_NAME).get("redacted_rows", ()))
    rows: list[AuditRow] = []
    digests: dict[str, list[str]] = defaultdict(list)
    secretive: list[str] = []
    rewritten: set[str] = set()
    for entry in published.row_files(manifest):
        if entry.name not in damaged:
            for line in published.lines(files, snapshot_id, entry):
                digests[f"{entry.config}/{entry.split}"].append(hashlib.sha256(line).hexdigest())
                row = msgspec.json.decode(line, type=_Row)
                if row.row_id in redacted:
                    rewritten.add(f"{entry.config}/{entry.split}")
                if any(found.kind in SECRETS for found in scan([line.decode()])):
                    secretive.append(row.row_id)
                if row.messages:  # one whose content is withheld can give nothing away
                    rows.append(_audit_row(row, entry, known))
    plan = DEFAULT_POLICIES.audit
    splits = manifest.spec.get("splits", SPLITS)
    report = with_contacts(audit(rows, plan, splits), rows, public, plan.texts)
    checks = (
        _check("file_digests", damaged),
        _check("row_digests", _wrong_parts(manifest, digests, rewritten)),
        _check("snapshot_id", [] if _names_itself(manifest) else [manifest.snapshot_id]),
        _check("secrets", secretive),
        *report.checks,
    )
    return AuditReport(all(check.ok for check in checks), checks, report.figures)


def _audit_row(row: _Row, entry: FileEntry, known: Mapping[str, KnownAnswers]) -> AuditRow:
    answers = known.get(row.problem_id, NOTHING_KNOWN)
    return AuditRow(
        split=entry.split,
        problem_id=row.problem_id,
        query=next((message.content for message in row.messages if message.role == "user"), None),
        gold_ids=answers.gold_ids,
        winner_ids=answers.winner_ids,
        family=row.agent_family,
        trajectory_key=row.trajectory_key,
        is_followed=entry.config in TRAINED,
    )


def _wrong_parts(manifest: Manifest, digests: Mapping[str, list[str]], rewritten: Collection[str]) -> list[str]:
    """Parts whose rows are not those that were published; of one with a redacted row only their number can tell."""
    wrong = []
    for part in manifest.parts:
        name = f"{part.config}/{part.split}"
        found = digests.get(name, [])
        is_other = name not in rewritten and rows_digest(found) != part.digest
        if len(found) != part.rows or is_other:
            wrong.append(name)
    return wrong


def _names_itself(manifest: Manifest) -> bool:
    return manifest.snapshot_id == id_of(manifest.spec_digest, manifest.parts, manifest.gold_digest)


def _is_intact(path: Path, entry: FileEntry) -> bool:
    return path.is_file() and sha256_of(path) == entry.sha256


def _check(name: str, faults: list[str]) -> Check:
    return Check(name, not faults, len(faults), tuple(faults[:EXAMPLES]))
