"""What a snapshot is called, and what it says of itself: id and manifest.

Writes no files. Nothing here holds a time, a serial number or a machine's name: the same rows under the same spec have
the same id everywhere. What is learned after publication belongs in the status, not in the manifest.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from service.domain.canonical import digest
from service.domain.rows.formats.kto import Balance
from service.domain.rows.marks import marked
from service.domain.rows.records import LICENCE_UNKNOWN
from service.domain.rows.spec import SnapshotSpec
from service.domain.rows.splits import TRAINED, Config, Split

MANIFEST_VERSION = "sluice-manifest/1"
SNAPSHOT_ID = r"[0-9a-f]{64}"
"""Pattern of an id, to be matched as a whole."""

MANIFEST_NAME = "manifest.json"
AUDIT_NAME = "audit.json"
CARD_NAME = "README.md"
CROISSANT_NAME = "croissant.json"
STATUS_NAME = "status.json"


class Part(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One split of one configuration."""

    config: Config
    split: Split


class PartContents(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one part, as far as naming and counting are concerned."""

    part: Part
    row_digests: tuple[str, ...]

    @property
    def summary(self) -> "PartSummary":
        """How many rows there are, and the digest over them."""
        return PartSummary(
            config=self.part.config,
            split=self.part.split,
            rows=len(self.row_digests),
            digest=rows_digest(self.row_digests),
        )


class FileEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One data file of a snapshot."""

    name: str
    """Path below the snapshot's folder, with forward slashes."""
    config: Config | None
    """None: of all configurations."""
    split: Split
    format: str
    rows: int
    """Lines of the file; one row may give several."""
    bytes: int
    sha256: str


class PartSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of one part and the digest over them."""

    config: Config
    split: Split
    rows: int
    digest: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a snapshot says of itself; `manifest.json`."""

    snapshot_id: str
    version: str = MANIFEST_VERSION
    spec: dict[str, Any]
    spec_digest: str
    rows: dict[str, int]
    """Rows to be followed, per split, over their configurations; what was left out or failed is in `parts` alone."""
    parts: tuple[PartSummary, ...]
    files: tuple[FileEntry, ...]
    funnel: dict[str, Any]
    """Counts from trajectories to rows: verdict and selection reasons."""
    audit: dict[str, Any]
    """`ok` and the name, outcome and count of each check; `audit.json` has the examples and figures."""
    source_races: tuple[str, ...]
    gold_digest: str | None = None
    """Of the answers beside the prompts; None: there are none."""
    kto: Balance | None = None
    """Labels of the KTO examples and weights for them; None: the snapshot has none."""
    licence: str = LICENCE_UNKNOWN


def rows_digest(row_digests: Iterable[str]) -> str:
    """Digest of a part: sha256 hex over the sorted digests of its rows, one a line."""
    return hashlib.sha256("\n".join(sorted(row_digests)).encode()).hexdigest()


def id_of(spec_digest: str, parts: Iterable[PartSummary], gold_digest: str | None = None) -> str:
    """Name of a snapshot: sha256 hex of its spec's digest, the digest of each part that has rows, and of the answers.

    A manifest whose own `spec_digest` and `parts` give another id than it carries was changed.
    """
    rows = {f"{each.config}/{each.split}": each.digest for each in parts if each.rows}
    return digest({"spec": spec_digest, "rows": rows, "gold": gold_digest})


def snapshot_id(spec: SnapshotSpec, parts: Iterable[PartContents], gold_digest: str | None = None) -> str:
    """Name of the snapshot that holds these rows and answers under a spec."""
    return id_of(spec.digest, (each.summary for each in parts), gold_digest)


def build_manifest(
    spec: SnapshotSpec,
    parts: Sequence[PartContents],
    files: Sequence[FileEntry],
    funnel: Mapping[str, Any],
    audit: Mapping[str, Any],
    source_races: Iterable[str],
    *,
    gold_digest: str | None = None,
    kto: Balance | None = None,
) -> Manifest:
    """Put a manifest together.

    Args:
        spec: what the snapshot was made under.
        parts: the parts that were written.
        files: their files.
        funnel: JSON-able counts.
        audit: the audit report as plain JSON values, with `ok` and `checks`.
        source_races: ids of the races that rows come from.
        gold_digest: of the answers that were written.
        kto: labels of the KTO examples.
    """
    rows: dict[str, int] = defaultdict(int)
    for each in parts:
        rows[each.part.split.value] += len(each.row_digests) if each.part.config in TRAINED else 0
    checks = [{key: check[key] for key in ("name", "ok", "count")} for check in audit["checks"]]
    return Manifest(
        snapshot_id=snapshot_id(spec, parts, gold_digest),
        spec=msgspec.json.decode(msgspec.json.encode(spec)),
        spec_digest=spec.digest,
        rows={split.value: rows[split.value] for split in Split},
        parts=tuple(each.summary for each in sorted(parts, key=lambda one: one.part)),
        files=tuple(sorted(files, key=lambda file: file.name)),
        funnel=dict(funnel),
        audit={"ok": audit["ok"], "checks": checks},
        source_races=tuple(sorted(set(source_races))),
        gold_digest=gold_digest,
        kto=kto,
    )


def current_entries(manifest: Manifest, rewritten: Mapping[str, Mapping[str, Any]]) -> tuple[FileEntry, ...]:
    """The files of a snapshot as they are now.

    Args:
        manifest: what was published.
        rewritten: `files` of its status: what a takedown has made of some, by name.
    """
    return tuple(
        msgspec.structs.replace(entry, **rewritten[entry.name]) if entry.name in rewritten else entry
        for entry in manifest.files
    )


def document(value: object) -> bytes:
    """A value as the bytes of a published JSON document: keys sorted, indented, ending in a newline."""
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=2) + b"\n"


def initial_status() -> dict[str, Any]:
    """Status of a snapshot nothing has been learned about yet; `status.json` is the one file that may change."""
    nothing: dict[str, Any] = {"redacted_rows": []}
    return marked(nothing, ())


def part_folder(config: Config) -> str:
    """Folder of a configuration's files, below the snapshot's."""
    return f"data/{config}"
