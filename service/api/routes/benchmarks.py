"""`/v1/benchmarks`: the public benchmarks that stand, and how far the corpus touches them. Serves no item of any."""

from typing import Annotated

from fastapi import APIRouter, Path

from service.api.benchmark_schemas import (
    BenchmarkEntry,
    BenchmarkReport,
    Benchmarks,
    PublishedContacts,
    RaceContacts,
)
from service.api.context import Reading
from service.errors import ErrorCode, SluiceError
from service.store.figures import contamination

router = APIRouter(prefix="/v1/benchmarks", tags=["benchmarks"])

Name = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$", description="Name of a benchmark.")]


@router.get("")
def listing(session: Reading) -> Benchmarks:
    """All benchmarks that stand, by name."""
    return Benchmarks(benchmarks=[BenchmarkEntry(**each._asdict()) for each in contamination.standing(session)])


@router.get("/{benchmark}")
def report(session: Reading, benchmark: Name) -> BenchmarkReport:
    """Which problems, races and published rows touch a benchmark. Counts alone."""
    found = contamination.report(session, benchmark)
    if found is None:
        raise SluiceError(ErrorCode.NOT_FOUND, "there is no such benchmark", name=benchmark)
    return BenchmarkReport(
        benchmark=BenchmarkEntry(**found.benchmark._asdict()),
        items_touched=found.items_touched,
        kinds=found.kinds,
        races=[RaceContacts(**each._asdict()) for each in found.races],
        snapshots=[PublishedContacts(**each._asdict()) for each in found.snapshots],
    )
