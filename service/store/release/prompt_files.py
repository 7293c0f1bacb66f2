"""Prompts of a snapshot's problems as files, and the answers of train problems in files of their own."""

import hashlib
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import msgspec

from service.domain.leaks.leakage import ProblemFacts
from service.domain.rows.formats import rl
from service.domain.rows.manifest import FileEntry
from service.domain.rows.records import Row
from service.domain.rows.splits import Config, Split
from service.store.release.shards import JsonLines, file_entry

FORMAT, GOLD_FORMAT = "prompts", "gold"


class Prompts(NamedTuple):
    """What was written: the files, and what the answers come to."""

    entries: tuple[FileEntry, ...]
    gold_digest: str | None
    """Sha256 hex over the sorted lines of the answers; None: there are none."""


class PromptWriter:
    """Writes each problem of each split once, as the first row of it in order has it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._seen: set[tuple[Split, str]] = set()
        self._files: dict[tuple[str, Split], tuple[str, JsonLines]] = {}
        self._open = ExitStack()
        self._gold: list[bytes] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def add(self, split: Split, row: Row, problem: ProblemFacts) -> None:
        """Take in the problem of a row; rejected rows are no reason to pose one."""
        if row.config is Config.REJECTED or (split, row.problem_id) in self._seen:
            return
        self._seen.add((split, row.problem_id))
        self._file(FORMAT, split).append(msgspec.json.encode(rl.prompt(row)))
        answer = rl.gold(problem) if split is Split.TRAIN else None
        if answer is not None:
            line = msgspec.json.encode(answer)
            self._gold.append(line)
            self._file(GOLD_FORMAT, split).append(line)

    def _file(self, form: str, split: Split) -> JsonLines:
        if (form, split) not in self._files:
            name = f"formats/{form}/{split}-00000.jsonl.zst"
            (self._root / name).parent.mkdir(parents=True, exist_ok=True)
            lines = JsonLines(self._root / name)
            self._open.callback(lines.close)
            self._files[form, split] = name, lines
        return self._files[form, split][1]

    def finish(self) -> Prompts:
        """Close the files and say what they hold."""
        self._open.close()
        entries = tuple(
            file_entry(self._root, name, form, None, split, lines.rows)
            for (form, split), (name, lines) in sorted(self._files.items())
        )
        digest = hashlib.sha256(b"\n".join(sorted(self._gold))).hexdigest() if self._gold else None
        return Prompts(entries, digest)
