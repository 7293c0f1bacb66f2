"""`/v1/snapshots`: what has been released. Their files are served by `files`."""

from fastapi import APIRouter
from fastapi.responses import Response
from sqlalchemy.orm import Session

from service.api.context import Here, Reading
from service.api.parameters import SnapshotId
from service.api.schemas import LeftOut, SnapshotDetail, SnapshotFile, SnapshotItem, Snapshots, SnapshotStatus
from service.domain.rows.manifest import STATUS_NAME
from service.errors import ErrorCode, SluiceError
from service.store.figures.summary import figures
from service.store.models import Snapshot
from service.store.release import snapshots

router = APIRouter(prefix="/v1/snapshots", tags=["snapshots"])


@router.get("")
def listing(session: Reading) -> Snapshots:
    """All published snapshots, newest first."""
    return Snapshots(snapshots=[_item(snapshot) for snapshot in snapshots.listing(session)])


@router.get("/{snapshot_id}")
def detail(session: Reading, snapshot_id: SnapshotId) -> SnapshotDetail:
    """One snapshot and where its files are."""
    snapshot = published(session, snapshot_id)
    manifest = snapshot.manifest
    files = [
        SnapshotFile(**entry, url=f"/v1/snapshots/{snapshot_id}/files/{entry['name']}") for entry in manifest["files"]
    ]
    return SnapshotDetail(
        **_item(snapshot).model_dump(),
        source_races=manifest["source_races"],
        licence=manifest["licence"],
        files=files,
    )


@router.get(
    "/{snapshot_id}/manifest", responses={200: {"content": {"application/json": {"schema": {"type": "object"}}}}}
)
def manifest(context: Here, session: Reading, snapshot_id: SnapshotId) -> Response:
    """The manifest, byte for byte as published."""
    published(session, snapshot_id)
    return Response(context.files.path(snapshot_id, "manifest.json").read_bytes(), media_type="application/json")


@router.get("/{snapshot_id}/status")
def status(context: Here, session: Reading, snapshot_id: SnapshotId) -> SnapshotStatus:
    """What has been learned about the snapshot since it was published."""
    published(session, snapshot_id)
    return SnapshotStatus.model_validate(context.files.document(snapshot_id, STATUS_NAME))


def published(session: Session, snapshot_id: str) -> Snapshot:
    """The snapshot of this id.

    Raises:
        SluiceError: NOT_FOUND when none was published under it.
    """
    snapshot = snapshots.get(session, snapshot_id)
    if snapshot is None:
        raise SluiceError(ErrorCode.NOT_FOUND, "there is no such snapshot", snapshot_id=snapshot_id)
    return snapshot


def _item(snapshot: Snapshot) -> SnapshotItem:
    short = figures(snapshot)
    return SnapshotItem(
        id=short.id,
        rows=short.rows,
        audit=short.audit,
        left_out=LeftOut.model_validate(short.left_out),
        published_at=snapshot.published_at,
        spec_digest=snapshot.manifest["spec_digest"],
    )
