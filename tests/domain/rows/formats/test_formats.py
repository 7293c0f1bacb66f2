"""Each format says what the row says: calls, results, labels; and none says what it must not."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.leaks.leakage import ProblemFacts
from service.domain.rows.chat import Function, Message, ToolUse
from service.domain.rows.formats import atif, kto, rl, sharegpt
from service.domain.rows.formats.turns import words
from service.domain.rows.records import Row
from service.domain.rows.splits import Config
from service.domain.trajectory import ExecutionKind, parse
from tests.domain.sample_rows import make_row, problem

LEGACY = ExecutionKind.LEGACY


def call(name: str, number: int = 1, **arguments: Any) -> ToolUse:
    return ToolUse(id=f"call_{number}", function=Function(name=name, arguments=json.dumps(arguments)))


def said(*uses: ToolUse, content: str = "", train: bool = False) -> Message:
    return Message(role="assistant", content=content, tool_calls=uses or None, issuer="model", train=train)


def shown(content: str, number: int = 1) -> Message:
    return Message(role="tool", content=content, tool_call_id=f"call_{number}")


SYSTEM, USER = Message(role="system", content="Shop."), Message(role="user", content="a kettle, not 999")
SEARCH = said(call("find_product", q="kettle"))
ANSWER = said(call("recommend_product", 9, product_ids="77"))
VIEW_SHOWN = said(call("view_product_information", product_ids="77,999"))
FOUND = shown('[{"product_id": "77"}]')


def again(number: str) -> Message:
    """The search once more."""
    return said(call("find_product", int(number), q="kettle"))


def row(*messages: Message, config: Config = Config.NEGATIVE) -> Row:
    return msgspec.structs.replace(make_row(), messages=(SYSTEM, USER, *messages), config=config)


@pytest.mark.parametrize(
    ("turns", "first"),
    [
        # The third turn names a product that no result shows.
        ([SEARCH, FOUND, said(call("view_product_information", product_ids="78"))], 4),
        # 7 is part of 77, and is no product that was shown.
        ([SEARCH, FOUND, said(call("view_product_information", product_ids="7"))], 4),
        # The query shows 999, and a result 77: nothing is wrong before the answer.
        ([SEARCH, FOUND, VIEW_SHOWN, said(call("recommend_product", product_ids="77"))], 5),
        # The same search again, its arguments in another order.
        ([said(call("find_product", q="k", page=1)), FOUND, said(call("find_product", page=1, q="k"))], 4),
        # Tried again after an error, and after the user had spoken: the answer is what was wrong.
        ([SEARCH, shown('{"error": "timeout"}'), again("2"), shown("[77]", 2), ANSWER], 6),
        ([SEARCH, FOUND, USER, again("2"), shown("[77]", 2), ANSWER], 7),
        ([SEARCH, shown(" "), again("2"), shown("[77]", 2), ANSWER], 6),
        # Answered once, asked once more.
        ([SEARCH, shown('{"error": "timeout"}'), again("2"), shown("[77]", 2), again("3"), ANSWER], 6),
        # No answer at all: the last turn, with which it ended.
        ([SEARCH, FOUND, said(content="I give up.")], 4),
        ([], None),
    ],
)  # fmt: skip
def test_the_first_fault_is_the_first_provable_one(turns: list[Message], first: int | None) -> None:
    assert kto.first_fault(row(*turns).messages, LEGACY) == first


def test_of_a_failure_only_turns_from_the_first_fault_on_are_undesirable() -> None:
    failed = row(SEARCH, FOUND, said(call("view_product_information", product_ids="78")), said(content="Sorry."))
    found = list(kto.examples(failed))
    assert [(one["turn"], one["label"]) for one in found] == [(4, False), (5, False)]
    assert found[0]["completion"][0]["tool_calls"][0]["function"]["name"] == "view_product_information"
    assert [message["role"] for message in found[0]["prompt"]] == ["system", "user", "assistant", "tool"]


def test_of_a_kept_row_the_turns_to_train_on_are_desirable() -> None:
    kept = row(said(content="a", train=True), said(content="b"), said(content="c", train=True), config=Config.AGENTIC)
    assert [(one["turn"], one["label"]) for one in kto.examples(kept)] == [(2, True), (4, True)]
    assert list(kto.examples(msgspec.structs.replace(kept, config=Config.REJECTED))) == []


def test_long_trajectories_give_few_turns_first_and_last_among_them() -> None:
    long = row(*(said(content=str(n), train=True) for n in range(11)), config=Config.AGENTIC)
    # 11 turns at places 2 to 12; a third of the way from 0 to 10 is 3, two thirds 6.
    assert [one["turn"] for one in kto.examples(long)] == [2, 5, 8, 12]


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_weights_bring_the_labels_within_the_ratio(desirable: int, undesirable: int) -> None:
    weighed = kto.balance(desirable, undesirable)
    assert weighed.desirable_weight is not None
    assert weighed.undesirable_weight is not None
    ratio = weighed.desirable_weight * desirable / (weighed.undesirable_weight * undesirable)
    assert 1 - 1e-9 <= ratio <= 4 / 3 + 1e-9
    assert 1.0 in (weighed.desirable_weight, weighed.undesirable_weight)
    assert min(weighed.desirable_weight, weighed.undesirable_weight) >= 1


def test_labels_of_one_kind_alone_have_no_weights() -> None:
    assert kto.balance(3, 0).desirable_weight is None
    assert kto.balance(0, 3).undesirable_weight is None


def test_a_prompt_ends_before_the_agent_speaks_and_holds_no_answer() -> None:
    told = rl.prompt(make_row())
    assert [message["role"] for message in told["prompt"]] == ["system", "user"]
    assert "answer" not in json.dumps(told)
    assert told["gold_kind"] == "gold-known"


@pytest.mark.parametrize(
    ("gold", "winners", "expected"),
    [
        ({"2", "1"}, {"3"}, {"gold_kind": "given", "gold_ids": ["1", "2"]}),
        (set(), {"3"}, {"gold_kind": "winner", "gold_ids": ["3"]}),
    ],
)
def test_gold_is_what_is_given_else_what_winners_agree_on(gold: set, winners: set, expected: dict) -> None:
    facts = ProblemFacts("p", LEGACY, "product", "q", True, frozenset(gold), frozenset(winners), frozenset("9"))
    assert rl.gold(facts) == {"problem_id": "p"} | expected


def test_a_suspect_winner_is_no_gold() -> None:
    assert rl.gold(ProblemFacts("p", LEGACY, "product", "q", True, suspect_winner_ids=frozenset("9"))) is None
    assert rl.gold(problem()) is not None


def test_atif_numbers_steps_and_names_calls() -> None:
    told = atif.document(row(SEARCH, FOUND, said(content="<think>\nhm\n</think>\n\nDone."), config=Config.AGENTIC))
    assert told["schema_version"] == "ATIF-v1.7"
    assert [step["step_id"] for step in told["steps"]] == [1, 2, 3, 4]
    assert [step["source"] for step in told["steps"]] == ["system", "user", "agent", "agent"]
    search, last = told["steps"][2:]
    assert search["tool_calls"] == [
        {"tool_call_id": "call_1", "function_name": "find_product", "arguments": {"q": "kettle"}}
    ]
    assert search["observation"]["results"] == [{"source_call_id": "call_1", "content": FOUND.content}]
    assert (last["reasoning_content"], last["message"]) == ("hm", "Done.")
    assert told["final_metrics"] == {"total_steps": 4}
    assert "model_name" in told["agent"]


@pytest.mark.parametrize(
    ("issuer", "reconstructed", "count"),
    [
        ("model", False, 1),
        ("model", True, None),
        ("model", None, None),
        ("unknown", False, None),
        ("harness", True, None),
    ],
)
def test_atif_counts_a_request_only_where_a_reply_shows_it(
    issuer: str, reconstructed: bool | None, count: int | None
) -> None:
    turn = msgspec.structs.replace(SEARCH, issuer=issuer, reconstructed=reconstructed)
    assert atif.document(row(turn))["steps"][2].get("llm_call_count") == count


def test_turns_of_code_are_no_fault_of_the_models() -> None:
    coded = msgspec.structs.replace(ANSWER, issuer="harness")
    failed = row(SEARCH, FOUND, coded, said(content="Sorry."))
    assert [one["turn"] for one in kto.examples(failed)] == [5]


@pytest.mark.parametrize("text", ["[" * 5_000 + "]" * 5_000, '{"a": ' * 5_000, "\ud800", "nonsense", "[1]", "7"])
def test_arguments_of_any_kind_stop_no_format(text: str) -> None:
    use = ToolUse(id="call_1", function=Function(name="recommend_product", arguments=text))
    hostile = row(said(use, train=True), shown("[" * 5_000), config=Config.AGENTIC)
    list(kto.examples(hostile))
    kto.first_fault(hostile.messages, LEGACY)
    (written,) = atif.document(hostile)["steps"][2]["tool_calls"]
    assert written["arguments"] == {"_raw": {"[1]": [1], "7": 7}.get(text, text)}
    assert sharegpt.document(hostile)["conversations"]


ARGUMENTS = st.dictionaries(st.text(max_size=8), st.text(max_size=8) | st.integers(-9, 9) | st.none(), max_size=3)
RESULT = st.text(min_size=1, max_size=12) | st.lists(st.integers(-9, 9), max_size=3)


@given(st.lists(st.tuples(st.sampled_from(["find_product", "x"]), ARGUMENTS, RESULT), min_size=1, max_size=4))
def test_our_own_reader_reads_what_we_write_into_the_same_calls(calls: list[tuple[str, dict, Any]]) -> None:
    messages: list[Message] = []
    for number, (name, arguments, result) in enumerate(calls, start=1):
        content = result if isinstance(result, str) else json.dumps(result)
        messages += [said(call(name, number, **{}), content="w"), shown(content, number)]
        use = ToolUse(id=f"call_{number}", function=Function(name=name, arguments=json.dumps(arguments)))
        messages[-2] = said(use, content="w")
    document = msgspec.json.encode(atif.document(row(*messages)))
    read = parse(document, ExecutionKind.ATIF)
    assert read.defects == ()
    assert read.query == USER.content
    assert [(one.name, one.arguments) for one in read.tool_calls] == [(name, given) for name, given, _ in calls]
    for one, (_, _, result) in zip(read.tool_calls, calls, strict=True):
        assert one.result == (result if not isinstance(result, str) else as_read(result))


def as_read(text: str) -> Any:
    """The reader takes text that spells a list or an object for what it spells."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, list | dict) else text


