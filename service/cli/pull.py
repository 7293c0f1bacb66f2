"""`sluice pull`: a snapshot from a running service into a folder, whole and verified. Trusts no name and no byte."""

import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated

import httpx
import msgspec
import typer

from service.cli import naming
from service.cli.marks import marks_in, marks_in_words
from service.cli.options import AsJson
from service.cli.output import note, print_json
from service.domain.rows.manifest import (
    AUDIT_NAME,
    CARD_NAME,
    CROISSANT_NAME,
    MANIFEST_NAME,
    STATUS_NAME,
    FileEntry,
    Manifest,
    current_entries,
    id_of,
)
from service.errors import ErrorCode, SluiceError
from service.store.release.shards import sha256_of

TIMEOUT_SECONDS = 60.0
TRIES = 6
PAUSE_SECONDS = 0.5
"""Before the second try; doubled for each one after."""
CHUNK_BYTES = 1 << 20
DOCUMENT_LIMIT_BYTES = 64 << 20
PARTIAL = ".partial"
PLAIN = {"Accept-Encoding": "identity"}
"""An encoded answer would make offsets mean something else, and could hold far more than its size."""

Id = Annotated[str, typer.Argument(metavar="ID", help="Id of a published snapshot, or its first 8 digits or more.")]
Url = Annotated[str, typer.Option("--url", help="Base URL of a Sluice service.")]
Dest = Annotated[Path, typer.Option("--dest", help="Folder to put the files in; made if it is not there.")]


def command(snapshot_id: Id, url: Url, dest: Dest, as_json: AsJson = False) -> None:
    """Download a snapshot; what is there already is not fetched again."""
    service = _service(url)
    with httpx.Client(timeout=TIMEOUT_SECONDS, headers=PLAIN) as client:
        if not naming.is_whole(snapshot_id):
            snapshot_id = naming.find(snapshot_id, _published(client, service))
        try:
            manifest = _pull(client, service, snapshot_id, dest)
        except OSError as error:
            fault = f"{error.filename or dest} cannot be used: {error.strerror or error}"
            raise SluiceError(ErrorCode.BAD_INPUT, fault) from error
    note(f"{len(manifest.files)} files verified")
    marks = marks_in((dest / STATUS_NAME).read_bytes())
    if marks:
        note(f"warning: SN15 has changed its word on rows of this snapshot: {marks_in_words(marks)}; see {STATUS_NAME}")
    if as_json:
        told = {"snapshot_id": snapshot_id, "dest": str(dest), "rows": manifest.rows, "files": len(manifest.files)}
        print_json(told | {"marks": marks})
    else:
        typer.echo(str(dest))


