"""How fast the filter is, against the least that any filter must do on the same bytes: decompress and decode.

Run from the checkout: `python -m benchmarks.filter [DIR]`, DIR holding recorded runs; without it, the demo's races.
"""

import gzip
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import zstandard

from service.domain.evidence import Evidence
from service.domain.provenance import attribute
from service.domain.rules import SLUICE_1
from service.domain.structure import judge
from service.domain.trajectory import ExecutionKind, Judgement, parse
from service.domain.wire import legacy as legacy_wire
from service.tokenizer import qwen_token_counter
from service.world.demo import write_demo

ROUNDS = 5
Item = tuple[bytes, Evidence]


def recorded(folder: Path) -> list[Item]:
    """Compressed payloads of recorded runs, with what was reported of them."""
    compress = zstandard.ZstdCompressor().compress
    items = []
    for agent in sorted(path.parent for path in folder.rglob("output.jsonl.gz")):
        with gzip.open(agent / "progress_updates.jsonl.gz", "rt") as rows:
            reports = {row["problem_id"]: row for row in map(json.loads, rows)}
        with gzip.open(agent / "output.jsonl.gz", "rt") as rows:
            for envelope in map(json.loads, rows):
                report = reports[envelope["problem_id"]]
                judgement = Judgement(
                    status=report["status"],
                    score=report["score"],
                    inference_total=report["inference_total"],
                    execution_seconds=report["execution_time"],
                )
                payload = json.dumps(envelope["dialogue"] or []).encode()
                items.append((compress(payload), Evidence(judgement=judgement)))
    return items


def items_of(folder: Path | None) -> list[Item]:
    """Those of recorded runs, or of the demo's races."""
    if folder is not None:
        return recorded(folder)
    with TemporaryDirectory() as scratch:
        write_demo(Path(scratch))
        return recorded(Path(scratch))


def microseconds(items: list[Item], work: Callable[[bytes, Evidence], object]) -> float:
    """Best of several rounds, a trajectory."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        for payload, evidence in items:
            work(payload, evidence)
        best = min(best, time.process_time() - start)
    return best / len(items) * 1e6


def main() -> None:
    """Print the figures."""
    items = items_of(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    decompress = zstandard.ZstdDecompressor().decompress
    count_tokens = qwen_token_counter(SLUICE_1.token_method)
    legacy = ExecutionKind.LEGACY
    floor = microseconds(items, lambda payload, _: legacy_wire.decode(decompress(payload)))
    parsed = microseconds(items, lambda payload, _: parse(decompress(payload), legacy))
    attributed = microseconds(items, lambda payload, known: attribute(parse(decompress(payload), legacy), known))
    judged = microseconds(
        items, lambda payload, known: judge(parse(decompress(payload), legacy), known, SLUICE_1, count_tokens)
    )
    print(f"{len(items)} payloads; microseconds of processor time a trajectory, best of {ROUNDS}")
    for name, spent in (("floor", floor), ("parse", parsed), ("attribute", attributed), ("judge", judged)):
        print(f"{name:<10}{spent:8.0f}   floor/{name} = {floor / spent:.2f}")


if __name__ == "__main__":
    main()
