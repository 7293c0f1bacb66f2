"""A trajectory as the gates see it: with its evidence, and what several gates ask for computed once.

Decides nothing: every property is a plain fact of the trajectory or of what SN15 said.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec

from service.domain.attribution.evidence import Evidence
from service.domain.attribution.provenance import Provenance
from service.domain.filter.chat_size import tokens_at_most, tokens_of_parts_at_most
from service.domain.filter.rules import RuleSet
from service.domain.rows.chat import chat_messages, render_chat
from service.domain.rows.prompts import tool_set
from service.domain.tools import product_ids
from service.domain.trajectory import Trajectory


class Case:
    """A trajectory before the gates, with what several of them ask for computed once."""

    def __init__(
        self,
        trajectory: Trajectory,
        evidence: Evidence,
        provenance: Provenance,
        rules: RuleSet,
        count_tokens: Callable[[str], int],
    ) -> None:
        self.trajectory = trajectory
        self.evidence = evidence
        self.provenance = provenance
        self.rules = rules
        self.calls = trajectory.tool_calls
        """All calls in order."""
        self.answers = trajectory.answers
        """Calls that name the products settled on."""
        self.answer = product_ids(self.answers[-1].arguments) if self.answers else ()
        """Product ids of the last of them, as `Trajectory.answer` has them."""
        self._count_tokens = count_tokens

    @cached_property
    def results(self) -> list[bytes]:
        """Each call's result as compact JSON."""
        return [spelled(call.result) for call in self.calls]

    @property
    def success(self) -> bool | None:
        """What SN15 said of the outcome; None when it said nothing."""
        judged, feedback = self.evidence.judgement, self.trajectory.feedback
        if judged.success is not None:
            return judged.success
        if feedback is not None and feedback.passed is not None:
            return feedback.passed
        if judged.score is not None:
            return judged.score >= 1.0
        return None if judged.status is None else judged.status == "SUCCESS"

    @property
    def tokens(self) -> int | None:
        """Tokens of the rendered chat; None where a bound shows that they fit."""
        budget = self.rules.token_budget
        bound = tokens_of_parts_at_most(self.trajectory, self._spelled, budget, self._count_tokens)
        if bound is not None and bound <= budget:
            return None
        messages = chat_messages(self.trajectory, self.provenance.calls)
        text = render_chat(messages, tool_set(self.trajectory.kind, self.calls).schemas)
        at_most = tokens_at_most(text, self._count_tokens)
        return self._count_tokens(text) if at_most > budget else None

    @property
    def _spelled(self) -> bytes:
        """Arguments and results of all calls as compact JSON."""
        try:
            return msgspec.json.encode([(call.arguments, call.result) for call in self.calls])
        except (UnicodeError, RecursionError, OverflowError):
            return b"\n".join([*self.results, *[spelled(call.arguments) for call in self.calls]])


def spelled(value: Any) -> bytes:
    """A value as compact JSON; empty where it cannot be spelled."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeError, RecursionError, OverflowError):
        return b""
