"""Whether a snapshot's rows touch public benchmarks, by brute force: every row's problem against every item.

Shares no code with the graph and knows no clusters, like `audit`, whose report it completes. It sees direct contacts
only: what a row touches through another problem is the clustering's to find.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from service.domain.leaks.audit import EXAMPLES, SPLITS, TRAIN, AuditReport, AuditRow, Check
from service.domain.leaks.text_audit import TextRule, equal_texts, near_texts

HOW = ("gold_id", "winner_id", "equal_query", "near_query")
"""Ways to touch an item, the surest first; a problem is counted under the surest of its own."""


class PublicItem(NamedTuple):
    """One question that everyone can know, with its answer."""

    benchmark: str
    is_excluded: bool
    """Whether rows of train must not touch it."""
    item: str
    """Names it in examples."""
    query: str | None
    gold_ids: frozenset[str]


class _Touch(NamedTuple):
    """One problem of one split, and an item that it touches."""

    split: str
    problem_id: str
    item: PublicItem
    how: str


def with_contacts(
    report: AuditReport, rows: Sequence[AuditRow], items: Sequence[PublicItem], rule: TextRule
) -> AuditReport:
    """The report with one more check, `benchmark_contacts`, and figures by benchmark and split.

    Args:
        report: what `audit` says of the rows.
        rows: the rows of the snapshot.
        items: the items of every benchmark that stood.
        rule: when two texts ask for the same thing.
    """
    touches = _touches(rows, items, rule)
    faults = sorted(
        {
            f"{touch.problem_id} ~ {touch.item.item} ({touch.how})"
            for touch in touches
            if touch.split == TRAIN and touch.item.is_excluded
        }
    )
    check = Check("benchmark_contacts", not faults, len(faults), tuple(faults[:EXAMPLES]))
    figures = {"benchmarks": _figures(touches, items)}
    return AuditReport(report.ok and check.ok, (*report.checks, check), report.figures | figures)


def _touches(rows: Sequence[AuditRow], items: Sequence[PublicItem], rule: TextRule) -> list[_Touch]:
    by_id, by_text = _by_id(items), _by_text(items)
    found: set[_Touch] = set()
    for split in SPLITS:
        of_split = [row for row in rows if row.split == split]
        for row in of_split:
            for how, ids in (("gold_id", row.gold_ids), ("winner_id", row.winner_ids)):
                found.update(_Touch(split, row.problem_id, item, how) for one in ids for item in by_id.get(one, ()))
        problems = defaultdict[str, set[str]](set)
        for row in of_split:
            if row.query and row.query.strip():
                problems[row.query].add(row.problem_id)
        for how, pairs in (
            ("equal_query", equal_texts(problems, by_text, rule)),
            ("near_query", near_texts(problems, by_text, rule)),
        ):
            for text, public in pairs:
                found.update(_Touch(split, one, item, how) for one in problems[text] for item in by_text[public])
    return sorted(found)


def _by_id(items: Iterable[PublicItem]) -> dict[str, list[PublicItem]]:
    by_id: dict[str, list[PublicItem]] = defaultdict(list)
    for item in items:
        for product_id in item.gold_ids:
            by_id[product_id].append(item)
    return by_id


def _by_text(items: Iterable[PublicItem]) -> dict[str, list[PublicItem]]:
    by_text: dict[str, list[PublicItem]] = defaultdict(list)
    for item in items:
        if item.query and item.query.strip():
            by_text[item.query].append(item)
    return by_text


def _figures(touches: Iterable[_Touch], items: Iterable[PublicItem]) -> dict[str, Any]:
    """Problems by benchmark and split and by the surest way in which each touches it."""
    surest: dict[tuple[str, str, str], int] = {}
    for touch in touches:
        key = touch.item.benchmark, touch.split, touch.problem_id
        surest[key] = min(HOW.index(touch.how), surest.get(key, len(HOW)))
    sizes: dict[str, int] = defaultdict(int)
    excluded: dict[str, bool] = {}
    for item in items:
        sizes[item.benchmark] += 1
        excluded[item.benchmark] = item.is_excluded
    return {
        benchmark: {
            "items": sizes[benchmark],
            "excluded_from_train": excluded[benchmark],
            "problems": {split: _counted(surest, benchmark, split) for split in SPLITS},
        }
        for benchmark in sorted(sizes)
    }


def _counted(surest: Mapping[tuple[str, str, str], int], benchmark: str, split: str) -> dict[str, int]:
    counts = dict.fromkeys(HOW, 0)
    for (name, where, _), how in surest.items():
        if (name, where) == (benchmark, split):
            counts[HOW[how]] += 1
    return counts
