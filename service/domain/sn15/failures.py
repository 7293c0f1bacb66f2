"""Why an episode failed, in one spelling. The guide, the API and the validators' results each write it their own way.

Not a verdict: it is what SN15 says. A category that is not known here stays as it came.
"""

import re
from enum import StrEnum

_SEPARATORS = re.compile(r"[\W_]+")


class FailureCategory(StrEnum):
    """The kinds of failure SN15 names; spelled as in the public feedback, where that has a name for them."""

    DID_NOT_FINISH = "did_not_finish"
    REQUEST_NOT_MET = "request_not_met"
    NEEDS_NOT_FOUND = "needs_not_found"
    CHANGES_MISSED = "changes_missed"
    PROCESS_REQUIREMENT_MISSED = "process_requirement_missed"
    NOT_THE_BEST_OPTION = "not_the_best_option"
    EXTRA_QUESTIONS = "extra_questions"
    """Only the guide names it."""
    INFRASTRUCTURE = "infrastructure"
    """The validator's side failed, and not the agent."""
    ENVIRONMENT_FAULT = "environment_fault"
    """As above, in the words of the results; the world itself was at fault."""
    WORLD_ERROR = "world_error"


_OTHERWISE = {
    "process_issue": FailureCategory.PROCESS_REQUIREMENT_MISSED,
    "not_best_option": FailureCategory.NOT_THE_BEST_OPTION,
}
"""Spellings that differ by more than their separators."""


def category_of(text: str | None) -> str | None:
    """The category behind any of its spellings, as a `FailureCategory` where it is one of these, else the text."""
    if text is None:
        return None
    name = _SEPARATORS.sub("_", text).strip("_").lower()
    try:
        return _OTHERWISE.get(name) or FailureCategory(name)
    except ValueError:
        return text
