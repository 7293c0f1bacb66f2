"""`/v1/races`: what the source has run, how far the harvest of each has come, and how its seed commitment stands."""

from fastapi import APIRouter

from service.api.context import Reading
from service.api.schemas import Race, Races
from service.store.figures import race_figures
from service.store.harvest import standings

router = APIRouter(tags=["corpus"])


@router.get("/v1/races")
def races(session: Reading) -> Races:
    """All races, newest first."""
    seeds = {race_id: found._asdict() for race_id, found in standings.verifications(session).items()}
    rows = [race._asdict() | {"seed_commitment": seeds.get(race.race_id)} for race in race_figures.races(session)]
    return Races(races=[Race.model_validate(row) for row in rows])
