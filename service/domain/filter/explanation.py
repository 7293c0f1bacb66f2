"""A verdict laid open: in order of time, what was logged, what was done, who issued it, and on what grounds.

Decides nothing: the verdict is given, and shown as it is. Words for people are in `wording`.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from service.domain.actions import Inference, Search, Step
from service.domain.attribution.evidence import Evidence
from service.domain.attribution.lifting import Lifting, lifting
from service.domain.attribution.provenance import CallProvenance, Issuer, attribute
from service.domain.attribution.replies import calls_in, plain_text
from service.domain.attribution.thoughts import ThinkSource
from service.domain.filter.rules import RuleSet
from service.domain.filter.structure import Verdict
from service.domain.filter.wording import (
    WHY_CLASS,
    WHY_CONTRADICTED,
    WHY_ISSUER,
    WHY_REASON,
    WHY_TRUST,
    WHY_UNSUPPORTED,
    sentence,
)
from service.domain.trajectory import Trajectory

EXCERPT = 300
"""Characters of a reply or an argument that are shown; the whole text is in the trajectory."""


class Ground(msgspec.Struct, frozen=True):
    """A name out of the verdict, and what it means."""

    name: str
    why: str


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened. `what` is None where the content is withheld."""

    kind: str
    """`reply`, `search`, `think` or `call`."""
    step: int | None
    """The step it belongs to in true time; the log files a step's requests one step early. None: after the last."""
    seconds: float | None
    """From the first thing that happened; None where no time is known."""
    what: str | None
    issuer: str | None = None
    rule: str | None = None
    why: str | None = None
    inference: int | None = None
    """Index of the reply that it is, or that holds it."""
    lifted_from: tuple[int, ...] = ()
    """Replies that state every value of a call which code issued."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """One verdict with its grounds."""

    outcome: str
    decided: Ground
    """The gate that decided."""
    failed: tuple[Ground, ...]
    """Every gate that failed, in the order they are asked."""
    structural_class: Ground
    trust: Ground
    contradictions: tuple[Ground, ...]
    unsupported: tuple[Ground, ...]
    findings: tuple[Ground, ...]
    """What a scan of the released code found, with line numbers; never its text."""
    lift: str
    entries: tuple[Entry, ...]


def explain(
    trajectory: Trajectory,
    evidence: Evidence,
    verdict: Verdict,
    rules: RuleSet,
    *,
    with_content: bool = True,
    excerpt: int = EXCERPT,
) -> Explanation:
    """Lay a verdict open.

    Args:
        trajectory: what happened.
        evidence: what the verdict was made on.
        verdict: the verdict to explain.
        rules: the rule set it was made under.
        with_content: show what was said and done; without it only who issued which call, and why.
        excerpt: characters shown of each text.
    """
    # Of a trajectory that was taken down there is a verdict and nothing else.
    lifted = lifting(trajectory, verdict.calls if trajectory.steps else ())
    signals = verdict.signals if with_content else {}
    entries = _Telling(trajectory, evidence, verdict, rules, lifted, excerpt).entries()
    if not with_content:
        entries = (_withheld(entry) for entry in entries if entry.kind == "call")
    return Explanation(
        outcome=verdict.outcome,
        decided=_ground(verdict.reason, WHY_REASON),
        failed=tuple(_ground(name, WHY_REASON) for name in signals.get("failed_gates", ())),
        structural_class=_ground(verdict.structural_class, WHY_CLASS),
        trust=_ground(verdict.trust, WHY_TRUST),
        contradictions=tuple(_ground(name, WHY_CONTRADICTED) for name in signals.get("contradictions", ())),
        unsupported=tuple(_ground(name, WHY_UNSUPPORTED) for name in signals.get("unsupported", ())),
        findings=tuple(_findings(evidence)),
        lift=lifted.extent.value,
        entries=tuple(entries),
    )


def _withheld(entry: Entry) -> Entry:
    return msgspec.structs.replace(entry, what=None, seconds=None)


def _ground(name: str, wording: Any) -> Ground:
    return Ground(str(name), sentence(wording, str(name)))


def _findings(evidence: Evidence) -> Iterator[Ground]:
    scan = evidence.code
    if scan is None:
        return
    yield Ground("dispatch", f"the released code dispatches calls by: {scan.dispatch.value}")
    if not scan.is_readable:
        yield Ground("unreadable", "the released code is no Python that parses")
    for finding in scan.findings:
        yield Ground(finding.kind.value, f"line {finding.line}: {finding.name}")


class _Telling:
    """Puts the parts of one trajectory in order of time."""

    def __init__(
        self,
        trajectory: Trajectory,
        evidence: Evidence,
        verdict: Verdict,
        rules: RuleSet,
        lifted: Lifting,
        excerpt: int,
    ) -> None:
        self._trajectory = trajectory
        self._excerpt = excerpt
        self._calls = {(call.step, call.call): call for call in verdict.calls}
        self._thinks = attribute(trajectory, evidence, rules.evidence).thinks
        self._lifted = {
            (call.step, call.call): tuple(sorted({match.inference for match in call.matches})) for call in lifted.calls
        }
        log: list[Inference | Search] = [*trajectory.inferences, *trajectory.searches]
        times = [line.timestamp_ms - line.duration_ms for line in log]
        times += [step.timestamp_ms for step in trajectory.steps if step.timestamp_ms is not None]
        self._start_ms = min(times, default=0.0)

    def entries(self) -> Iterator[Entry]:
        """Log lines before the step they led to, then its think text and its calls."""
        lines: list[tuple[float, int, Entry]] = []
        first_held = {call.inference: call.step for call in reversed(tuple(self._calls.values()))}
        for index, reply in enumerate(self._trajectory.inferences):
            led_to = first_held.get(index, self._true_step(reply.timestamp_ms))
            lines.append((_place(led_to), reply.timestamp_ms, self._reply(index, reply, led_to)))
        for search in self._trajectory.searches:
            led_to = self._true_step(search.timestamp_ms)
            lines.append((_place(led_to), search.timestamp_ms, self._search(search, led_to)))
        lines.sort(key=lambda line: line[:2])
        at = 0
        for step in self._trajectory.steps:
            while at < len(lines) and lines[at][0] <= step.index:
                yield lines[at][2]
                at += 1
            yield from self._step(step)
        for _, _, entry in lines[at:]:
            yield entry

    def _true_step(self, at_ms: int) -> int | None:
        """A step is stamped after its tools ran: the first one stamped then or later."""
        for step in self._trajectory.steps:
            if step.timestamp_ms is not None and step.timestamp_ms >= at_ms:
                return step.index
        return None

    def _reply(self, index: int, reply: Inference, step: int | None) -> Entry:
        return Entry(
            kind="reply",
            step=step,
            seconds=self._seconds(reply.timestamp_ms),
            what=self._reply_text(reply),
            inference=index,
        )

    def _search(self, search: Search, step: int | None) -> Entry:
        found = "" if search.product_ids is None else f", {len(search.product_ids)} products"
        asked = ", ".join(f"{name}={value}" for name, value in search.params.items())
        what = f"{search.path.rpartition('/')[2]}({self._cut(asked)}){' failed' if search.failed else found}"
        seconds = self._seconds(search.timestamp_ms)
        return Entry(kind="search", step=step, seconds=seconds, what=what)

    def _step(self, step: Step) -> Iterator[Entry]:
        seconds = None if step.timestamp_ms is None else self._seconds(step.timestamp_ms)
        if step.think:
            source = self._thinks[step.index] or ThinkSource.UNKNOWN
            rule = f"think_{source}"
            yield Entry(
                kind="think",
                step=step.index,
                seconds=seconds,
                what=self._cut(step.think),
                issuer=Issuer.MODEL if source.is_said else Issuer.UNKNOWN,
                rule=rule,
                why=sentence(WHY_ISSUER, rule),
            )
        for place, call in enumerate(step.calls):
            what = f"{call.name}({self._cut(_spelled(call.arguments))})"
            yield self._call(self._calls.get((step.index, place)), step.index, place, seconds, what)

    def _call(self, of: CallProvenance | None, step: int, place: int, seconds: float | None, what: str | None) -> Entry:
        lifted_from = self._lifted.get((step, place), ())
        if of is None:
            return Entry(kind="call", step=step, seconds=seconds, what=what)
        return Entry(
            kind="call",
            step=step,
            seconds=seconds,
            what=what,
            issuer=of.issuer,
            rule=of.rule,
            why=sentence(WHY_ISSUER, of.rule),
            inference=of.inference,
            lifted_from=lifted_from,
        )

    def _seconds(self, at_ms: float) -> float:
        return round((at_ms - self._start_ms) / 1000, 3)

    def _reply_text(self, reply: Inference) -> str:
        size = (
            f" [{reply.prompt_tokens} to {reply.completion_tokens} tokens]" if reply.prompt_tokens is not None else ""
        )
        if reply.failed:
            return "no reply"
        if reply.dropped:
            length = "" if reply.response_length is None else f" of {reply.response_length} characters"
            return f"reply{length}, which the log does not keep"
        calls = calls_in(reply).calls
        if not calls:
            return f"{self._cut(reply.content or '')}{size}"
        return "; ".join(f"{call.name}({self._cut(_spelled(call.arguments))})" for call in calls) + size

    def _cut(self, text: str) -> str:
        text = plain_text(text)
        return text if len(text) <= self._excerpt else f"{text[: self._excerpt]}\N{HORIZONTAL ELLIPSIS}"


def _place(step: int | None) -> float:
    return float("inf") if step is None else step


def _spelled(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeError, RecursionError, OverflowError):
        return "(cannot be spelled)"
