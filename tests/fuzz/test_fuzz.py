"""Every parser under coverage-guided fuzzing for a bounded time, from valid inputs. Needs the extra `fuzz`."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from service.domain.imports.formats import Format
from service.domain.trajectory import ExecutionKind
from tests.domain.test_hostile_rows import PAYLOADS, ROWS
from tests.source.test_hostile_answers import LISTING

pytestmark = pytest.mark.nightly

HARNESS = Path(__file__).with_name("harness.py")
SECONDS = int(os.environ.get("SLUICE_FUZZ_SECONDS", "60"))
SEEDS: dict[str, list[bytes]] = {
    "payload": [bytes([place]) + json.dumps(PAYLOADS[kind]).encode() for place, kind in enumerate(ExecutionKind)],
    "row": [json.dumps(ROWS[format_]).encode() for format_ in Format],
    "answer": [json.dumps(LISTING).encode()],
    "stream": [gzip.compress(b"[]" * 300), b"[]"],
    "archive": [gzip.compress(b"{}\n" * 300), zstandard.compress(b"{}\n" * 300), b"{}\n{}\n"],
}


@pytest.mark.parametrize("target", SEEDS)
def test_no_input_makes_a_parser_raise_what_it_does_not_declare(target: str, tmp_path: Path) -> None:
    seeds = tmp_path / "seeds"
    seeds.mkdir()
    for place, seed in enumerate(SEEDS[target]):
        (seeds / str(place)).write_bytes(seed)
    limits = (f"-max_total_time={SECONDS}", "-max_len=20000", "-timeout=20", "-rss_limit_mb=2048")
    command = [sys.executable, str(HARNESS), target, *limits, f"-artifact_prefix={tmp_path}/", str(seeds)]
    environment = {**os.environ, "PYTHONPATH": str(HARNESS.parents[2])}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS + 240, check=False)
    assert ran.returncode == 0, ran.stderr[-4_000:]
