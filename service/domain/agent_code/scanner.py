"""Reads an agent's released source: what calls tools there, what asks models, what touches the log. Never runs it.

Never raises, whatever the bytes are. What cannot be read as Python, or not within the limits, is unreadable; that is a
fact about the source and no finding in it. Judges no trajectory.
"""

import ast
import io
import re
import tarfile
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from service.domain.agent_code import logs as source_logs
from service.domain.agent_code import sinks as source_sinks
from service.domain.agent_code.code_scan import CodeScan, Dispatch, Finding, FindingKind
from service.domain.agent_code.flow import Flow

MOST_BYTES = 1_000_000
"""Of one source. Longer ones are not read."""
MOST_FILES = 50
MOST_ARCHIVE_BYTES = 3_000_000
"""Of all sources of an archive, unpacked."""
MOST_NODES = 150_000
DEEPEST = 150
"""Of brackets and blocks in the text, and of nodes in the tree."""
MOST_FINDINGS = 4
"""Of one kind and name: the lines after the first few say nothing new."""
ENCODINGS = frozenset({"utf-8", "utf-8-sig", "ascii", "us-ascii", "iso-8859-1", "latin-1", "cp1252"})
_STRINGS = re.compile(
    rb"#[^\n]*+|(\"\"\"|''')(?:\\.|(?!\1)[\s\S])*+(?:\1)?|\"(?:\\.|[^\"\\\n])*+\"?|'(?:\\.|[^'\\\n])*+'?", re.DOTALL
)
"""Comments and strings. One that does not end is taken up to where it stops: looking on would take for ever."""
_BRACKETS = re.compile(rb"[(\[{]|[)\]}]")
_PREFIXES = re.compile(rb"(?:(?:[-+~]|\bnot\b|\blambda\b[^:\n]{0,40}:|\bawait\b|\*)\s*+){150,}+")
_INDENT = re.compile(rb"^[ \t]*", re.MULTILINE)
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError, LookupError, OverflowError)
_BROKEN_ARCHIVE = (
    OSError,
    EOFError,
    RuntimeError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
    tarfile.TarError,
)


def scan(source: bytes) -> CodeScan:
    """What a source, or an archive of sources, does with tools, models and the log."""
    found: list[Finding] = []
    read = 0
    for number, text in enumerate(files(source)):
        in_file = _read(text)
        if in_file is not None:
            read += 1
            found += (msgspec.structs.replace(one, file=number) for one in in_file)
    return CodeScan(is_readable=read > 0, dispatch=_dispatch(found), findings=_few(found))


def _read(text: bytes) -> list[Finding] | None:
    """The findings of one file; None where it cannot be read."""
    tree = parse(text)
    if tree is None:
        return None
    try:
        flow = Flow(tree)
        return list(chain(source_sinks.findings(flow), source_logs.findings(flow)))
    except _UNREADABLE:
        return None


def parse(text: bytes) -> ast.Module | None:
    """The tree of a source; None where it is no Python, or too large or too deep to be looked through."""
    if len(text) > MOST_BYTES or b"\0" in text or _is_deep(text) or not _is_plain(text):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they would quote the source
            tree = ast.parse(text)
    except _UNREADABLE:
        return None
    return tree if _fits(tree) else None


def _is_plain(text: bytes) -> bool:
    """Whether a source is encoded in a usual way: others can be slow to decode, or hide what they say."""
    try:
        return tokenize.detect_encoding(io.BytesIO(text).readline)[0] in ENCODINGS
    except (SyntaxError, UnicodeError):
        return False


def _is_deep(text: bytes) -> bool:
    """Whether brackets, prefixes or blocks stand too deep within each other for the parser to be let near them."""
    bare = _STRINGS.sub(b" ", text)
    depth = deepest = 0
    for bracket in _BRACKETS.findall(bare):
        depth = depth + 1 if bracket in b"([{" else max(0, depth - 1)
        deepest = max(deepest, depth)
    return deepest > DEEPEST or _PREFIXES.search(bare) is not None


def _fits(tree: ast.Module) -> bool:
    """Whether a tree is small and shallow enough to be followed."""
    nodes, level = 0, [tree]
    for _ in range(DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]  # type: ignore[misc]
        nodes += len(level)
        if not level or nodes > MOST_NODES:
            break
    return not level


def files(source: bytes) -> Iterable[bytes]:
    """The sources in an archive, in order of their names; the bytes themselves where they are none."""
    if source[:4] == b"PK\x03\x04":
        return _unpacked(_zipped(source))
    if source[:2] == b"\x1f\x8b" or source[257:262] == b"ustar":
        return _unpacked(_tarred(source))
    return [source]


def _unpacked(members: Iterator[tuple[str, bytes]]) -> list[bytes]:
    found: dict[str, bytes] = {}
    try:
        for name, text in members:
            if len(found) >= MOST_FILES or sum(map(len, found.values())) + len(text) > MOST_ARCHIVE_BYTES:
                return []
            found[name] = text
    except (*_BROKEN_ARCHIVE, *_UNREADABLE):
        return []
    return [found[name] for name in sorted(found)]


def _zipped(source: bytes) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(source)) as archive:
        for member in archive.infolist()[: 20 * MOST_FILES]:
            if member.filename.endswith(".py"):
                with archive.open(member) as opened:
                    yield member.filename, opened.read(MOST_BYTES + 1)


def _tarred(source: bytes) -> Iterator[tuple[str, bytes]]:
    if source[:2] == b"\x1f\x8b":
        source = zlib.decompressobj(wbits=31).decompress(source, 10 * MOST_ARCHIVE_BYTES)
        if source[257:262] != b"ustar":
            yield "", source[: MOST_BYTES + 1]
            return
    with tarfile.open(fileobj=io.BytesIO(source), mode="r:") as archive:
        for place, member in enumerate(archive):
            if place >= 20 * MOST_FILES:
                return
            opened = archive.extractfile(member) if member.isreg() and member.name.endswith(".py") else None
            if opened is not None:
                yield member.name, opened.read(MOST_BYTES + 1)


def _dispatch(found: Iterable[Finding]) -> Dispatch:
    kinds = {one.kind for one in found}
    by_model, by_code = FindingKind.MODEL_DISPATCH in kinds, FindingKind.CODE_DISPATCH in kinds
    if by_model and by_code:
        return Dispatch.BOTH
    return Dispatch.MODEL if by_model else Dispatch.CODE if by_code else Dispatch.NONE


def _few(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings in order of lines, each once, the first few of each kind and name."""
    kept: dict[tuple[FindingKind, str], int] = {}
    few = []
    for one in sorted(set(found), key=lambda f: (f.file, f.line, f.kind, f.name)):
        kept[one.kind, one.name] = kept.get((one.kind, one.name), 0) + 1
        if kept[one.kind, one.name] <= MOST_FINDINGS:
            few.append(one)
    return tuple(few)
