"""Exact Qwen3 counts from the shipped vocabulary, with no network."""

import socket
import time
from importlib import resources

import pytest

from service.domain.filter.rules import RULE_SETS
from service.errors import ErrorCode, SluiceError
from service.tokenizer import TOKEN_COUNT_METHOD, qwen_encoding, qwen_token_counter, qwen_tokens


def test_known_ids():
    assert qwen_tokens("Hello world") == [9707, 1879]


@pytest.mark.parametrize(
    ("token", "expected"),
    # 151,643 ranks, then the special tokens in Qwen3's published order.
    [("<|endoftext|>", 151643), ("<|im_start|>", 151644), ("<|im_end|>", 151645), ("<tool_call>", 151657),
     ("</tool_call>", 151658), ("<tool_response>", 151665), ("<think>", 151667), ("</think>", 151668)],
)  # fmt: skip
def test_special_tokens_are_single(token: str, expected: int):
    assert qwen_tokens(token) == [expected]
    assert qwen_tokens(f"a{token}b") == [*qwen_tokens("a"), expected, *qwen_tokens("b")]


def test_digits_are_counted_one_by_one():
    # Qwen splits numbers into single digits: 7 digits, 7 tokens.
    assert qwen_token_counter(TOKEN_COUNT_METHOD)("1234567") == 7


def test_decomposed_text_counts_as_composed():
    assert qwen_tokens("cafe\u0301") == qwen_tokens("caf\u00e9")


def test_normalising_leaves_special_tokens_alone():
    # U+0338 would combine with the ">" before it (to U+226F) if special tokens were not taken out first.
    assert qwen_tokens("e\u0301<think>\u0338")[1] == 151667


def test_lone_surrogates_and_long_runs_do_not_fail():
    count = qwen_token_counter(TOKEN_COUNT_METHOD)
    assert count("\ud800") > 0
    started = time.perf_counter()
    assert count("a" * 200_000 + " " * 200_000) > 0
    assert time.perf_counter() - started < 20


def test_no_network(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise AssertionError("the tokenizer opened a socket")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    qwen_encoding.cache_clear()
    assert qwen_token_counter(TOKEN_COUNT_METHOD)("Hello world") == 2


def test_a_vocabulary_that_cannot_be_loaded_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.setattr(resources, "files", lambda _: tmp_path)
    qwen_encoding.cache_clear()
    with pytest.raises(SluiceError) as caught:
        qwen_token_counter(TOKEN_COUNT_METHOD)
    assert caught.value.code is ErrorCode.PREREQUISITE_MISSING
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources" / "qwen.tiktoken").write_bytes(b"IQ== 0\n")  # one rank
    with pytest.raises(SluiceError, match="1 ranks"):
        qwen_token_counter(TOKEN_COUNT_METHOD)


def test_rule_sets_name_this_method():
    assert {rules.token_method for rules in RULE_SETS.values()} == {TOKEN_COUNT_METHOD}


def test_another_counting_method_is_refused():
    with pytest.raises(SluiceError, match="'qwen4-chat'") as caught:
        qwen_token_counter("qwen4-chat")
    assert caught.value.code is ErrorCode.PREREQUISITE_MISSING
