"""Published snapshots as folders of files. Knows no SQL and decides nothing: rows, manifest and audit are given.

A snapshot is written into a draft folder and appears under its id by one rename, whole or not at all. A draft whose
writer died is removed by the next one; a draft in use is held by a lock that dies with its process. After publication
only the status changes.
"""

import fcntl
import os
import re
import shutil
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from service.domain.leaks.leakage import ProblemFacts
from service.domain.rows.card import dataset_card
from service.domain.rows.croissant import croissant
from service.domain.rows.formats.kto import Balance, balance
from service.domain.rows.manifest import (
    AUDIT_NAME,
    CARD_NAME,
    CROISSANT_NAME,
    MANIFEST_NAME,
    SNAPSHOT_ID,
    STATUS_NAME,
    FileEntry,
    Manifest,
    Part,
    PartContents,
    current_entries,
    document,
    initial_status,
)
from service.domain.rows.records import Row
from service.domain.rows.spec import STANDING_FORMATS
from service.domain.rows.splits import Config, Split
from service.errors import ErrorCode, SluiceError
from service.store.release import prompt_files
from service.store.release.prompt_files import PromptWriter
from service.store.release.shards import PartWriter

_ID = re.compile(SNAPSHOT_ID)
_DRAFT_PREFIX = ".draft-"
_DOCUMENTS = frozenset({MANIFEST_NAME, AUDIT_NAME, CARD_NAME, CROISSANT_NAME, STATUS_NAME})


class Contents(NamedTuple):
    """What a finished draft holds: the parts that have rows, and their files."""

    parts: tuple[PartContents, ...]
    files: tuple[FileEntry, ...]
    gold_digest: str | None
    kto: Balance | None


class Draft:
    """A snapshot being written: `add` rows, `finish`, then `publish`. Made by `FileStore.draft`."""

    def __init__(self, store: "FileStore", folder: Path, writers: ExitStack, formats: Collection[str]) -> None:
        self._store = store
        self._folder = folder
        self._writers = writers
        self._formats = formats
        self._shard_formats = tuple(form for form in formats if form != prompt_files.FORMAT)
        self._parts: dict[Part, PartWriter] = {}
        self._prompts = writers.enter_context(PromptWriter(folder))

    def add(self, split: Split, row: Row, problem: ProblemFacts) -> None:
        """Append a row and pose its problem; rows of one part must come in the order of their `row_id`."""
        part = Part(config=row.config, split=split)
        writer = self._parts.get(part)
        if writer is None:
            opened = PartWriter(self._folder, part, self._shard_formats)
            writer = self._parts[part] = self._writers.enter_context(opened)
        writer.add(row)
        if prompt_files.FORMAT in self._formats:
            self._prompts.add(split, row, problem)

    def finish(self) -> Contents:
        """Close the data files. A part that got no row has no files."""
        done = [self._parts[part].finish() for part in sorted(self._parts)]
        prompts = self._prompts.finish()
        files = (*(entry for _, entries in done for entry in entries), *prompts.entries)
        return Contents(
            parts=tuple(contents for contents, _ in done),
            files=files,
            gold_digest=prompts.gold_digest,
            kto=_labels(files) if "kto" in self._formats else None,
        )

    def publish(self, manifest: Manifest, audit: Mapping[str, Any]) -> bool:
        """Let the snapshot appear under its id, safe on disk. False: it was there already, and stays as it was."""
        documents = {
            MANIFEST_NAME: document(manifest),
            AUDIT_NAME: document(audit),
            CARD_NAME: dataset_card(manifest, audit).encode(),
            CROISSANT_NAME: document(croissant(manifest)),
            STATUS_NAME: document(initial_status()),
        }
        for name, content in documents.items():
            (self._folder / name).write_bytes(content)
        _sync_tree(self._folder)
        return self._store.adopt(self._folder, manifest.snapshot_id)


