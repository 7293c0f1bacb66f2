"""The bound never undercuts the rendered chat, and spares most rows the count."""

import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.attribution.evidence import Evidence
from service.domain.attribution.provenance import attribute
from service.domain.filter.chat_size import PAIRING_LETTERS, TURN_TOKENS, tokens_at_most, tokens_of_parts_at_most
from service.domain.rows.chat import chat_messages, render_chat
from service.domain.rows.prompts import tool_set
from service.domain.trajectory import Trajectory
from service.tokenizer import qwen_encoding, qwen_tokens
from tests.domain.dialogues import FIND, RECOMMEND, RESULTS, TERMINATE, VIEW, Run, agentic_run, tagged

TEXT = st.text(max_size=40) | st.sampled_from(
    ["<|im_start|>", "</think>", "<tool_call>", "a, b: c", "\x1f\\\"'/", "東京"]
)
VALUE = st.recursive(
    TEXT | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


TAG = re.compile(r"<\|im_(?:start|end)\|>|</?(?:think|tool_call|tool_response)>")


def worst(trajectory: Trajectory) -> int:
    """Tokens of the opening, and of the rest as many as it could have: one a tag, one for any other byte."""
    text = rendered(trajectory)
    cut = text.index("<|im_start|>", 1)
    return count(text[:cut]) + len(TAG.sub("?", text[cut:]).encode())


def count(text: str) -> int:
    return len(qwen_tokens(text))


def bound(trajectory: Trajectory, enough: int = 10**9) -> int | None:
    spelled = [[call.arguments, call.result] for call in trajectory.tool_calls]
    return tokens_of_parts_at_most(trajectory, msgspec.json.encode(spelled), enough, count)


def exact(trajectory: Trajectory) -> int:
    return count(rendered(trajectory))


def rendered(trajectory: Trajectory) -> str:
    calls = attribute(trajectory, Evidence()).calls
    return render_chat(chat_messages(trajectory, calls), tool_set(trajectory.kind, trajectory.tool_calls).schemas)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(TEXT, TEXT, st.sampled_from([FIND, VIEW, RECOMMEND, TERMINATE]), VALUE), min_size=1, max_size=5)
)
def test_the_bound_never_undercuts_the_chat(steps: list[tuple]) -> None:
    run = Run()
    for think, reply, call, result in steps:
        run.reply(tagged(reply, call))
        run.step(think, call, results={**RESULTS, "find_product": [], call[0]: result}, logged=False)
    trajectory = run.trajectory()
    at_most = bound(trajectory)
    assert at_most is None or at_most >= worst(trajectory)
    closer = bound(trajectory, enough=0)
    assert (closer is None) is (at_most is None)
    assert closer is None or closer >= exact(trajectory)


def test_the_bound_is_near_enough_to_be_of_use() -> None:
    trajectory = agentic_run().trajectory()
    at_most = bound(trajectory)
    assert at_most is not None
    assert at_most < 2 * worst(trajectory)


def test_a_tool_of_the_agents_own_has_no_bound() -> None:
    run = Run()
    run.step("", ("dance", {"steps": 3}), results={"dance": "danced"})
    assert bound(run.trajectory()) is None


def test_a_chat_that_offers_a_tool_of_the_reference_agent_is_not_undercut() -> None:
    run = Run()
    run.step("", ("find_products_in_same_shop", {"product_queries": "[]"}), results={"find_products_in_same_shop": []})
    trajectory = run.trajectory()
    text = render_chat(chat_messages(trajectory, ()), tool_set(trajectory.kind, trajectory.tool_calls).schemas)
    at_most = bound(trajectory)
    assert at_most is not None
    # A bound that forgot the schema would still hide in what the turns are allowed.
    assert at_most - 2 * TURN_TOKENS >= count(text[: text.index("<|im_start|>", 1)])


def test_pairing_letters_pair() -> None:
    encoding = qwen_encoding()
    letters = [chr(letter) for letter in PAIRING_LETTERS]
    pairs = [first + second for first in [" ", *letters] for second in letters]
    assert [pair for pair in pairs if len(encoding.encode(pair)) != 1] == []


WORDS = st.sampled_from(
    ["the", " product", "ing", "'ll", "'s", "it's", "'re", "zzxqj", "  ", "\n", '"q"', "don't", "3", "ABC"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(TEXT | WORDS | st.text(alphabet="abcdefghilmnoprstuw '\n", max_size=20), max_size=30))
def test_the_bound_on_tokens_never_undercuts_their_count(parts: list[str]) -> None:
    chat = "<|im_start|>system\nfind<|im_end|>\n<|im_start|>user\n" + "".join(parts)
    assert tokens_at_most(chat, count) >= count(chat)


def test_the_bound_on_tokens_is_well_below_the_bytes() -> None:
    trajectory = agentic_run().trajectory()
    text = render_chat(chat_messages(trajectory, ()), tool_set(trajectory.kind, trajectory.tool_calls).schemas)
    assert tokens_at_most(text, count) < 0.7 * len(text.encode())


@pytest.mark.parametrize("result", ["7" * 9_000, "7x" * 4_500, "\u6771" * 3_000, "q'" * 4_500])
def test_what_does_not_pair_is_spared_nothing(result: str) -> None:
    """Nearly each of these characters is a token or more, so that a bound which pairs them would undercut the chat."""
    run = Run()
    run.step("", FIND, results={**RESULTS, "find_product": [{"product_id": "7", "title": result}]})
    trajectory = run.trajectory()
    closer = bound(trajectory, enough=0)
    assert closer is not None
    assert closer >= exact(trajectory)
    assert exact(trajectory) > 2_900
