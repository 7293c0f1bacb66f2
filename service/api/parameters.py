"""Query and path parameters that several routes share. Each refuses what Postgres cannot hold: NUL, huge numbers."""

from typing import Annotated

from fastapi import Path, Query, Request

from service.domain.attribution.provenance import StructuralClass
from service.domain.filter.structure import Outcome
from service.domain.rows.manifest import SNAPSHOT_ID
from service.domain.trajectory import ExecutionKind
from service.errors import ErrorCode, SluiceError
from service.store.figures.statistics import Dimension

TEXT = r"^[^\x00]*$"
BIGINT_MAX = 2**63 - 1
PAGE_MAX = 500
NAME_SHOWN = 40

_NAMES = "|".join(Dimension)

Wanted = Annotated[str | None, Query(max_length=200, pattern=TEXT, description="Exact value wanted.")]
WantedClass = Annotated[
    StructuralClass | None, Query(alias="class", description=f"Structural class: {', '.join(StructuralClass)}.")
]
WantedVerdict = Annotated[Outcome | None, Query(description=f"Outcome: {', '.join(Outcome)}.")]
WantedKind = Annotated[ExecutionKind | None, Query(description=f"Kind of trajectory: {', '.join(ExecutionKind)}.")]
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
TrajectoryId = Annotated[
    int,
    Path(
        ge=1,
        le=BIGINT_MAX,
        description="Number of the trajectory in this service alone; its `trajectory_key` is the same everywhere.",
    ),
]
SnapshotId = Annotated[str, Path(pattern=f"^{SNAPSHOT_ID}$", description="Sha256 that names the snapshot.")]


def refuse_unknown(request: Request) -> None:
    """Refuse query parameters that the route does not know: a misspelt filter would filter nothing.

    Raises:
        SluiceError: BAD_INPUT, naming them.
    """
    known = [parameter.alias for parameter in request.scope["route"].dependant.query_params]
    unknown = sorted(name[:NAME_SHOWN] for name in request.query_params if name not in known)
    if unknown:
        message = f"there is no parameter {', '.join(map(repr, unknown))} here; known are {', '.join(known) or 'none'}"
        raise SluiceError(ErrorCode.BAD_INPUT, message, unknown=unknown)


def dimensions(by: str) -> list[Dimension]:
    """The dimensions named by a `By` parameter, each once, in order."""
    return [Dimension(name) for name in dict.fromkeys(by.split(","))]