class FileStore:
    """The folder of published snapshots. Several processes may use it at once."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @contextmanager
    def draft(self, formats: Collection[str] = STANDING_FORMATS) -> Iterator[Draft]:
        """A new draft, removed at the end unless published. Also removes drafts whose writers died."""
        self.root.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            with _locked(self.root):
                self._remove_dead_drafts()
                folder = self.root / f"{_DRAFT_PREFIX}{uuid.uuid4().hex}"
                folder.mkdir()
                stack.enter_context(_locked(folder))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            yield Draft(self, folder, stack.enter_context(ExitStack()), formats)

    def _remove_dead_drafts(self) -> None:
        for folder in self.root.glob(f"{_DRAFT_PREFIX}*"):
            try:
                with _locked(folder, wait=False):
                    shutil.rmtree(folder)
            except (BlockingIOError, FileNotFoundError):
                continue

    def adopt(self, folder: Path, snapshot_id: str) -> bool:
        """Rename a synced draft to its id. False: that snapshot exists, so the draft is not needed."""
        target = self.root / _checked(snapshot_id)
        with _locked(self.root):
            if target.exists():
                return False
            folder.rename(target)
            _sync(self.root)
        return True

    def ids(self) -> list[str]:
        """Ids of all published snapshots, sorted."""
        if not self.root.is_dir():
            return []
        return sorted(entry.name for entry in self.root.iterdir() if _ID.fullmatch(entry.name))

    def manifest(self, snapshot_id: str) -> Manifest:
        """The manifest of a snapshot.

        Raises:
            SluiceError: NOT_FOUND if there is no such snapshot.
        """
        try:
            content = (self.root / _checked(snapshot_id) / MANIFEST_NAME).read_bytes()
        except FileNotFoundError as fault:
            raise _not_found(snapshot_id) from fault
        return msgspec.json.decode(content, type=Manifest)

    def entries(self, snapshot_id: str) -> tuple[FileEntry, ...]:
        """The data files as they are now: as the manifest says, apart from those that a takedown has rewritten.

        Raises:
            SluiceError: NOT_FOUND if there is no such snapshot.
        """
        rewritten = self.document(snapshot_id, STATUS_NAME).get("files", {})
        return current_entries(self.manifest(snapshot_id), rewritten)

    def path(self, snapshot_id: str, name: str) -> Path:
        """Where a file of a snapshot lies. Only names the manifest lists and the five documents are files.

        Raises:
            SluiceError: NOT_FOUND for every other name.
        """
        listed = {entry.name for entry in self.manifest(snapshot_id).files} | _DOCUMENTS
        if name not in listed:
            raise _not_found(f"{snapshot_id}/{name}")
        return self.root / snapshot_id / name

    def document(self, snapshot_id: str, name: str) -> dict[str, Any]:
        """One of the JSON documents of a snapshot, such as `audit.json` or `status.json`."""
        content: dict[str, Any] = msgspec.json.decode(self.path(snapshot_id, name).read_bytes())
        return content

    def set_status(self, snapshot_id: str, status: Mapping[str, Any]) -> None:
        """Replace a snapshot's status, at once and whole."""
        path = self.path(snapshot_id, STATUS_NAME)
        fresh = path.with_name(f".{STATUS_NAME}.{uuid.uuid4().hex}")
        fresh.write_bytes(document(status))
        _sync(fresh)
        fresh.replace(path)
        _sync(path.parent)


def _labels(files: Iterable[FileEntry]) -> Balance:
    """Examples by label: those of failures are undesirable, all others desirable."""
    rows = Counter[bool]()
    for entry in files:
        if entry.format == "kto":
            rows[entry.config is Config.NEGATIVE] += entry.rows
    return balance(desirable=rows[False], undesirable=rows[True])


def _checked(snapshot_id: str) -> str:
    if not _ID.fullmatch(snapshot_id):
        raise _not_found(snapshot_id)
    return snapshot_id


def _not_found(what: str) -> SluiceError:
    return SluiceError(ErrorCode.NOT_FOUND, "there is no such snapshot or file", name=what)


@contextmanager
def _locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a folder's lock, which the system drops when the process ends however it ends.

    Raises:
        BlockingIOError: another holds it and `wait` is False.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _sync_tree(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        _sync(path)
    _sync(folder)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
