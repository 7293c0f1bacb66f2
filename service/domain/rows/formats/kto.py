"""KTO: single turns labelled desirable or not (arXiv:2402.01306), in the columns that TRL's `KTOTrainer` reads.

Of a kept trajectory every turn that may be trained on is desirable. Of a clean failure the turns before the first
faulty one are nobody's fault and are left out; from that one on all are undesirable. No other trajectory gives turns.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from service.domain.attribution.classes import Issuer
from service.domain.attribution.replies import call_key
from service.domain.rows.chat import Message
from service.domain.rows.formats.turns import arguments, as_chat, assistant_turns, is_answered
from service.domain.rows.records import Row
from service.domain.rows.splits import Config
from service.domain.tools import TOOLS, ExecutionKind, product_ids, stands_in

VERSION = "kto-labels/1"
"""Names the rule of labels and the number below; a change of either is a new version, and a new snapshot id."""
TURNS_PER_TRAJECTORY = 4
"""Ours: a long trajectory should not outweigh short ones, and each of its turns repeats the whole history."""
RATIO = (1.0, 4 / 3)
"""Between which desirable weight times desirable examples, over the same of the others, should lie (section 4.2)."""


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    """Examples of each label, and weights that bring them within `RATIO`."""

    desirable: int
    undesirable: int
    desirable_weight: float | None
    """None where one label has no examples: no weight helps."""
    undesirable_weight: float | None


class _Turn(NamedTuple):
    place: int
    label: bool


def examples(row: Row) -> Iterator[dict[str, Any]]:
    """The examples of one row, none of most; at most `TURNS_PER_TRAJECTORY`, spread evenly, first and last included."""
    for turn in _spread(_turns(row)):
        yield {
            "prompt": [as_chat(message) for message in row.messages[: turn.place]],
            "completion": [as_chat(row.messages[turn.place])],
            "label": turn.label,
            "tools": row.tools,
            "row_id": row.row_id,
            "trajectory_key": row.trajectory_key,
            "problem_id": row.problem_id,
            "turn": turn.place,
        }


def balance(desirable: int, undesirable: int) -> Balance:
    """Weigh the rarer label up, as little as brings the ratio into its bounds."""
    if not desirable or not undesirable:
        return Balance(desirable=desirable, undesirable=undesirable, desirable_weight=None, undesirable_weight=None)
    ratio = desirable / undesirable
    low, high = RATIO
    return Balance(
        desirable=desirable,
        undesirable=undesirable,
        desirable_weight=low / ratio if ratio < low else 1.0,
        undesirable_weight=ratio / high if ratio > high else 1.0,
    )


def _turns(row: Row) -> list[_Turn]:
    if row.config is Config.NEGATIVE:
        first = first_fault(row.messages, ExecutionKind(row.kind))
        # What code issued is no fault of the model's.
        return [
            _Turn(place, False)
            for place, message in assistant_turns(row.messages)
            if first is not None and place >= first and message.issuer != Issuer.HARNESS
        ]
    if row.config is Config.REJECTED:
        return []
    return [_Turn(place, True) for place, message in assistant_turns(row.messages) if message.train]


def _spread(turns: Sequence[_Turn]) -> list[_Turn]:
    most = TURNS_PER_TRAJECTORY
    if len(turns) <= most:
        return list(turns)
    return [turns[number * (len(turns) - 1) // (most - 1)] for number in range(most)]


def first_fault(messages: Sequence[Message], kind: ExecutionKind) -> int | None:
    """The first turn of a failure that is provably wrong by itself; None where there is no assistant turn.

    Wrong by itself is a turn that names a product nobody has shown, or that calls once more what has been answered just
    so since the user last spoke: to try again after an error is no fault. Where none is, the answer is what was wrong:
    the first turn that answers, or the last one where none does.
    """
    tools = TOOLS[kind]
    shown = ""
    asked: dict[str | None, str] = {}
    made: set[str] = set()
    answering: int | None = None
    last: int | None = None
    for place, message in enumerate(messages):
        if message.role != "assistant":
            shown += f"\n{message.content}" if message.role != "system" else ""
            if message.role == "user":
                made.clear()
            elif message.tool_call_id in asked and is_answered(message):
                made.add(asked[message.tool_call_id])
            continue
        last = place
        for use in message.tool_calls or ():
            name, given = use.function.name, arguments(use)
            key = call_key(name, given)
            named = product_ids(given) if isinstance(given, dict) and name in tools.view | tools.answer else ()
            if key in made or not all(stands_in(one, shown) for one in named):
                return place
            asked[use.id] = key
            if name in tools.answer and answering is None:
                answering = place
    return last if answering is None else answering
