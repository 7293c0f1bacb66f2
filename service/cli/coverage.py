"""`sluice coverage`: what is there of each race, what is waited for, failed, gone. It counts nothing itself."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from service.cli.joined import joined
from service.cli.options import AsJson, DataDir, settings
from service.cli.output import print_json, print_table
from service.store.engine import reading
from service.store.harvest.coverage import Cover, Coverage, Refused, coverage
from service.store.harvest.trajectory_history import History

ITEMS = ("items", "fetched", "changed", "gone", "embargoed", "failed", "expected", "share")
RUNS = ("runs listed", "to list", "not counting")
NOTHING = "\N{EM DASH}"

Race = Annotated[
    str | None, typer.Option("--race", help="Only this race, with its agent versions; `qualifying` for what has none.")
]


def command(data_dir: DataDir = None, race: Race = None, as_json: AsJson = False) -> None:
    """Print what is there of each race, what is waited for, what failed, what is gone."""
    with joined(settings(data_dir=data_dir)) as at, reading(at.engine) as session:
        found = coverage(session, race)
    if as_json:
        print_json(to_json(found))
        return
    rows = [(each.race_id, each.race_number, each.status, *_figures(each.cover)) for each in found.races]
    _print("Coverage by race", ("race", "number", "status", *ITEMS, *RUNS), rows)
    if found.agents is not None:
        versions = [(each.agent_name, each.agent_version_id, *_figures(each.cover)) for each in found.agents]
        _print("By agent version", ("agent", "version", *ITEMS, *RUNS), versions)
    _print_refused(found)
    _print_history(found.history)


def to_json(found: Coverage) -> dict[str, Any]:
    """The same as `/v1/coverage` says."""
    return {
        "races": [each._asdict() | {"cover": _cover(each.cover)} for each in found.races],
        "agents": found.agents and [each._asdict() | {"cover": _cover(each.cover)} for each in found.agents],
        "history": found.history._asdict() | {"difference": found.history.difference},
    }


def _cover(cover: Cover) -> dict[str, Any]:
    told: dict[str, Any] = cover._asdict() | {"share": cover.share, "runs": cover.runs._asdict()}
    told |= {name: [each._asdict() for each in told[name]] for name in ("embargoes", "failures")}
    lost = [{"reason": each.reason, "items": each.items, "attempts": each.attempts} for each in cover.losses]
    return told | {"losses": lost}


def _figures(cover: Cover) -> list[object]:
    share = None if cover.share is None else f"{cover.share:.1%}"
    return [*(getattr(cover, name) for name in ITEMS[:-1]), share, *cover.runs]


def _print_refused(found: Coverage) -> None:
    rows = []
    for race in found.races:
        kinds = {"embargoed": race.cover.embargoes, "failed": race.cover.failures, "gone": race.cover.losses}
        rows += [(race.race_id, kind, *_refused(each)) for kind, whys in kinds.items() for each in whys]
    if rows:
        columns = ("race", "state", "reason", "items", "most attempts", "next try", "last try")
        _print("What is not there, and why", columns, rows)


def _refused(each: Refused) -> list[object]:
    return [each.reason, each.items, each.attempts, _time(each.first_try_at), _time(each.last_try_at)]


def _print_history(history: History) -> None:
    row = (history.total, _time(history.read_at), history.listed, history.stored, history.difference)
    columns = ("SN15's count", "read at", "listed here", "stored here", "difference")
    _print("Pairs of agent version and problem", columns, [row])


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat(timespec="seconds")


def _print(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    print_table(title, columns, [[NOTHING if value is None else value for value in row] for row in rows])
