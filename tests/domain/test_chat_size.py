"""The bound never undercuts the rendered chat, and spares most rows the count."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.chat import chat_messages, render_chat
from service.domain.chat_size import bytes_at_most
from service.domain.evidence import Evidence
from service.domain.prompts import tool_set
from service.domain.provenance import attribute
from service.domain.trajectory import Trajectory
from tests.domain.dialogues import FIND, RECOMMEND, RESULTS, TERMINATE, VIEW, Run, agentic_run, tagged

TEXT = st.text(max_size=40) | st.sampled_from(
    ["<|im_start|>", "</think>", "<tool_call>", "a, b: c", "\x1f\\\"'/", "東京"]
)
VALUE = st.recursive(
    TEXT | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def rendered_bytes(trajectory: Trajectory) -> int:
    calls = attribute(trajectory, Evidence()).calls
    text = render_chat(chat_messages(trajectory, calls), tool_set(trajectory.kind, trajectory.tool_calls).schemas)
    return len(text.encode())


def bound(trajectory: Trajectory) -> int | None:
    spelled = [msgspec.json.encode(part) for call in trajectory.tool_calls for part in (call.arguments, call.result)]
    return bytes_at_most(trajectory, spelled)


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
    assert at_most is None or at_most >= rendered_bytes(trajectory)


def test_the_bound_is_near_enough_to_be_of_use() -> None:
    trajectory = agentic_run().trajectory()
    at_most = bound(trajectory)
    assert at_most is not None
    assert at_most < 2 * rendered_bytes(trajectory)


def test_a_tool_of_the_agents_own_has_no_bound() -> None:
    run = Run()
    run.step("", ("dance", {"steps": 3}), results={"dance": "danced"})
    assert bound(run.trajectory()) is None
