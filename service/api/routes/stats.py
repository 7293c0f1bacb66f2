"""`/v1/stats`: the corpus in figures."""

from fastapi import APIRouter

from service.api.context import Here, Reading
from service.api.parameters import By, dimensions
from service.api.schemas import Stats
from service.store.figures.summary import summarise, tabulate

router = APIRouter(tags=["corpus"])


@router.get("/v1/stats")
def stats(context: Here, session: Reading, by: By = None) -> Stats:
    """The summary, and with `by` the number of trajectories for every combination of those dimensions."""
    summary = summarise(session, context.rules_digest)
    rows = tabulate(session, context.rules_digest, dimensions(by)) if by else None
    return Stats.model_validate(summary.to_json() | {"rows": rows})
