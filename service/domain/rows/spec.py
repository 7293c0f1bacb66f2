"""What a snapshot is made by: options as a user writes them, and the spec that names the snapshot.

Chooses no row. Everything that decides which rows a snapshot holds, the corpus apart, is in the spec, so that equal
specs over equal corpora have equal ids.
"""

import tomllib
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import msgspec

from service.domain.attribution.provenance import Trust
from service.domain.canonical import digest
from service.domain.filter.rules import RULE_SETS, SLUICE_1, RuleSet
from service.domain.rows.candidates import SELECTION_1, SelectionPolicy
from service.domain.rows.formats import kto
from service.domain.rows.records import ROW_SCHEMA_VERSION
from service.domain.rows.scanning import SCANNER
from service.domain.rows.splits import Split
from service.domain.rows.wanted import Wanted
from service.domain.sn15.scoring import Category
from service.errors import ErrorCode, SluiceError

ROW_FORMATS = ("parquet", "jsonl.zst")
"""Whole rows, one of which every snapshot has."""
FORMATS = (*ROW_FORMATS, "kto", "prompts", "atif", "sharegpt")
STANDING_FORMATS = tuple(form for form in FORMATS if form != "sharegpt")
LONGEST_BYTES = 1 << 20
"""Of a spec as a file."""


ANYTHING = Wanted()


@dataclass(frozen=True, slots=True)
class SnapshotSpec:
    """Everything but the corpus that decides which rows a snapshot holds, and how they are spelled."""

    rules: str
    """Name and version of the rule set, such as `sluice-1/1`."""
    rules_digest: str
    leak_plan_digest: str
    pool_plan_digest: str
    audit_digest: str
    """Of the audit that the snapshot had to pass."""
    benchmarks_digest: str
    """Of the public benchmarks that stood: name, policy and items of each."""
    selection: SelectionPolicy = SELECTION_1
    wanted: Wanted = ANYTHING
    splits: tuple[Split, ...] = (Split.TRAIN, Split.EVAL)
    formats: tuple[str, ...] = STANDING_FORMATS
    salted_hotkeys: bool = False
    """Miners are named by a keyed hash of their hotkeys."""
    row_schema: str = ROW_SCHEMA_VERSION
    labels: str = kto.VERSION
    """What KTO examples were labelled by."""
    scanner: str = SCANNER
    """What rows were searched by for secrets and personal data."""

    @property
    def digest(self) -> str:
        """Sha256 hex of the spec, the digests of plans and rules included."""
        return digest(self)


class Choice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How rows are chosen among those that are wanted."""

    keep: str = "best"
    """`best`: without duplicates, within the caps, balanced; `all`: everything that is wanted and admissible."""
    per_problem: int = SELECTION_1.per_problem
    per_problem_family: int = SELECTION_1.per_problem_family
    largest_share: float = SELECTION_1.largest_share
    min_trust: Trust = SELECTION_1.min_trust
    require_confirmed_query: bool = SELECTION_1.require_confirmed_query


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A spec as a user writes it; what is left out is as in the snapshots that nobody asks for."""

    rules: str = SLUICE_1.name
    wanted: Wanted = ANYTHING
    selection: Choice = Choice()
    splits: tuple[Split, ...] = (Split.TRAIN, Split.EVAL)
    formats: tuple[str, ...] = STANDING_FORMATS
    salted_hotkeys: bool = False

    @property
    def rule_set(self) -> RuleSet:
        """The rule set whose verdicts are asked for."""
        return RULE_SETS[self.rules]

    @property
    def policy(self) -> SelectionPolicy:
        """The selection as a whole policy."""
        chosen = self.selection
        return replace(
            SELECTION_1,
            keep_all=chosen.keep == "all",
            per_problem=chosen.per_problem,
            per_problem_family=chosen.per_problem_family,
            largest_share=chosen.largest_share,
            min_trust=chosen.min_trust,
            require_confirmed_query=chosen.require_confirmed_query,
        )


