"""The filter inside two data pipelines, as figures to compare with: `datasets.map` and datatrove, on one process.

Both call the service's own `judge`; what they add is their own reading, handing over and writing of rows. They come
with the extra `bench`; a pipeline that is not installed gives None, and says so.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from service.domain.filter.structure import Verdict

Judge = Callable[[int], Verdict]
"""Judges the row of that number."""


def by_datasets_map(payloads: Sequence[bytes], judge: Judge) -> float | None:
    """Processor seconds of one `map` over an Arrow table on disk, its cache written anew."""
    if find_spec("datasets") is None:
        return None
    from datasets import Dataset, disable_progress_bars

    disable_progress_bars()

    def judged(row: dict[str, Any], number: int) -> dict[str, str]:
        verdict = judge(number)
        return {"outcome": verdict.outcome.value, "reason": verdict.reason.value}

    with TemporaryDirectory() as scratch:
        Dataset.from_dict({"payload": list(payloads)}).save_to_disk(scratch)
        table = Dataset.load_from_disk(scratch)
        start = time.process_time()
        done = table.map(
            judged,
            with_indices=True,
            load_from_cache_file=False,
            cache_file_name=f"{scratch}/judged.arrow",
            new_fingerprint="judged",
        )
        spent = time.process_time() - start
        assert done.num_rows == len(payloads)
    return spent


def by_datatrove(payloads: Sequence[bytes], judge: Judge) -> float | None:
    """Processor seconds of a reader, a filter that names the reason of each drop, and a writer of JSON lines."""
    if find_spec("datatrove") is None:
        return None
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.filters.base_filter import BaseFilter
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter
    from loguru import logger

    class Sluice(BaseFilter):
        name = "sluice"

        def filter(self, doc: Any) -> bool | tuple[bool, str]:
            verdict = judge(int(doc.id))
            return True if verdict.outcome == "kept" else (False, verdict.reason.value)

    logger.remove()
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "in").mkdir()
        write_documents(folder / "in" / "rows.jsonl", payloads)
        dropped = JsonlWriter(f"{folder}/dropped", compression=None)
        steps = [
            JsonlReader(f"{folder}/in", glob_pattern="*.jsonl"),
            Sluice(exclusion_writer=dropped),
            JsonlWriter(f"{folder}/out", compression=None),
        ]
        start = time.process_time()
        with redirect_stderr(StringIO()):  # it prints a report of its own
            LocalPipelineExecutor(pipeline=steps, logging_dir=f"{folder}/logs", skip_completed=False).run()
        return time.process_time() - start


def write_documents(path: Path, payloads: Sequence[bytes]) -> None:
    """Payloads as datatrove's documents, a line each."""
    with path.open("wb") as lines:
        for number, payload in enumerate(payloads):
            lines.write(orjson.dumps({"id": str(number), "text": payload.decode(errors="replace")}) + b"\n")
