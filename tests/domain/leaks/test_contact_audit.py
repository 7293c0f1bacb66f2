"""The audit's own look at benchmarks: against the near-equal rule asked pair by pair."""

from typing import Any

import pytest

from service.domain.leaks.audit import AUDIT_1, AuditReport, AuditRow
from service.domain.leaks.contact_audit import PublicItem, with_contacts

KETTLE = "a foldable magnetic vintage kettle"
KETTLE_AGAIN = "please, a foldable magnetic vintage kettle above 30 pesos"
TENT = "an insulated waterproof cordless tent"
CLEAN = AuditReport(True, (), {"rows": 1})


def row(split: str, problem_id: str, query: str | None = TENT, **ids: Any) -> AuditRow:
    answers = {"gold_ids": frozenset(), "winner_ids": frozenset()} | {k: frozenset(v) for k, v in ids.items()}
    return AuditRow(split, problem_id, query, family="f", trajectory_key=f"run/{problem_id}", **answers)


def item(query: str | None = None, *gold_ids: str, is_excluded: bool = True) -> PublicItem:
    return PublicItem("bench", is_excluded, "bench:1", query, frozenset(gold_ids))


def looked_at(rows: list[AuditRow], *items: PublicItem) -> AuditReport:
    return with_contacts(CLEAN, rows, items, AUDIT_1.texts)


@pytest.mark.parametrize(
    ("of_train", "public", "how"),
    [
        (row("train", "p", gold_ids="7"), item(None, "7"), "gold_id"),
        (row("train", "p", winner_ids="7"), item(None, "7"), "winner_id"),
        (row("train", "p", KETTLE), item(KETTLE.upper() + "!"), "equal_query"),
        (row("train", "p", KETTLE), item(KETTLE_AGAIN), "near_query"),
    ],
)
def test_a_contact_of_train_fails_and_is_named(of_train: AuditRow, public: PublicItem, how: str) -> None:
    report = looked_at([of_train], public)
    assert not report.ok
    check = report.checks[-1]
    assert (check.name, check.ok, check.count, check.examples) == (
        "benchmark_contacts",
        False,
        1,
        (f"p ~ bench:1 ({how})",),
    )
    assert report.figures["benchmarks"]["bench"]["problems"]["train"][how] == 1


def test_a_contact_of_eval_or_with_a_declared_benchmark_is_only_counted() -> None:
    report = looked_at([row("eval", "p", gold_ids="7")], item(None, "7"))
    assert report.ok
    assert report.figures["benchmarks"]["bench"]["problems"]["eval"]["gold_id"] == 1
    declared = looked_at([row("train", "p", gold_ids="7")], item(None, "7", is_excluded=False))
    assert declared.ok
    assert declared.figures["benchmarks"]["bench"]["problems"]["train"]["gold_id"] == 1


def test_a_problem_counts_once_under_its_surest_contact() -> None:
    rows = [row("train", "p", KETTLE, gold_ids="7"), row("train", "p", KETTLE, gold_ids="7")]
    counts = looked_at(rows, item(KETTLE, "7")).figures["benchmarks"]["bench"]["problems"]["train"]
    assert counts == {"gold_id": 1, "winner_id": 0, "equal_query": 0, "near_query": 0}


def test_what_shares_nothing_passes_and_a_failed_report_stays_failed() -> None:
    rows = [row("train", "p", TENT, gold_ids="1")]
    assert looked_at(rows, item(KETTLE, "7")).ok
    failed = AuditReport(False, (), {})
    assert not with_contacts(failed, rows, [item(KETTLE, "7")], AUDIT_1.texts).ok


def test_without_benchmarks_there_is_still_a_check() -> None:
    assert [check.name for check in looked_at([row("train", "p")]).checks] == ["benchmark_contacts"]
