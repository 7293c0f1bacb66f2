"""Rows: what they say, and that equal trajectories give equal bytes anywhere."""

import gzip
import hashlib
import json
from pathlib import Path

import msgspec
import pytest

from service.domain.attribution.provenance import StructuralClass
from service.domain.leaks.leakage import ProblemFacts
from service.domain.rows.chat import render_chat
from service.domain.rows.prompts import tool_set
from service.domain.rows.records import (
    GoldKind,
    Row,
    build_row,
    gold_kind,
    row_id,
    row_line,
    teacher_model,
    texts,
    trajectory_key,
    withheld,
)
from service.domain.rows.splits import Config, row_config
from service.domain.trajectory import ExecutionKind, Inference, Trajectory, parse
from service.tokenizer import TOKEN_COUNT_METHOD, qwen_token_counter
from tests.domain.sample_rows import make_row, problem, shopping_trajectory, shopping_verdict, source


def test_a_row_says_where_it_comes_from():
    row = build_row(
        shopping_trajectory(), shopping_verdict(), problem(), source(), qwen_token_counter(TOKEN_COUNT_METHOD)
    )
    assert row.trajectory_key == "run-1/p1"
    assert row.row_id == hashlib.sha256(b"run-1/p1").hexdigest()[:32] == row_id(trajectory_key("run-1", "p1"))
    assert (row.config, row.kind, row.outcome) == ("agentic", "legacy_shoppingbench", "kept")
    assert row.teacher_model == "teacher-a"  # named twice, teacher-b once
    assert row.think == "reconstructed"  # the second message's reply is not in the log
    assert row.gold_kind is GoldKind.GOLD_KNOWN
    assert (row.reasoning_score, row.difficulty) == (None, None)
    assert row.answer_ids == ("77",)
    assert json.loads(row.tools)[0]["function"]["name"] == "find_product"
    tools = tool_set(ExecutionKind.LEGACY, shopping_trajectory().tool_calls).schemas
    assert row.tokens == qwen_token_counter(TOKEN_COUNT_METHOD)(render_chat(row.messages, tools))


def test_unattributed_rows_train_on_calls_of_unknown_issuer():
    agentic = [message.train for message in make_row().messages if message.role == "assistant"]
    unattributed = [
        message.train for message in make_row(config=Config.UNATTRIBUTED).messages if message.role == "assistant"
    ]
    assert agentic == [True, False, True]
    assert unattributed == [True, True, True]


@pytest.mark.parametrize("kind", StructuralClass)
def test_only_agentic_rows_are_agentic(kind: StructuralClass):
    verdict = msgspec.structs.replace(shopping_verdict(), structural_class=kind, signals={"config": "agentic"})
    assert (row_config(verdict) is Config.AGENTIC) == (kind is StructuralClass.AGENTIC)


def test_the_line_survives_a_round_trip():
    row = make_row()
    line = row_line(row)
    assert b"\n" not in line
    assert row_line(msgspec.json.decode(line, type=Row)) == line


def test_the_digest_of_a_known_row_does_not_change():
    # A change here is a change of every snapshot id: it takes a new ROW_SCHEMA_VERSION or prompt version.
    assert (
        hashlib.sha256(row_line(make_row())).hexdigest()
        == "0d413c97753bb859b22bfa2d411c11ccafa765d9e709127af80e7f4be4129e83"
    )


@pytest.mark.parametrize(
    ("gold", "winners", "expected"),
    [({"1"}, {"2"}, "gold-known"), (set(), {"2"}, "winner-known"), (set(), set(), "text-only")],
)
def test_gold_kind(gold: set[str], winners: set[str], expected: str):
    facts = ProblemFacts("p", "legacy_shoppingbench", "product", "q", True, frozenset(gold), frozenset(winners))
    assert gold_kind(facts) == expected


def test_teacher_model_ties_and_absence():
    def named(*models: str | None) -> Trajectory:
        inferences = tuple(Inference(timestamp_ms=i, model=model) for i, model in enumerate(models))
        return Trajectory(kind=ExecutionKind.LEGACY, inferences=inferences)

    assert teacher_model(named("b", "a")) == "a"
    assert teacher_model(named("b", "a", "b")) == "b"
    assert teacher_model(named(None)) is None


@pytest.mark.shared
def test_recorded_runs_become_rows(shared_data: Path):
    with gzip.open(shared_data / "runs" / "native_tools" / "output.jsonl.gz", "rt") as lines:
        dialogues = [json.loads(line)["dialogue"] for line in lines][:20]
    count_tokens = qwen_token_counter(TOKEN_COUNT_METHOD)
    for number, dialogue in enumerate(dialogue for dialogue in dialogues if dialogue):
        trajectory = parse(json.dumps(dialogue).encode(), ExecutionKind.LEGACY)
        row = build_row(trajectory, shopping_verdict(), problem(), source(f"run-{number}"), count_tokens)
        assert 500 < row.tokens < 14_336
        assert sum(message.role == "tool" for message in row.messages) == len(trajectory.tool_calls)
        assert row.teacher_model == "moonshotai/Kimi-K2.5-TEE"


def test_a_row_that_was_left_out_is_rejected_with_its_reason_and_its_tokens_are_not_counted():
    def never(_: str) -> int:
        pytest.fail("counted")

    row = build_row(shopping_trajectory(), shopping_verdict(), problem(), source(), never, left_out="duplicate")
    assert (row.config, row.reason, row.outcome, row.tokens) == (Config.REJECTED, "duplicate", "kept", 0)
    assert row.messages
    assert not any(message.train for message in row.messages)


def test_a_withheld_row_has_nothing_that_anybody_wrote():
    built = build_row(shopping_trajectory(), shopping_verdict(), problem(), source(), len, left_out="tombstoned")
    row = withheld(built)
    assert (row.messages, row.answer_ids, row.teacher_model, row.tools) == ((), (), None, "[]")
    assert "kettle" in row_line(built).decode()
    assert "kettle" not in row_line(row).decode()
    assert list(texts(row)) == []
    assert (row.row_id, row.config, row.reason) == (built.row_id, Config.REJECTED, "tombstoned")