def test_sharegpt_speaks_in_turns() -> None:
    both = said(call("find_product", 1, q="a"), call("find_product", 2, q="b"), content="Looking.")
    told = sharegpt.document(row(both, shown("A"), shown("B", 2), said(content="Done.")))
    assert told["system"] == "Shop."
    assert [turn["from"] for turn in told["conversations"]] == ["human", "function_call", "observation", "gpt"]
    called = told["conversations"][1]["value"]
    text, _, calls = called.partition("\n")
    assert text == "Looking."
    assert [one["arguments"]["q"] for one in json.loads(calls)] == ["a", "b"]
    assert json.loads(told["conversations"][2]["value"]) == ["A", "B"]
    alone = sharegpt.document(row(SEARCH, FOUND))["conversations"]
    assert json.loads(alone[1]["value"]) == {"name": "find_product", "arguments": {"q": "kettle"}}
    assert alone[2]["value"] == FOUND.content


@pytest.mark.parametrize(
    ("content", "think", "text"),
    [
        ("<think>\nhm\n</think>\n\nDone.", "hm", "Done."),
        ("<think>\nhm\n</think>\n\n", "hm", ""),
        ("Done.", "", "Done."),
        ("say </think> aloud", "", "say </think> aloud"),
    ],
)
def test_thoughts_come_apart_from_words(content: str, think: str, text: str) -> None:
    assert words(said(content=content)) == (think, text)
