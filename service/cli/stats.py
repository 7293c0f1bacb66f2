"""`sluice stats`: the corpus in figures, whole or counted by dimensions."""

from typing import Annotated

import typer

from service.cli.joined import joined
from service.cli.options import AsJson, DataDir, settings
from service.cli.output import print_json, print_summary, print_table
from service.domain.policy import DEFAULT_POLICIES
from service.errors import ErrorCode, SluiceError
from service.store.engine import reading
from service.store.figures.statistics import Dimension
from service.store.figures.summary import summarise, tabulate

NAMES = ", ".join(Dimension)

By = Annotated[str | None, typer.Option("--by", help=f"Count by these, separated by commas: {NAMES}.")]


def command(data_dir: DataDir = None, by: By = None, as_json: AsJson = False) -> None:
    """Print the corpus in figures."""
    dimensions = _dimensions(by) if by is not None else []
    rules = DEFAULT_POLICIES.rules.digest
    with joined(settings(data_dir=data_dir)) as at, reading(at.engine) as session:
        if not dimensions:
            print_summary(summarise(session, rules), as_json)
            return
        rows = tabulate(session, rules, dimensions)
    if as_json:
        print_json({"rows": rows})
    else:
        shown = [["\N{EM DASH}" if value is None else value for value in row.values()] for row in rows]
        print_table("Trajectories", [*dimensions, "count"], shown)


def _dimensions(by: str) -> list[Dimension]:
    names = dict.fromkeys(name.strip() for name in by.split(","))
    unknown = [name for name in names if name not in set(Dimension)]
    if unknown:
        raise SluiceError(ErrorCode.BAD_INPUT, f"--by takes {NAMES}; not {', '.join(map(repr, unknown))}")
    return [Dimension(name) for name in names]
