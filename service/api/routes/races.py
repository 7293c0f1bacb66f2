"""`/v1/races`: what the source has run, and how far the harvest of each race has come."""

from fastapi import APIRouter

from service.api.context import Reading
from service.api.schemas import Race, Races
from service.store import race_figures

router = APIRouter(tags=["corpus"])


@router.get("/v1/races")
def races(session: Reading) -> Races:
    """All races, newest first."""
    return Races(races=[Race.model_validate(race) for race in race_figures.races(session)])