def _service(url: str) -> str:
    """The URL without a slash at its end.

    Raises:
        SluiceError: BAD_INPUT when it is none.
    """
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise SluiceError(ErrorCode.BAD_INPUT, f"--url {url!r} is no URL: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.host:
        raise SluiceError(ErrorCode.BAD_INPUT, f"--url must begin with http:// or https:// and a host, not {url!r}")
    return url.rstrip("/")


class _Published(msgspec.Struct):
    id: str


class _Listing(msgspec.Struct):
    snapshots: list[_Published]


def _published(client: httpx.Client, service: str) -> list[str]:
    content = _document(client, f"{service}/v1/snapshots")
    try:
        return [each.id for each in msgspec.json.decode(content, type=_Listing).snapshots]
    except msgspec.DecodeError as error:
        raise SluiceError(ErrorCode.BAD_INPUT, f"{service} is no Sluice service: it lists no snapshots") from error


def _pull(client: httpx.Client, service: str, snapshot_id: str, dest: Path) -> Manifest:
    """Fetch everything into `dest`; a folder that has a manifest is complete."""
    base = f"{service}/v1/snapshots/{snapshot_id}/files"
    try:
        content = _document(client, f"{base}/{MANIFEST_NAME}")
    except SluiceError as error:
        if error.code is ErrorCode.NOT_FOUND:
            raise SluiceError(error.code, f"{service} has no such snapshot: {snapshot_id}") from error
        raise
    manifest = _manifest(content, snapshot_id)
    paths = {entry.name: _below(dest, entry.name) for entry in manifest.files}
    status = _document(client, f"{base}/{STATUS_NAME}")
    entries = _entries(manifest, status)
    _claim(dest, snapshot_id, content)
    for entry in entries:
        _fetch(client, f"{base}/{entry.name}", paths[entry.name], entry)
    for name in (CARD_NAME, CROISSANT_NAME, AUDIT_NAME):
        _put(dest / name, _document(client, f"{base}/{name}"))
    _put(dest / STATUS_NAME, status)
    _put(dest / MANIFEST_NAME, content)
    return manifest


def _manifest(content: bytes, snapshot_id: str) -> Manifest:
    try:
        manifest = msgspec.json.decode(content, type=Manifest)
    except msgspec.DecodeError as error:
        raise SluiceError(ErrorCode.DIGEST_MISMATCH, "the service's manifest cannot be read") from error
    if not manifest.snapshot_id == snapshot_id == id_of(manifest.spec_digest, manifest.parts, manifest.gold_digest):
        raise SluiceError(ErrorCode.DIGEST_MISMATCH, "the service's manifest does not have the digest it is named by")
    return manifest


class _Rewritten(msgspec.Struct):
    """What a takedown has made of one file."""

    rows: int
    bytes: int
    sha256: str


class _Status(msgspec.Struct):
    files: dict[str, _Rewritten] = {}


def _entries(manifest: Manifest, status: bytes) -> tuple[FileEntry, ...]:
    """The files as the service has them now."""
    try:
        rewritten = msgspec.json.decode(status, type=_Status).files
    except msgspec.DecodeError as error:
        raise SluiceError(ErrorCode.DIGEST_MISMATCH, "the service's status cannot be read") from error
    return current_entries(manifest, {name: msgspec.structs.asdict(now) for name, now in rewritten.items()})


def _claim(dest: Path, snapshot_id: str, content: bytes) -> None:
    """Make a folder for this snapshot, or go on in one that an earlier try has marked with its unfinished manifest.

    Raises:
        SluiceError: BAD_INPUT for a folder of anything else: nobody's files are overwritten.
    """
    present = [dest / name for name in (MANIFEST_NAME, MANIFEST_NAME + PARTIAL) if (dest / name).is_file()]
    if any(_held(path) != snapshot_id for path in present):
        raise SluiceError(ErrorCode.BAD_INPUT, f"{dest} holds another snapshot; choose another folder")
    if present:
        return
    if dest.exists() and any(dest.iterdir()):
        raise SluiceError(ErrorCode.BAD_INPUT, f"{dest} holds files of something else; choose an empty folder")
    dest.mkdir(parents=True, exist_ok=True)
    (dest / (MANIFEST_NAME + PARTIAL)).write_bytes(content)


def _held(manifest: Path) -> str | None:
    """Id of the snapshot that a manifest is of; None when it is no manifest."""
    try:
        return msgspec.json.decode(manifest.read_bytes(), type=Manifest).snapshot_id
    except msgspec.DecodeError:
        return None


def _below(dest: Path, name: str) -> Path:
    """Where a file goes. A name is the service's word: it must stay below `dest`."""
    path = PurePosixPath(name)
    if (
        path.is_absolute()
        or ".." in path.parts
        or "\\" in name
        or not name.isprintable()
        or path.name in ("", MANIFEST_NAME)
    ):
        raise SluiceError(ErrorCode.BAD_INPUT, f"the manifest names a file outside the snapshot: {name!r}")
    return dest.joinpath(*path.parts)


class _Passing(Exception):
    """A fault that another try may get over."""


def _fetch(client: httpx.Client, url: str, path: Path, entry: FileEntry) -> None:
    """Fetch one file, going on where an earlier try ended; it appears under its name once its sha256 is right."""
    if path.is_file() and sha256_of(path) == entry.sha256:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + PARTIAL)
    code, fault = ErrorCode.SERVICE_UNAVAILABLE, ""
    for _ in _tries():
        try:
            _continue(client, url, partial, entry)
        except (_Passing, httpx.TransportError) as error:
            code, fault = ErrorCode.SERVICE_UNAVAILABLE, _told(error)
        else:
            if sha256_of(partial) == entry.sha256:
                partial.replace(path)
                return
            partial.unlink()
            code, fault = ErrorCode.DIGEST_MISMATCH, "it does not have the sha256 it should have"
        note(f"{entry.name}: {fault}")
    raise SluiceError(code, f"{entry.name} could not be fetched: {fault}")


