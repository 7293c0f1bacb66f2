"""Who wrote the think text of each step, decided as calls are: from replies, and "not said" only of a whole log.

A text that stands in a reply may still be a text that the model was told to say; that shows in classes, not here.
"""

from collections.abc import Callable
from enum import StrEnum

from service.domain.actions import Step
from service.domain.attribution.replies import plain_text, unescaped
from service.domain.trajectory import Trajectory


class ThinkSource(StrEnum):
    """Where the think text of a step comes from."""

    VERBATIM = "verbatim"
    """It stands in a logged reply."""
    NEAR_VERBATIM = "near_verbatim"
    """It does once white space and escapes are set aside."""
    NOT_SAID = "not_said"
    """The log is whole, and no reply in it says this."""
    UNKNOWN = "unknown"
    """A reply that may have said it is missing from the log."""

    @property
    def is_said(self) -> bool | None:
        """Whether a reply says it; None where that is not known."""
        return None if self is ThinkSource.UNKNOWN else self is not ThinkSource.NOT_SAID


def think_sources(trajectory: Trajectory, may_be_missing: Callable[[Step], bool]) -> tuple[ThinkSource | None, ...]:
    """For each step, where its think text comes from; None where it has none.

    Args:
        trajectory: what happened.
        may_be_missing: whether a reply that led to a step may be missing from the log.
    """
    texts = [text for reply in trajectory.inferences for text in (reply.content, reply.reasoning) if text]
    said = plain = ""
    following = 0
    sources: list[ThinkSource | None] = []
    for step in trajectory.steps:
        think = step.think
        if not think:
            sources.append(None)
            continue
        if following < len(texts) and think in texts[following]:  # the usual case: replies and steps in one order
            following += 1
            sources.append(ThinkSource.VERBATIM)
            continue
        said = said or " ".join(texts)
        if think in said:
            sources.append(ThinkSource.VERBATIM)
            continue
        plain = plain or _plain(said)
        if _plain(think) in plain:
            sources.append(ThinkSource.NEAR_VERBATIM)
        else:
            sources.append(ThinkSource.UNKNOWN if may_be_missing(step) else ThinkSource.NOT_SAID)
    return tuple(sources)


def _plain(text: str) -> str:
    return plain_text(unescaped(text))
