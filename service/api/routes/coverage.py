"""`/v1/coverage`: what is there of each race, what is waited for, what failed, what is gone."""

from fastapi import APIRouter

from service.api.context import Reading
from service.api.coverage_schemas import Coverage
from service.api.parameters import Wanted
from service.store.harvest.coverage import coverage

router = APIRouter(tags=["corpus"])


@router.get("/v1/coverage")
def show(session: Reading, race: Wanted = None) -> Coverage:
    """All races, or with `race` (an id, or `qualifying`) that one and its agent versions."""
    return Coverage.model_validate(coverage(session, race))
