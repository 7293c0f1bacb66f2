"""How fast the filter is, against the least that any filter must do on the same bytes: decompress and decode.

Run from the checkout: `python -m benchmarks.filter [DIR]`, DIR holding recorded runs; without it, the demo's races.
"""

import gzip
import json
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import zstandard

from benchmarks import pipelines, plain
from service.domain.attribution.evidence import Evidence
from service.domain.attribution.provenance import attribute
from service.domain.filter.rules import SLUICE_1
from service.domain.filter.structure import Verdict, judge
from service.domain.trajectory import ExecutionKind, Judgement, parse
from service.domain.wire import legacy as legacy_wire
from service.tokenizer import qwen_token_counter
from service.world.demo import write_demo
from workers.__main__ import keep_what_stays

ROUNDS = 5
Item = tuple[bytes, Evidence]
Work = Callable[[bytes, Evidence], Any]


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


def microseconds(items: list[Item], works: Mapping[str, Work]) -> dict[str, float]:
    """A trajectory, the best of several rounds; each does all in turn, so that what else runs disturbs all alike."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(ROUNDS):
        for name, work in works.items():
            start = time.process_time()
            for payload, evidence in items:
                work(payload, evidence)
            best[name] = min(best[name], time.process_time() - start)
    return {name: seconds / len(items) * 1e6 for name, seconds in best.items()}


def verdicts_agree(items: list[Item], ours: Work, theirs: Work) -> None:
    """Stop unless two ways to judge come to the same outcome and reason for every row."""
    for number, item in enumerate(items):
        verdict = ours(*item)
        wanted, given = (verdict.outcome.value, verdict.reason.value), theirs(*item)
        if given != wanted:
            raise SystemExit(f"row {number}: a script says {given}, the filter says {wanted}")


def scripts(count_tokens: Callable[[str], int]) -> dict[str, Work]:
    """The same gates over dicts, the JSON read by the standard library and by orjson."""
    decompress = zstandard.ZstdDecompressor().decompress
    return {
        "json script": partial(_plain, decompress, json.loads, json.dumps, count_tokens),
        "orjson script": partial(_plain, decompress, orjson.loads, orjson.dumps, count_tokens),
    }


def _plain(decompress: Any, loads: Any, dumps: Any, count_tokens: Any, payload: bytes, known: Evidence) -> Any:
    return plain.verdict(decompress(payload), known.judgement, loads, dumps, count_tokens)


def in_pipelines(items: list[Item], judge_one: Work) -> dict[str, float | None]:
    """Microseconds inside `datasets.map` and datatrove; None: not installed."""
    decompress = zstandard.ZstdDecompressor().decompress
    payloads = [decompress(payload) for payload, _ in items]
    seconds = {
        "datasets.map": pipelines.by_datasets_map(payloads, lambda number: judge_one(*items[number])),
        "datatrove": pipelines.by_datatrove(payloads, lambda number: judge_one(*items[number])),
    }
    return {name: spent and spent / len(items) * 1e6 for name, spent in seconds.items()}


def main() -> None:
    """Print the figures."""
    items = items_of(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    decompress = zstandard.ZstdDecompressor().decompress
    count_tokens = qwen_token_counter(SLUICE_1.token_method)
    legacy = ExecutionKind.LEGACY

    def judge_one(payload: bytes, known: Evidence) -> Verdict:
        return judge(parse(decompress(payload), legacy), known, SLUICE_1, count_tokens)

    keep_what_stays()
    stages: dict[str, Work] = {
        "floor": lambda payload, _: legacy_wire.read(decompress(payload)),
        "floor, untyped": lambda payload, _: _untyped(decompress(payload)),
        "parse": lambda payload, _: parse(decompress(payload), legacy),
        "attribute": lambda payload, known: attribute(parse(decompress(payload), legacy), known),
        "judge": judge_one,
    }
    others = scripts(count_tokens)
    for script in others.values():
        verdicts_agree(items, judge_one, script)
    spent = microseconds(items, stages | others)
    print(f"{len(items)} payloads; microseconds of processor time a trajectory, best of {ROUNDS}")
    for name in stages:
        print(f"{name:<16}{spent[name]:8.0f}   floor / it = {spent['floor'] / spent[name]:.2f}")
    for name in others:
        print(f"{name:<16}{spent[name]:8.0f}   it / judge = {spent[name] / spent['judge']:.2f}, same verdicts")
    for name, inside in in_pipelines(items, judge_one).items():
        told = "not installed: pip install 'sluice-sn15[bench]'" if inside is None else f"{inside:8.0f}"
        print(f"{name:<16}{told}")


def _untyped(payload: bytes) -> Any:
    try:
        return orjson.loads(payload)
    except ValueError:
        return json.loads(payload)


if __name__ == "__main__":
    main()
