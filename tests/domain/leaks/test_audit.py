"""The audit finds every planted leak, by its own reading of the rule."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.leaks.audit import AUDIT_1, AuditPlan, AuditReport, AuditRow, audit
from service.domain.leaks.leakage import LEAK_1
from service.domain.leaks.queries import near_equal, normalise
from service.domain.leaks.text_audit import TextRule, equal_texts, near_texts

RULE = TextRule()
WORDS = ["the", "of", "0", "red", "steel", "kettle", "tent", "drill", "violin", "lantern", "blender", "stapler"]
KETTLE = "Looking for a foldable magnetic vintage kettle."
TENT = "Show me an insulated waterproof cordless tent."


def row(split: str, problem_id: str, query: str | None = None, **facts: Any) -> AuditRow:
    return AuditRow(
        split,
        problem_id,
        query,
        frozenset(facts.get("gold", ())),
        frozenset(facts.get("winners", ())),
        facts.get("family", "f1"),
        facts.get("key", f"{split}-{problem_id}"),
    )


CLEAN = [row("train", "p1", KETTLE, gold="1"), row("eval", "p2", TENT, gold="2")]


def faults(*rows: AuditRow) -> dict[str, int]:
    report = audit(rows)
    assert report.ok == (not any(check.count for check in report.checks))
    return {check.name: check.count for check in report.checks if not check.ok}


def test_a_clean_snapshot_passes_every_check() -> None:
    report = audit(CLEAN)
    assert report.ok
    assert [check.name for check in report.checks if not check.ok] == []


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        (row("eval", "p3", "a helmet", gold="1"), {"shared_gold_ids": 1}),
        (row("eval", "p3", "a helmet", winners="1"), {"shared_winner_ids": 1}),
        (row("eval", "p3", "  looking for a FOLDABLE magnetic vintage kettle!"), {"equal_queries": 1}),
        (row("eval", "p3", "Can you find a foldable, magnetic, vintage kettle?"), {"near_equal_queries": 1}),
        (row("eval", "p1", "a helmet"), {"problem_in_both": 1}),
        (row("eval", "p2", TENT, key="eval-p2"), {"duplicate_trajectories": 1}),
        (row("eval", "p3", "  "), {"nothing_to_compare": 1}),
        (row("test", "p3", "a helmet"), {"unknown_split": 1}),
    ],
)
def test_a_planted_fault_is_found_alone(planted: AuditRow, found: dict[str, int]) -> None:
    assert faults(*CLEAN, planted) == found


def test_winners_of_both_splits_must_differ() -> None:
    assert faults(row("train", "p1", KETTLE, winners="7"), row("eval", "p2", TENT, winners="7")) == {
        "shared_winner_ids": 1
    }


def test_faults_within_one_split_are_no_leak() -> None:
    assert faults(*CLEAN, row("train", "p3", KETTLE.upper(), gold="1")) == {}


def test_an_empty_split_is_named() -> None:
    report = audit(CLEAN[:1])
    empty = next(check for check in report.checks if check.name == "empty_split")
    assert (report.ok, empty.examples) == (False, ("eval",))
    assert faults() == {"empty_split": 2}


def test_examples_name_problems_and_quote_no_query() -> None:
    report = audit([*CLEAN, row("eval", "p3", KETTLE)])
    equal = next(check for check in report.checks if check.name == "equal_queries")
    assert equal.examples == ("p1 ~ p3",)
    assert "kettle" not in json.dumps(report.to_json())


def test_figures_are_counted_by_hand() -> None:
    rows = [
        row("train", "p1", KETTLE, gold="1", key="a", family="f1"),
        row("train", "p1", KETTLE, gold="1", key="b", family="f1"),
        row("train", "p4", "a saddle", key="c", family="f2"),
        row("eval", "p2", TENT, gold="2", key="d"),
        row("eval", "p3", "a violin", winners="3", key="e"),
        row("eval", "p5", "a mirror", key="f"),
        row("eval", "p6", "a rug", key="g"),
    ]
    figures = audit(rows).figures
    assert figures["rows"] == {"train": 3, "eval": 4}
    assert figures["problems"] == {"train": 2, "eval": 4}
    assert figures["largest_family_share"] == {"train": 0.6667, "eval": 1.0}
    assert figures["most_rows_per_problem"] == {"train": 2, "eval": 1}
    assert figures["eval_known_by"] == {"gold": 0.25, "winner": 0.25, "text_only": 0.5}
    assert figures["distinct_queries"] == {"train": 2, "eval": 4}


def test_the_report_survives_json() -> None:
    report = audit(CLEAN)
    assert json.loads(json.dumps(report.to_json())) == report.to_json()
    assert report.figures["rule"] == f"{AUDIT_1.name}/{AUDIT_1.version}"


@given(st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rng: random.Random) -> None:
    rows = [*CLEAN, row("eval", "p3", KETTLE, gold="1"), row("train", "p9", KETTLE.upper(), gold="2")]
    assert audit(rng.sample(rows, len(rows))) == audit(rows)


TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), max_size=8, unique=True)


def read_by_clustering(train: list[str], held: list[str]) -> set[tuple[str, str]]:
    return {(a, b) for a in train for b in held if near_equal(a, b, LEAK_1.queries)}


@given(TEXTS, TEXTS)
def test_both_readings_of_the_rule_agree(train: list[str], held: list[str]) -> None:
    equal, near = set(equal_texts(train, held, RULE)), set(near_texts(train, held, RULE))
    assert equal | near == read_by_clustering(train, held)
    assert not equal & near


def test_both_readings_agree_on_generated_queries(queries: list[str]) -> None:
    found = set(near_texts(queries[:100], queries[100:], RULE)) | set(equal_texts(queries[:100], queries[100:], RULE))
    assert len(found) > 5
    assert found == read_by_clustering(queries[:100], queries[100:])


@pytest.mark.shared
def test_both_readings_agree_on_recorded_queries(benchmark_queries: list[str]) -> None:
    assert list(near_texts(benchmark_queries[::2], benchmark_queries[1::2], RULE)) == []
    edited = [query.replace("pesos", "PHP").upper() for query in benchmark_queries]
    joined = set(equal_texts(benchmark_queries, edited, RULE)) | set(near_texts(benchmark_queries, edited, RULE))
    own = set(zip(benchmark_queries, edited, strict=True))
    assert joined <= own
    assert joined == {pair for pair in own if near_equal(*pair, LEAK_1.queries)}


@pytest.mark.shared
def test_every_suite_query_is_found_in_the_benchmark(benchmark: list[dict[str, Any]], shared_data: Any) -> None:
    suites = [json.loads(path.read_text()) for path in sorted((shared_data / "suites").glob("*.json"))]
    rows = [
        row("eval", f"s{n}", one["query"], key=f"s{n}") for n, one in enumerate(p for suite in suites for p in suite)
    ]
    train = [row("train", f"b{n}", one["query"], key=f"b{n}") for n, one in enumerate(benchmark)]
    assert len(rows) == 90
    assert len({normalise(one.query or "", LEAK_1.queries) for one in rows}) == 90
    assert faults(*train, *rows) == {"equal_queries": 90}


def test_a_report_is_ok_only_if_all_checks_are() -> None:
    report: AuditReport = audit([*CLEAN, row("eval", "p3", "a helmet", gold="1")])
    assert not report.ok


def test_a_changed_number_changes_the_digest() -> None:
    plans = [AuditPlan(), AuditPlan(version=2), AuditPlan(texts=TextRule(threshold=0.6))]
    assert AuditPlan().digest == AUDIT_1.digest
    assert len({plan.digest for plan in plans}) == 3
