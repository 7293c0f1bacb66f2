"""Who issued one call: by the reply that holds it, else by what the log and the released code can say of it.

Not a grade: how far the log is believed is `trust` and `testimony`. `harness` takes positive evidence; what the
evidence leaves open is `unknown`.
"""

from collections.abc import Sequence

from service.domain.attribution import trust
from service.domain.attribution.classes import Issuer
from service.domain.attribution.evidence import Evidence
from service.domain.attribution.pairing import Clock, Executed, Held
from service.domain.attribution.replies import ReplyCalls, call_key, mentions, opens, plain_text, unescaped, values_key
from service.domain.attribution.testimony import CodeRule
from service.domain.trajectory import ExecutionKind, Step, Trajectory

OPEN_TO_CODE = frozenset({"reply_dropped", "reply_unread", "reply_says_otherwise", "reply_mentions_call"})
"""Rules that leave a call open though the log is whole: a reply that cannot be read may hold it."""
MOST_READ = 200_000
"""Characters of all replies that are searched for a call that none of them spells; no honest log comes near."""


class Log:
    """What the proxy log can say about a call that no reply is known to hold."""

    def __init__(
        self,
        trajectory: Trajectory,
        evidence: Evidence,
        replies: Sequence[ReplyCalls],
        backing: trust.SearchBacking,
        clock: Clock,
    ) -> None:
        reported = trust.reported_inferences(trajectory, evidence.judgement)
        self.gap: str | None = None
        if trajectory.kind is not ExecutionKind.LEGACY:
            self.gap = "no_inference_log"
        elif reported is None:
            self.gap = "count_unknown"
        elif reported != len(trajectory.inferences):
            self.gap = "count_differs"
        elif not trust.log_whole(trajectory):
            self.gap = "log_unread"
        elif backing.unbacked:
            self.gap = "client_bypassed"
        self._clock = clock
        self._replies = replies
        self._dropped = [index for index, reply in enumerate(trajectory.inferences) if reply.dropped]
        self._words: dict[int, str] = {}
        self._keys: dict[int, list[tuple[str, str, str]]] = {}
        self._is_too_much = sum([len(reply.rest) for reply in replies]) > MOST_READ
        self._executed_names = {call.name for step in trajectory.steps for call in step.calls}

    def may_lack_reply(self, step: Step) -> bool:
        """Whether a reply that led to a step may be missing from the log."""
        if self.gap is not None or not self._dropped:
            return self.gap is not None
        return any(self._clock.may_have_led(index, step) for index in self._dropped)

    def issuer(self, one: Executed) -> tuple[Issuer, str]:
        """Who issued a call, and the rule that says so."""
        if self.gap is not None:
            return Issuer.UNKNOWN, self.gap
        if self.may_lack_reply(one.step):
            return Issuer.UNKNOWN, "reply_dropped"
        if self._is_too_much:
            return Issuer.UNKNOWN, "reply_unread"
        name, arguments = one.call.name, one.call.arguments
        for index, reply in enumerate(self._replies):
            if not self._clock.may_have_led(index, one.step):
                continue
            if reply.calls and self._says_otherwise(index, name, arguments):
                return Issuer.UNKNOWN, "reply_says_otherwise"
            if not reply.rest:
                continue
            if name in reply.unread or opens(reply.rest, name, arguments):
                return Issuer.UNKNOWN, "reply_unread"
            if not reply.calls and mentions(self._said(index), name, arguments):
                return Issuer.UNKNOWN, "reply_mentions_call"
        return Issuer.HARNESS, "log_whole_no_reply"

    def _says_otherwise(self, index: int, name: str, arguments: object) -> bool:
        """Whether a reply asks for the same values under other names, which the agent's code may translate."""
        if index not in self._keys:
            calls = self._replies[index].calls
            self._keys[index] = [
                (call.name, values_key(call.arguments), call_key(call.name, call.arguments)) for call in calls
            ]
        values, key = values_key(arguments), call_key(name, arguments)
        return any(
            said_values == values and said_key != key
            for said, said_values, said_key in self._keys[index]
            if said == name or said not in self._executed_names
        )

    def _said(self, index: int) -> str:
        if index not in self._words:
            self._words[index] = plain_text(unescaped(self._replies[index].rest))
        return self._words[index]


def issuer_of(
    one: Executed, holder: Held | None, ended_at: int | None, log: Log, code: CodeRule, kind: ExecutionKind
) -> tuple[Issuer, str]:
    """Who issued a call, and the rule that says so. `ended_at`: the step that had called `terminate` before."""
    if ended_at is not None and ended_at < one.step.index:
        return Issuer.HARNESS, "after_terminate"
    if holder is not None:
        return Issuer.MODEL, "reply_holds_call"
    issuer, rule = log.issuer(one)
    if issuer is Issuer.HARNESS:
        return issuer, rule if ended_at is None else "after_terminate"
    if code.runs_replies and (kind is ExecutionKind.ENVPACK or rule in OPEN_TO_CODE):
        return Issuer.MODEL, "code_runs_replies"
    if code.calls_tools and kind is ExecutionKind.ENVPACK:
        return Issuer.HARNESS, "code_calls_tools"
    return issuer, rule
