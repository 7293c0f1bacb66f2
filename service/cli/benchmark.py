"""`sluice benchmark add|list|report`: public benchmarks that train must not touch, and what does. Ties nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from service.cli.joined import joined
from service.cli.options import AsJson, DataDir, settings
from service.cli.output import note, print_json, print_table, visible
from service.domain.leaks.benchmark_files import joined_items, read_items
from service.domain.leaks.benchmarks import (
    Benchmark,
    BenchmarkItem,
    BenchmarkPolicy,
    checked_name,
)
from service.errors import ErrorCode, SluiceError
from service.source.archives import Archive, ArchiveBroken, ArchiveCaps
from service.store.engine import reading, transaction
from service.store.figures import contamination
from service.store.figures.contamination import Report, Standing
from service.store.release import benchmarks

CAPS = ArchiveCaps(file_bytes=1024**3, unpacked_bytes=2 * 1024**3)

Name = Annotated[str, typer.Argument(help="What the benchmark is called: a-z, 0-9, '.', '_' and '-'.")]
Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help="JSONL files of questions; .gz and .zst too.")]
Policy = Annotated[
    BenchmarkPolicy, typer.Option("--policy", help="Keep what touches it out of train, or only report it.")
]
QueryField = Annotated[str, typer.Option("--query-field", help="Key of a question's text.")]
GoldField = Annotated[str, typer.Option("--gold-field", help="Key of its right products: ids, or objects with one.")]

app = typer.Typer(help="Public benchmarks, and what touches them.", no_args_is_help=True, add_completion=False)


@app.command()
def add(
    name: Name,
    files: Files,
    policy: Policy = BenchmarkPolicy.EXCLUDE,
    query_field: QueryField = "query",
    gold_field: GoldField = "reward",
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Register a benchmark, in place of one of the same name; the next clustering takes it in."""
    checked_name(name)
    items = joined_items([_read(path, query_field, gold_field) for path in files])
    benchmark = Benchmark(name, policy, items)
    with joined(settings(data_dir=data_dir), migrating=True) as at, transaction(at.engine) as session:
        is_new = benchmarks.register(session, benchmark)
    if as_json:
        told = {"name": name, "policy": policy.value, "items": len(items), "items_digest": benchmark.items_digest}
        print_json(told | {"with_gold": _with_gold(items), "unchanged": not is_new})
        return
    if not is_new:
        note("unchanged: it stands so already")
    typer.echo(f"{name}: {len(items)} items, {_with_gold(items)} with gold ids, {policy.value}")


@app.command("list")
def listing(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the benchmarks that stand."""
    with joined(settings(data_dir=data_dir)) as at, reading(at.engine) as session:
        found = contamination.standing(session)
    if as_json:
        print_json({"benchmarks": [_plain(each) for each in found]})
        return
    rows = [(*each[:3], f"{each.registered_at:%F %T %Z}", "yes" if each.is_clustered else "not yet") for each in found]
    print_table("Benchmarks", ("name", "policy", "items", "registered", "clustered"), rows)


@app.command()
def report(name: Name, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show which problems, races and published rows touch a benchmark."""
    with joined(settings(data_dir=data_dir)) as at, reading(at.engine) as session:
        found = contamination.report(session, name)
    if found is None:
        raise SluiceError(ErrorCode.NOT_FOUND, f"there is no benchmark {name!r}; `sluice benchmark list` names all")
    if as_json:
        print_json(as_plain(found))
        return
    if not found.benchmark.is_clustered:
        note("it has not been clustered yet: the figures come with the next clustering")
    _print(found)


def as_plain(of: Report) -> dict[str, object]:
    """A report as plain JSON values."""
    return {
        "benchmark": _plain(of.benchmark),
        "items_touched": of.items_touched,
        "kinds": of.kinds,
        "races": [each._asdict() for each in of.races],
        "snapshots": [each._asdict() for each in of.snapshots],
    }


def _plain(of: Standing) -> dict[str, object]:
    return of._asdict() | {"registered_at": of.registered_at.isoformat()}


def _print(of: Report) -> None:
    benchmark = of.benchmark
    title = f"{benchmark.name} ({benchmark.policy}): {of.items_touched} of {benchmark.items} items are touched"
    print_table(title, ("kind of contact", "problems"), of.kinds.items())
    print_table(
        "By race",
        ("race", "problems", "direct", "trajectories"),
        [(each.race_id or "none", *each[1:]) for each in of.races],
    )
    print_table("Published rows", ("snapshot", "split", "rows", "direct"), of.snapshots)


def _with_gold(items: tuple[BenchmarkItem, ...]) -> int:
    return sum(bool(item.gold_ids) for item in items)


def _read(path: Path, query_field: str, gold_field: str) -> tuple[BenchmarkItem, ...]:
    """The items of one file.

    Raises:
        SluiceError: BAD_INPUT, with file and line, for what cannot be read.
    """
    shown = visible(str(path))
    try:
        return read_items(_lines(path), query_field, gold_field)
    except SluiceError as error:
        raise SluiceError(error.code, f"{shown}: {error.message}", **error.context) from error
    except ArchiveBroken as error:
        raise SluiceError(ErrorCode.BAD_INPUT, f"{shown}: not read to its end: {error.fault.value}") from error
    except OSError as error:
        raise SluiceError(ErrorCode.BAD_INPUT, f"{shown}: {error.strerror or error}") from error


def _lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    yield from Archive(path, CAPS).lines()
