"""Files of snapshots. Only names that the manifest lists are files, so no path a caller writes is ever opened."""

from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi.responses import Response

from service.api import errors
from service.api.context import Here, Reading
from service.api.downloads import Download
from service.api.parameters import TEXT, SnapshotId
from service.api.routes.snapshots import published
from service.domain.rows.manifest import STATUS_NAME
from service.store.release.shards import sha256_of

router = APIRouter(tags=["snapshots"])

MEDIA_TYPES = {
    ".parquet": "application/vnd.apache.parquet",
    ".zst": "application/zstd",
    ".json": "application/json",
    ".md": "text/markdown; charset=utf-8",
}
FOREVER = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"

FileName = Annotated[str, Path(max_length=300, pattern=TEXT, description="Name as the manifest lists it.")]
BINARY = {"schema": {"type": "string", "format": "binary"}}
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file.", "content": {"application/octet-stream": BINARY}},
    206: {"description": "The ranges asked for.", "content": {"application/octet-stream": BINARY}},
    304: {"description": "The client has these bytes."},
    416: {"description": "No byte of the file lies in the range.", "content": errors.CONTENT},
}


@router.get("/v1/snapshots/{snapshot_id}/files/{name:path}", responses=ANSWERS)
def download(context: Here, session: Reading, snapshot_id: SnapshotId, name: FileName) -> Response:
    """One file, with a strong ETag (its sha256), Range, If-Range and If-None-Match."""
    published(session, snapshot_id)
    path = context.files.path(snapshot_id, name)
    listed = {entry.name: entry.sha256 for entry in context.files.entries(snapshot_id)}
    sha256 = listed.get(name) or sha256_of(path)
    return Download(
        path,
        etag=sha256,
        media_type=MEDIA_TYPES[path.suffix],
        headers={
            "X-Content-SHA256": sha256,
            "Cache-Control": ASK_AGAIN if name == STATUS_NAME else FOREVER,
        },
    )