STANDING = Options()
"""What the snapshots are made by that nobody asks for."""


def read_options(content: bytes, *, is_json: bool) -> Options:
    """Read options out of a TOML or JSON document.

    Raises:
        SluiceError: BAD_INPUT that names the key, and what it may be, for anything that cannot be meant.
    """
    if len(content) > LONGEST_BYTES:
        raise _fault("the spec is too long")
    try:
        told = msgspec.json.decode(content) if is_json else tomllib.loads(content.decode())
    except (msgspec.DecodeError, UnicodeError, RecursionError, tomllib.TOMLDecodeError) as error:
        raise _fault(f"the spec is no {'JSON' if is_json else 'TOML'}: {error}") from error
    return options_of(told)


def options_of(told: Any) -> Options:
    """Options out of plain values.

    Raises:
        SluiceError: BAD_INPUT, as `read_options`.
    """
    try:
        options = msgspec.convert(told, Options, strict=True)
    except msgspec.ValidationError as error:
        raise _fault(f"the spec cannot be used: {error}{_allowed(told)}") from error
    _check(options)
    return options


def _allowed(told: Any) -> str:
    """The keys there are, where one is given that there is not."""
    if not isinstance(told, dict):
        return ""
    for name, kind in (("", Options), ("wanted", Wanted), ("selection", Choice)):
        given = told.get(name, {}) if name else told
        known = kind.__struct_fields__
        if isinstance(given, dict) and not given.keys() <= set(known):
            return f"; {name or 'the spec'} knows {', '.join(known)}"
    return ""


def _check(options: Options) -> None:
    """What types cannot say."""
    wanted, chosen = options.wanted, options.selection
    for name, given, known in (
        ("rules", [options.rules], list(RULE_SETS)),
        ("formats", options.formats, FORMATS),
        ("wanted.categories", wanted.categories, list(Category)),
        ("selection.keep", [chosen.keep], ["best", "all"]),
    ):
        strange = [each for each in given if each not in known]
        if strange:
            raise _fault(f"{name} cannot be {strange[0]!r}; there are {', '.join(known)}")
    for name, several in (
        ("splits", options.splits),
        ("formats", options.formats),
        ("wanted.configs", wanted.configs),
    ):
        if not several:
            raise _fault(f"{name} is empty: nothing would be written")
        if len(set(several)) < len(several):
            raise _fault(f"{name} names one twice")
    if not set(options.formats) & set(ROW_FORMATS):
        raise _fault(f"formats must hold {' or '.join(ROW_FORMATS)}: all others are made of those rows")
    for name, number, least, most in (
        ("wanted.min_reward", wanted.min_reward, 0, 1),
        ("wanted.min_reasoning", wanted.min_reasoning, 0, 1),
        ("wanted.max_tokens", wanted.max_tokens, 1, None),
        ("selection.per_problem", chosen.per_problem, 1, None),
        ("selection.per_problem_family", chosen.per_problem_family, 1, None),
        ("selection.largest_share", chosen.largest_share, 0.5, 1),
    ):
        if number is not None and not (least <= number <= (most if most is not None else number)):
            raise _fault(f"{name} must be {least} {'or more' if most is None else f'to {most}'}, not {number:g}")
    days = [_day("wanted.since", wanted.since), _day("wanted.until", wanted.until)]
    if None not in days and days[0] > days[1]:  # type: ignore[operator]
        raise _fault("wanted.since is after wanted.until")


def _day(name: str, day: str | None) -> date | None:
    if day is None:
        return None
    try:
        read = date.fromisoformat(day)
    except ValueError as error:
        raise _fault(f"{name} must be a day as YYYY-MM-DD, not {day!r}") from error
    if read.isoformat() != day:
        raise _fault(f"{name} must be a day as YYYY-MM-DD, not {day!r}")
    return read


def _fault(message: str) -> SluiceError:
    return SluiceError(ErrorCode.BAD_INPUT, message)
