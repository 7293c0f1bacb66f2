"""The recorded runs as an archive: every envelope comes in once, with the bytes that a harvest of the same runs stores.

The figures are those of the recording itself: 15 agents with 1,228 envelopes, of which 85 failed or timed out and eight
hold no dialogue, and seven of `crash_mixed` hold a bare NaN.
"""

import gzip
import hashlib
import json
from pathlib import Path
from threading import Event

import pytest
from sqlalchemy import text

from service.cli.intake import take_in
from service.config import Settings
from service.domain.imports.identity import Naming
from service.domain.policy import DEFAULT_POLICIES
from service.store.engine import open_engine, reading
from service.store.figures import statistics
from service.store.figures.statistics import Dimension
from service.store.work import backlog
from tests.imported import rows_of
from workers.context import open_context
from workers.stages import filter

pytestmark = pytest.mark.shared
RULES = DEFAULT_POLICIES.rules.digest
ENVELOPES = 1_228
EMPTY = 93
BARE_NAN = 7


def uploaded(path: Path) -> list[bytes]:
    """What the executor uploads of each envelope of a file."""
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    return [json.dumps(row["dialogue"] or []).encode() for row in rows]


def test_every_envelope_comes_in_once_and_as_it_is_uploaded(database_url: str, shared_data: Path) -> None:
    engine = open_engine(database_url)
    files = sorted(shared_data.glob("runs/*/output.jsonl.gz"))
    for stored, present in ((ENVELOPES, 0), (0, ENVELOPES)):
        accounts = [take_in(engine, path, None, Naming(path.parent.name), Event()) for path in files]
        assert all(account.is_clean for account in accounts)
        assert sum(account.stored for account in accounts) == stored
        assert sum(account.present for account in accounts) == present
    with reading(engine) as session:
        digests = set(session.scalars(text("SELECT DISTINCT payload_sha256 FROM trajectories")))
        agents = {count.values[0]: count.trajectories for count in statistics.counts(session, RULES, [Dimension.AGENT])}
    engine.dispose()
    assert agents == {path.parent.name: len(uploaded(path)) for path in files}
    assert digests == {hashlib.sha256(payload).hexdigest() for path in files for payload in uploaded(path)}


def test_the_filter_says_of_them_what_it_says_of_harvested_ones(
    database_url: str, redis_url: str, shared_data: Path, tmp_path: Path
) -> None:
    context = open_context(Settings(data_dir=tmp_path), database_url, redis_url)
    # With the scores joined, ref_good is kept as it is when it is harvested; what crashed is empty or unreadable.
    for agent in ("ref_good", "crash_mixed"):
        folder = shared_data / "runs" / agent
        passed = {row["problem_id"]: row["score"] == 1.0 for row in rows_of(folder / "progress_updates.jsonl.gz")}
        lines = []
        for line in gzip.decompress((folder / "output.jsonl.gz").read_bytes()).splitlines():
            success = json.dumps(passed.get(json.loads(line)["problem_id"])).encode()
            lines.append(line[:-1] + b', "success": ' + success + b"}\n")
        path = tmp_path / f"{agent}.jsonl"
        path.write_bytes(b"".join(lines))
        assert take_in(context.engine, path, None, Naming(agent), Event()).is_clean
    with reading(context.engine) as session:
        ids = backlog.trajectories_unjudged(session, RULES, 10_000)
    filter.run(ids, context, "test")
    with reading(context.engine) as session:
        by = [Dimension.AGENT, Dimension.REASON]
        counted = {count.values: count.trajectories for count in statistics.counts(session, RULES, by)}
    context.engine.dispose()
    assert counted["crash_mixed", "bare_nan"] == BARE_NAN
    assert counted["crash_mixed", "empty"] == 36  # of its 43 envelopes
    kept = counted["ref_good", "kept"]
    assert kept > 200, counted
