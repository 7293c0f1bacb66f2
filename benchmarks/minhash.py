"""The same texts through datatrove's MinHash deduplication, to compare with; it comes with the extra `bench`.

It gets our normalised texts, so that what is compared is the search: signatures in buckets, candidates taken as found,
against an exact index whose every candidate is confirmed.
"""

import struct
import time
from collections.abc import Sequence
from contextlib import redirect_stderr
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.pipelines import write_documents

NEEDED = ("datatrove", "tokenizers")
GRAMS = 2
"""Words in a shingle: our rule looks at words and their neighbours."""


class Shape(NamedTuple):
    """How signatures are cut up."""

    buckets: int
    hashes: int


SHAPES = {"datatrove, its own shape": Shape(14, 8), "datatrove, for similarity 0.5": Shape(28, 4)}
"""14 buckets of 8 find nearly all pairs from a Jaccard similarity of 0.8; 28 of 4 find 84 % of those of 0.5."""


class Found(NamedTuple):
    """What one run came to."""

    seconds: float
    """Of processor time, reading and writing its own files included."""
    cluster_of: dict[int, int]
    """Position of a text -> number of its cluster; texts alone have none."""


def by_datatrove(texts: Sequence[str], shape: Shape) -> Found | None:
    """Cluster texts; None where it is not installed."""
    if any(find_spec(name) is None for name in NEEDED):
        return None
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup.minhash import (
        MinhashConfig,
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupSignature,
    )
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.utils.hashing import HashConfig
    from datatrove.utils.word_tokenizers import WordTokenizer
    from loguru import logger

    class Words(WordTokenizer):
        """Our texts are words with a space between them."""

        def word_tokenize(self, text: str) -> list[str]:
            return text.split()

        def sent_tokenize(self, text: str) -> list[str]:
            return [text]

        def span_tokenize(self, text: str) -> list[tuple[int, int]]:
            return [(0, len(text))]

    logger.remove()
    config = MinhashConfig(
        n_grams=GRAMS,
        num_buckets=shape.buckets,
        hashes_per_bucket=shape.hashes,
        hash_config=HashConfig(hash_fc="sha1"),  # its xxhash cannot be called with the xxhash 4 that is there
    )
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "in").mkdir()
        write_documents(folder / "in" / "texts.jsonl", [text.encode() for text in texts])
        reader = JsonlReader(f"{folder}/in", glob_pattern="*.jsonl")
        signatures = MinhashDedupSignature(f"{folder}/signatures", config=config, language=Words())
        steps = (
            ([reader, signatures], 1),
            ([MinhashDedupBuckets(f"{folder}/signatures", f"{folder}/buckets", config=config)], shape.buckets),
            ([MinhashDedupCluster(f"{folder}/buckets", f"{folder}/out", config=config, save_cluster_id=True)], 1),
        )
        start = time.process_time()
        with redirect_stderr(StringIO()):  # it prints reports of its own
            for number, (pipeline, tasks) in enumerate(steps):
                LocalPipelineExecutor(
                    pipeline=pipeline, tasks=tasks, workers=1, logging_dir=f"{folder}/logs{number}"
                ).run()
        return Found(time.process_time() - start, _clusters(folder / "out"))


def _clusters(folder: Path) -> dict[int, int]:
    """Pairs of document and cluster, as it writes them: two little-endian words each."""
    cluster_of: dict[int, int] = {}
    for path in folder.glob("*.clusters"):
        cluster_of |= dict(struct.iter_unpack("<II", path.read_bytes()))
    return cluster_of