def _tries() -> Iterator[None]:
    """As often as something is tried, with a growing pause before each further try."""
    yield
    for number in range(TRIES - 1):
        time.sleep(PAUSE_SECONDS * 2**number)
        yield


def _continue(client: httpx.Client, url: str, partial: Path, entry: FileEntry) -> None:
    present = partial.stat().st_size if partial.is_file() else 0
    if present > entry.bytes:
        partial.unlink()
        present = 0
    if present == entry.bytes:
        partial.touch()
        return
    headers = {"Range": f"bytes={present}-", "If-Range": f'"{entry.sha256}"'} if present else {}
    with client.stream("GET", url, headers=headers) as answer:
        _require_success(answer)
        resumed = answer.status_code == httpx.codes.PARTIAL_CONTENT
        with partial.open("ab" if resumed else "wb") as file:
            for chunk in answer.iter_raw(CHUNK_BYTES):
                file.write(chunk)
                if file.tell() > entry.bytes:
                    return


def _document(client: httpx.Client, url: str) -> bytes:
    """A whole document, counted as it comes in.

    Raises:
        SluiceError: BAD_INPUT when it is larger than any such document, else as the service answers.
    """
    fault = ""
    for _ in _tries():
        try:
            return _read_document(client, url)
        except (_Passing, httpx.TransportError) as error:
            fault = _told(error)
            if isinstance(error, httpx.ConnectError):
                break
            note(fault)
    raise SluiceError(ErrorCode.SERVICE_UNAVAILABLE, f"{url} could not be fetched: {fault}")


def _read_document(client: httpx.Client, url: str) -> bytes:
    content = bytearray()
    with client.stream("GET", url) as answer:
        _require_success(answer)
        for chunk in answer.iter_raw():
            content += chunk
            if len(content) > DOCUMENT_LIMIT_BYTES:
                raise SluiceError(ErrorCode.BAD_INPUT, f"{url} is larger than any such document")
    return bytes(content)


def _require_success(answer: httpx.Response) -> None:
    """Let only an answer through that holds what was asked for, byte by byte.

    Raises:
        _Passing: the service is busy or failing.
        SluiceError: it will not answer otherwise.
    """
    told = f"the service answered {answer.status_code} for {answer.url}"
    if answer.is_server_error or answer.status_code == httpx.codes.TOO_MANY_REQUESTS:
        raise _Passing(told)
    if not answer.is_success:
        code = ErrorCode.NOT_FOUND if answer.status_code == httpx.codes.NOT_FOUND else ErrorCode.SERVICE_UNAVAILABLE
        raise SluiceError(code, told)
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        raise SluiceError(ErrorCode.BAD_INPUT, f"{answer.url} came encoded, which was not asked for")


def _told(error: Exception) -> str:
    return str(error) or type(error).__name__


def _put(path: Path, content: bytes) -> None:
    partial = path.with_name(path.name + PARTIAL)
    partial.write_bytes(content)
    partial.replace(path)
