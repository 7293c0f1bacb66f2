"""The page: an overview of the corpus as it comes in, and the reference of the REST interface. No figure is made here.

Everything upstream wrote is escaped by the templates; the page runs one script of ours and nothing else.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from sqlalchemy.orm import Session
from starlette.staticfiles import StaticFiles

from service.api.context import Here, Reading
from service.store.figures import race_figures
from service.store.figures.race_figures import RaceFigures
from service.store.figures.statistics import Dimension
from service.store.figures.summary import UNJUDGED, SnapshotFigures, Summary, figures, summarise, tabulate
from service.store.harvest import walks
from service.store.release import snapshots

HERE = Path(__file__).parent
AGENTS_SHOWN = 15
RACES_SHOWN = 20

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


class Bar(NamedTuple):
    """One line of a bar chart; `percent` is of what the chart's caption names."""

    label: str
    number: int
    percent: float


class RaceLine(NamedTuple):
    """One race as the page shows it: items that are settled (fetched or gone) out of all announced."""

    race: RaceFigures
    settled: int
    items: int
    percent: float


class AgentLine(NamedTuple):
    """One agent as the page shows it."""

    agent: str
    trajectories: int
    kept: int
    percent: float


def install(app: FastAPI) -> None:
    """Add the page, its parts and its files to `app`."""
    app.include_router(router)
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")


@router.get("/")
def page(context: Here, session: Reading, request: Request) -> HTMLResponse:
    """The overview, complete without its script."""
    return _render("overview.html", url=_base(request), **overview(session, context.rules_digest))


@router.get("/partials/overview")
def partial(context: Here, session: Reading, request: Request) -> HTMLResponse:
    """The part of the overview that its script renews."""
    return _render("overview_part.html", url=_base(request), **overview(session, context.rules_digest))


@router.get("/docs")
def reference(request: Request) -> HTMLResponse:
    """The REST interface for people, from its OpenAPI document."""
    return _render("reference.html", api=request.app.openapi())


def _base(request: Request) -> str:
    return str(request.base_url).rstrip("/")


def overview(session: Session, rules_digest: str) -> dict[str, Any]:
    """What the overview shows, from one view of the data."""
    summary = summarise(session, rules_digest)
    published = snapshots.listing(session)
    races = race_figures.races(session)
    return {
        "summary": summary,
        "funnel": _funnel(summary, figures(published[0]) if published else None),
        "reasons": _bars(summary.verdicts.reasons, summary.trajectories),
        "classes": _bars(summary.by_class, summary.trajectories),
        "pools": _bars(summary.pools, sum(summary.pools.values())),
        "refusals": summary.harvest.reasons,
        "races": [_race_line(race) for race in races[:RACES_SHOWN]],
        "races_hidden": max(len(races) - RACES_SHOWN, 0),
        "agents": _agents(session, rules_digest),
        "snapshot": published[0] if published else None,
        "snapshots": len(published),
        "walk": walks.latest(session),
        "now": datetime.now(UTC),
    }


def _funnel(summary: Summary, latest: SnapshotFigures | None) -> list[Bar]:
    """From announced to released. What is kept and not in the latest snapshot stands by reason between the two."""
    harvest, verdicts = summary.harvest, summary.verdicts
    steps = {
        "announced": harvest.items,
        "harvested": summary.trajectories,
        "judged": summary.trajectories - verdicts.unjudged,
        "kept negative (in no split yet)": verdicts.kept_negative,
        "kept": verdicts.kept,
    }
    if latest is not None:
        left_out = latest.left_out.pools | latest.left_out.selection
        steps |= {f"left out: {reason}": rows for reason, rows in left_out.items() if rows}
    steps["in the latest snapshot"] = sum(latest.rows.values()) if latest else 0
    return _bars(steps, max(harvest.items, summary.trajectories))


def _bars(counts: dict[str, int], whole: int) -> list[Bar]:
    return [Bar(label, count, _percent(count, whole)) for label, count in counts.items()]


def _race_line(race: RaceFigures) -> RaceLine:
    items = sum(race.ledger.values())
    settled = race.ledger.get("fetched", 0) + race.ledger.get("gone", 0)
    return RaceLine(race, settled, items, _percent(settled, items))


def _agents(session: Session, rules_digest: str) -> list[AgentLine]:
    totals: dict[str, list[int]] = {}
    for row in tabulate(session, rules_digest, [Dimension.AGENT, Dimension.VERDICT]):
        total = totals.setdefault(str(row["agent"]), [0, 0])
        total[0] += int(row["count"] or 0)
        total[1] += int(row["count"] or 0) if row["verdict"] == "kept" else 0
    lines = [AgentLine(agent, every, kept, _percent(kept, every)) for agent, (every, kept) in totals.items()]
    return sorted(lines, key=lambda line: (-line.kept, -line.trajectories, line.agent))[:AGENTS_SHOWN]


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0


def _thousands(number: int) -> str:
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def _moment(at: datetime | None) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC") if at else "\N{EM DASH}"


def _words(name: str) -> str:
    return "not judged yet" if name == UNJUDGED else name.replace("_", " ")


def _counted(number: int, one: str, more: str) -> str:
    return one if number == 1 else more


def _marked(text: str) -> Markup:
    """Escaped, with what stands between backticks as code."""
    pieces = re.split(r"`([^`]+)`", text)
    marked = (Markup("<code>{}</code>").format(piece) if odd % 2 else escape(piece) for odd, piece in enumerate(pieces))
    return Markup("").join(marked)


_FILTERS: dict[str, Callable[..., str]] = {
    "thousands": _thousands,
    "moment": _moment,
    "words": _words,
    "counted": _counted,
    "marked": _marked,
}
_templates = Environment(
    loader=FileSystemLoader(HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.filters.update(_FILTERS)


def _render(template: str, **values: Any) -> HTMLResponse:
    return HTMLResponse(_templates.get_template(template).render(values), headers={"Cache-Control": "no-store"})
