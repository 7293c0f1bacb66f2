"""Query and path parameters that several routes share. Each refuses what Postgres cannot hold: NUL, huge numbers."""

from typing import Annotated

from fastapi import Path, Query

from service.domain.manifest import SNAPSHOT_ID
from service.store.statistics import Dimension

TEXT = r"^[^\x00]*$"
BIGINT_MAX = 2**63 - 1
PAGE_MAX = 500

_NAMES = "|".join(Dimension)

Wanted = Annotated[str | None, Query(max_length=200, pattern=TEXT, description="Exact value wanted.")]
By = Annotated[
    str | None,
    Query(
        max_length=200,
        pattern=rf"^({_NAMES})(,({_NAMES}))*$",
        description=f"Dimensions to count by, separated by commas: {', '.join(Dimension)}.",
    ),
]
After = Annotated[int, Query(ge=0, le=BIGINT_MAX, description="Only ids above this one: `next_after` of a page.")]
Limit = Annotated[int, Query(ge=1, le=PAGE_MAX, description="Rows at most.")]
TrajectoryId = Annotated[int, Path(ge=1, le=BIGINT_MAX)]
SnapshotId = Annotated[str, Path(pattern=f"^{SNAPSHOT_ID}$", description="Sha256 that names the snapshot.")]


def dimensions(by: str) -> list[Dimension]:
    """The dimensions named by a `By` parameter, each once, in order."""
    return [Dimension(name) for name in dict.fromkeys(by.split(","))]
