"""`sluice pools show|accept`: what the drawing of pools asks a person, and the answer. Draws nothing."""

from collections import Counter
from typing import Annotated, Any

import typer

from service.cli.joined import joined
from service.cli.options import AsJson, DataDir, settings
from service.cli.output import note, print_json, print_table
from service.errors import ErrorCode, SluiceError
from service.store.engine import reading, transaction
from service.store.release import clusters, pools

LARGEST = 5
"""Clusters shown."""
EDGES_SHOWN = 20

app = typer.Typer(help="What pools were drawn, and what is asked.", no_args_is_help=True, add_completion=False)

Assignment = Annotated[int, typer.Argument(metavar="ASSIGNMENT", min=1, help="Number that `sluice pools show` gives.")]
Reason = Annotated[str, typer.Option("--reason", help="Why it is right; kept with the acceptance.")]


@app.command()
def show(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show the newest pools, or what stops them: the largest leak clusters and what joins them."""
    with joined(settings(data_dir=data_dir)) as at, reading(at.engine) as session:
        newest = pools.latest(session)
        if newest is None:
            raise SluiceError(ErrorCode.NOT_FOUND, "no pools have been drawn yet")
        members = clusters.members(session, newest.clustering_id)
        edges = clusters.edges(session, newest.clustering_id)
        drawn = pools.members(session, newest.assignment_id)
    sizes = Counter(member.cluster_id for member in members.values()).most_common(LARGEST)
    told: dict[str, Any] = {
        "assignment": newest.assignment_id,
        "asks": newest.refusal,
        "problems": len(members),
        "pools": dict(Counter(row.pool for row in drawn.values())),
        "reasons": dict(Counter(row.reason for row in drawn.values())),
        "largest": [{"cluster_id": cluster_id, "problems": size} for cluster_id, size in sizes],
    }
    largest = sizes[0][0] if sizes else None
    joining = [edge for edge in edges if members[edge.problem_a].cluster_id == largest and edge.kind != "suspect"]
    told["joined_by"] = [edge._asdict() for edge in joining[:EDGES_SHOWN]]
    if as_json:
        print_json(told)
        return
    print_table("Pools", ("pool", "problems"), told["pools"].items())
    print_table("Reasons", ("reason", "problems"), told["reasons"].items())
    print_table("Largest leak clusters", ("cluster", "problems"), sizes)
    print_table("What joins the largest", ("", "", "kind", "evidence"), joining[:EDGES_SHOWN])
    if newest.refusal is not None:
        note(f"assignment {newest.assignment_id} was refused: {newest.refusal}")
        note(f"if that is right: sluice pools accept {newest.assignment_id} --reason TEXT")


@app.command()
def accept(assignment: Assignment, reason: Reason, data_dir: DataDir = None) -> None:
    """Let the refused pools be drawn all the same; a later clustering that goes further asks again."""
    if not reason.strip():
        raise SluiceError(ErrorCode.BAD_INPUT, "--reason must say something")
    with joined(settings(data_dir=data_dir)) as at, transaction(at.engine) as session:
        pools.accept(session, assignment, reason.strip())
    note("accepted; a running worker goes on from here, and `sluice snapshot create` waits for it")
