"""Audit of a snapshot: does any answer of eval leak into train? By brute force, sharing no code with the clustering.

It finds faults and mends none; it knows neither clusters nor pools, and reads the near-equal rule from its own plain
spelling of it. What it cannot check counts as a fault, so it fails closed.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from service.domain.canonical import digest
from service.domain.leaks.text_audit import TextRule, equal_texts, near_texts

TRAIN, EVAL = "train", "eval"
SPLITS = (TRAIN, EVAL)
EXAMPLES = 5
"""Faults shown per check; all are counted."""


class AuditRow(NamedTuple):
    """One row of a snapshot, as far as the audit is concerned."""

    split: str
    """`train` or `eval`; any other split fails the audit."""
    problem_id: str
    query: str | None
    gold_ids: frozenset[str]
    winner_ids: frozenset[str]
    """Confirmed ones."""
    family: str
    trajectory_key: str
    is_followed: bool = True
    """False: a failure or a rejected row, which is checked like all others and counted in no figure."""


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """The numbers the audit judges by."""

    name: str = "audit-1"
    version: int = 1
    texts: TextRule = field(default_factory=TextRule)

    @property
    def digest(self) -> str:
        """sha256 of every number that can change the audit's answer."""
        return digest(self)


AUDIT_1 = AuditPlan()


@dataclass(frozen=True, slots=True)
class Check:
    """One question put to the snapshot."""

    name: str
    ok: bool
    count: int
    """Faults found."""
    examples: tuple[str, ...]
    """A few of them, by id and never by query text."""


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The answers."""

    ok: bool
    """Whether every check is."""
    checks: tuple[Check, ...]
    figures: dict[str, Any]
    """JSON-able counts and shares that are reported, not judged."""

    def to_json(self) -> dict[str, Any]:
        """Spell the report as plain JSON values."""
        checks = [
            {"name": check.name, "ok": check.ok, "count": check.count, "examples": list(check.examples)}
            for check in self.checks
        ]
        return {"ok": self.ok, "checks": checks, "figures": self.figures}


def audit(rows: Sequence[AuditRow], plan: AuditPlan = AUDIT_1, splits: Sequence[str] = SPLITS) -> AuditReport:
    """Ask every question of the rows of one snapshot. Independent of the order of the rows.

    Args:
        rows: all rows.
        plan: the numbers.
        splits: those that the snapshot should have; rows of any other are a fault.
    """
    rows = sorted(rows, key=lambda row: (row.split, row.problem_id, row.trajectory_key, row.family))
    train = [row for row in rows if row.split == TRAIN]
    held = [row for row in rows if row.split == EVAL]
    texts = _problems_by_text(train), _problems_by_text(held)
    checks = (
        _check("empty_split", [split for split in splits if not any(row.split == split for row in rows)]),
        _check("unknown_split", [f"{row.split}:{row.problem_id}" for row in rows if row.split not in splits]),
        _check("problem_in_both", sorted({row.problem_id for row in train} & {row.problem_id for row in held})),
        _check("shared_gold_ids", _shared(train, held, lambda row: row.gold_ids)),
        _check("shared_winner_ids", _shared_winners(train, held)),
        _check("equal_queries", _named(equal_texts(*texts, plan.texts), *texts)),
        _check("near_equal_queries", _named(near_texts(*texts, plan.texts), *texts)),
        _check("duplicate_trajectories", _repeated(row.trajectory_key for row in rows)),
        _check("nothing_to_compare", [f"{row.split}:{row.problem_id}" for row in rows if not _comparable(row)]),
    )
    figures = _figures([row for row in rows if row.is_followed]) | {
        "distinct_queries": {TRAIN: len(texts[0]), EVAL: len(texts[1])}
    }
    return AuditReport(all(check.ok for check in checks), checks, figures | {"rule": f"{plan.name}/{plan.version}"})


def _check(name: str, faults: Sequence[str]) -> Check:
    return Check(name, not faults, len(faults), tuple(faults[:EXAMPLES]))


def _comparable(row: AuditRow) -> bool:
    return bool((row.query and row.query.strip()) or row.gold_ids or row.winner_ids)


def _shared(
    train: Iterable[AuditRow], held: Iterable[AuditRow], ids: Callable[[AuditRow], frozenset[str]]
) -> list[str]:
    in_train = {one for row in train for one in ids(row)}
    in_eval = {one for row in held for one in ids(row)}
    return sorted(in_train & in_eval)


def _shared_winners(train: Sequence[AuditRow], held: Sequence[AuditRow]) -> list[str]:
    """Ids that a winner gave on one side and that are winner's or gold on the other."""
    either = set(_shared(train, held, lambda row: row.gold_ids | row.winner_ids))
    return sorted(either - set(_shared(train, held, lambda row: row.gold_ids)))


def _repeated(keys: Iterable[str]) -> list[str]:
    return sorted(key for key, count in Counter(keys).items() if count > 1)


def _problems_by_text(rows: Iterable[AuditRow]) -> dict[str, str]:
    """Distinct query text -> smallest problem id that has it."""
    texts: dict[str, str] = {}
    for row in rows:
        if row.query and row.query.strip():
            texts[row.query] = min(row.problem_id, texts.get(row.query, row.problem_id))
    return texts


def _named(pairs: Iterable[tuple[str, str]], train: dict[str, str], held: dict[str, str]) -> list[str]:
    return sorted(f"{train[train_text]} ~ {held[eval_text]}" for train_text, eval_text in pairs)


def _figures(rows: Sequence[AuditRow]) -> dict[str, Any]:
    by_split: dict[str, list[AuditRow]] = defaultdict(list)
    for row in rows:
        by_split[row.split].append(row)
    return {
        "rows": {split: len(by_split[split]) for split in SPLITS},
        "problems": {split: len({row.problem_id for row in by_split[split]}) for split in SPLITS},
        "families": {split: len({row.family for row in by_split[split]}) for split in SPLITS},
        "largest_family_share": {split: _largest_share(row.family for row in by_split[split]) for split in SPLITS},
        "most_rows_per_problem": {
            split: max(Counter(row.problem_id for row in by_split[split]).values(), default=0) for split in SPLITS
        },
        "eval_known_by": _known_by(by_split[EVAL]),
    }


def _largest_share(families: Iterable[str]) -> float:
    counts = Counter(families)
    return round(max(counts.values()) / counts.total(), 4) if counts else 0.0


def _known_by(held: Iterable[AuditRow]) -> dict[str, float]:
    """Share of eval problems whose cleanliness rests on gold ids, on winners' ids alone, or on text alone."""
    grounds = {row.problem_id: "gold" if row.gold_ids else "winner" if row.winner_ids else "text_only" for row in held}
    counts = Counter(grounds.values())
    return {ground: round(counts[ground] / max(len(grounds), 1), 4) for ground in ("gold", "winner", "text_only")}
