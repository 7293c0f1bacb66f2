"""One parser under coverage-guided fuzzing, in a process of its own: python tests/fuzz/harness.py TARGET [OPTIONS].

Run by `test_fuzz.py`; options are libFuzzer's. A fault that a parser does not declare ends the process with a trace.
"""

import contextlib
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["service"]):
    from service.domain.attribution.evidence import Evidence
    from service.domain.filter.rules import SLUICE_1
    from service.domain.filter.structure import judge
    from service.domain.imports.formats import excerpt
    from service.domain.imports.identity import Naming
    from service.domain.imports.rows import read_row
    from service.domain.trajectory import ExecutionKind, parse
    from service.source.archives import Archive, ArchiveBroken, ArchiveCaps
    from service.source.http.decoding import Malformed, decode
    from service.source.http.objects import Caps, TakingFailed, take

FOLDER = Path(tempfile.mkdtemp())


def payload(body: bytes) -> None:
    """A payload of the kind that the first byte says, judged."""
    kind = list(ExecutionKind)[body[0] % len(ExecutionKind)] if body else ExecutionKind.LEGACY
    judge(parse(body[1:], kind), Evidence(), SLUICE_1, len)


def row(body: bytes) -> None:
    """A row of an imported file."""
    excerpt(body)
    read_row(body, None, Naming())


def answer(body: bytes) -> None:
    """An answer of the API."""
    with contextlib.suppress(Malformed):
        decode(body)


def stream(body: bytes) -> None:
    """An object, packed or not."""
    with contextlib.suppress(TakingFailed):
        take([body[:7], body[7:]], Caps(ratio_free_bytes=1_000))


def archive(body: bytes) -> None:
    """A file to import."""
    path = FOLDER / "rows"
    path.write_bytes(body)
    with contextlib.suppress(ArchiveBroken):
        for _line in Archive(path, ArchiveCaps(line_bytes=100)).lines():
            pass


TARGETS = {target.__name__: target for target in (payload, row, answer, stream, archive)}

if __name__ == "__main__":
    name = sys.argv.pop(1)
    atheris.Setup(sys.argv, TARGETS[name])
    atheris.Fuzz()
