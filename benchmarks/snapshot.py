"""How long a snapshot's files take and what memory: rows of the demo's races under ids of their own, in every format.

Usage: python -m benchmarks.snapshot [DIR] [--rows 100000]. DIR holds recorded runs; without it, the demo's races. Rows
are built beforehand, so what is measured is writing, packing, hashing and putting them in place.
"""

import argparse
import json
import resource
import sys
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import zstandard

from benchmarks.filter import items_of
from service.domain.filter.rules import SLUICE_1
from service.domain.filter.structure import Outcome, judge
from service.domain.leaks.leakage import ProblemFacts
from service.domain.policy import DEFAULT_POLICIES
from service.domain.rows.manifest import build_manifest
from service.domain.rows.records import Row, RowSource, build_row, row_id
from service.domain.rows.spec import FORMATS, STANDING
from service.domain.rows.splits import Split
from service.domain.trajectory import ExecutionKind, parse
from service.store.release.files import FileStore

AUDIT = {"ok": True, "checks": [], "figures": {}}


def patterns(folder: Path | None) -> list[tuple[Row, ProblemFacts]]:
    """Rows of every kept trajectory; tokens are counted as characters, to be quick."""
    decompress = zstandard.ZstdDecompressor().decompress
    made = []
    for number, (payload, known) in enumerate(items_of(folder)):
        trajectory = parse(decompress(payload), ExecutionKind.LEGACY)
        verdict = judge(trajectory, known, SLUICE_1, len)
        if verdict.outcome is Outcome.KEPT:
            problem = ProblemFacts(f"p{number}", trajectory.kind, "product", trajectory.query, True, frozenset("7"))
            source = RowSource(
                eval_run_id=f"run-{number}",
                agent_version_id="agent",
                agent_family="family",
                miner_hotkey=None,
                race_id="race",
                cluster_id=f"p{number}",
                rules=SLUICE_1.label,
                rules_digest=SLUICE_1.digest,
                reasoning_score=None,
                difficulty=None,
            )
            made.append((build_row(trajectory, verdict, problem, source, len), problem))
    return made


def rows(count: int, made: list[tuple[Row, ProblemFacts]]) -> Iterator[tuple[Split, Row, ProblemFacts]]:
    """So many rows in order of id, every fifth of eval."""
    names = sorted((row_id(f"run/{number}"), number) for number in range(count))
    for (name, number), (row, problem) in zip(names, islice(cycle(made), count), strict=True):
        split = Split.EVAL if number % 5 == 0 else Split.TRAIN
        yield split, msgspec.structs.replace(row, row_id=name, trajectory_key=f"run/{number}"), problem


def main() -> None:
    """Run once and print the figures."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", nargs="?", type=Path)
    arguments.add_argument("--rows", type=int, default=100_000)
    arguments.add_argument("--formats", nargs="*", default=list(FORMATS), choices=FORMATS)
    options = arguments.parse_args()
    made = patterns(options.folder)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with TemporaryDirectory() as scratch:
        store = FileStore(Path(scratch))
        start, start_cpu = time.perf_counter(), time.process_time()
        with store.draft(options.formats) as draft:
            for split, row, problem in rows(options.rows, made):
                draft.add(split, row, problem)
            contents = draft.finish()
            manifest = build_manifest(
                DEFAULT_POLICIES.spec(STANDING, "none"), contents.parts, contents.files, {}, AUDIT, []
            )
            draft.publish(manifest, AUDIT)
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - start_cpu
    figures = {
        "rows": options.rows,
        "formats": options.formats,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_seconds, 1),
        "megabytes_written": round(sum(entry.bytes for entry in contents.files) / 1e6),
        "peak_mebibytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "peak_mebibytes_before": round(before / 1024),
    }
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
