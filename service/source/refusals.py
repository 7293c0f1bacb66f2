"""Why the source gave nothing: one name for each cause, whether asking again can help, and when. Sends no request."""

from datetime import timedelta
from enum import Enum, StrEnum, auto
from typing import NamedTuple


class Refusal(StrEnum):
    """A cause. Every member has a row in `_RULES`; values are stored in the harvest ledger."""

    RACE_IN_FLIGHT = "race_in_flight"
    """The race runs, or its reveal embargo has not passed."""
    NOT_RELEASED = "not_released"
    """The agent version is still hidden."""
    NO_OBJECT = "no_object"
    """The item is known and nothing was ever uploaded for it."""
    OBJECT_ABSENT = "object_absent"
    """The API gave a URL, and its host has no object there."""
    FEEDBACK_ABSENT = "feedback_absent"
    """No episode feedback: the API answers alike for gated and for absent."""
    RUN_NOT_FOUND = "run_not_found"
    AGENT_NOT_FOUND = "agent_not_found"
    SUITE_NOT_FOUND = "suite_not_found"
    RACE_NOT_FOUND = "race_not_found"
    BAD_REQUEST = "bad_request"
    """The API says the question was wrong; asking it again will not help."""
    EXPIRED_URL = "expired_url"
    """The object's URL was refused, and so was a fresh one."""
    FORBIDDEN_HOST = "forbidden_host"
    """The object lies on a host that is not on the list, or a redirect leads to another host."""
    RATE_LIMITED = "rate_limited"
    UPSTREAM_ERROR = "upstream_error"
    """A 5xx."""
    UNREACHABLE = "unreachable"
    """No connection."""
    TIMEOUT = "timeout"
    TRUNCATED = "truncated"
    """The connection or the gzip stream ended early."""
    TOO_LARGE = "too_large"
    """More bytes, packed or unpacked, than the cap."""
    GZIP_BOMB = "gzip_bomb"
    """Unpacks to more than the allowed multiple of its size."""
    BAD_GZIP = "bad_gzip"
    UNREADABLE_ANSWER = "unreadable_answer"
    """A listing that is not JSON of the expected outline."""
    UNEXPECTED = "unexpected"
    """An undocumented status."""

    @property
    def terminal(self) -> bool:
        """Whether asking again cannot help."""
        return _RULES[self].terminal

    @property
    def delay(self) -> timedelta:
        """How long to wait before asking again, where the source does not say."""
        return _RULES[self].delay

    @property
    def is_embargo(self) -> bool:
        """Whether the item is merely held back for now, so that waiting for it is no failure."""
        return _RULES[self].about is _About.RELEASE

    @property
    def is_about_source(self) -> bool:
        """Whether this speaks of the source as a whole and says nothing about what was asked for."""
        return _RULES[self].about is _About.SOURCE


class _About(Enum):
    ITEM = auto()
    RELEASE = auto()
    SOURCE = auto()


class _Rule(NamedTuple):
    terminal: bool
    delay: timedelta
    about: _About = _About.ITEM


_NEVER = _Rule(terminal=True, delay=timedelta(0))


def _again(about: _About = _About.ITEM, **delay: float) -> _Rule:
    return _Rule(terminal=False, delay=timedelta(**delay), about=about)


_RULES: dict[Refusal, _Rule] = {
    Refusal.RACE_IN_FLIGHT: _again(_About.RELEASE, minutes=15),
    Refusal.NOT_RELEASED: _again(_About.RELEASE, hours=6),
    Refusal.NO_OBJECT: _NEVER,
    Refusal.OBJECT_ABSENT: _NEVER,
    Refusal.FEEDBACK_ABSENT: _again(_About.RELEASE, hours=1),
    Refusal.RUN_NOT_FOUND: _NEVER,
    Refusal.AGENT_NOT_FOUND: _NEVER,
    Refusal.SUITE_NOT_FOUND: _NEVER,
    Refusal.RACE_NOT_FOUND: _NEVER,
    Refusal.BAD_REQUEST: _NEVER,
    Refusal.EXPIRED_URL: _again(minutes=1),
    Refusal.FORBIDDEN_HOST: _NEVER,
    Refusal.RATE_LIMITED: _again(_About.SOURCE, minutes=1),
    Refusal.UPSTREAM_ERROR: _again(_About.SOURCE, minutes=1),
    Refusal.UNREACHABLE: _again(_About.SOURCE, minutes=1),
    Refusal.TIMEOUT: _again(_About.SOURCE, minutes=1),
    Refusal.TRUNCATED: _again(seconds=30),
    Refusal.TOO_LARGE: _NEVER,
    Refusal.GZIP_BOMB: _NEVER,
    Refusal.BAD_GZIP: _NEVER,
    Refusal.UNREADABLE_ANSWER: _again(minutes=10),
    Refusal.UNEXPECTED: _again(hours=1),
}

PASSING = frozenset(refusal for refusal in Refusal if refusal.is_about_source) | {Refusal.TRUNCATED}
"""Causes that a listing call waits out by itself, a few times."""

_BY_ERROR_CODE = {
    "RACE_IN_FLIGHT": Refusal.RACE_IN_FLIGHT,
    "ARTIFACT_NOT_RELEASED": Refusal.NOT_RELEASED,
    "ARTIFACT_NOT_FOUND": Refusal.NO_OBJECT,
    "EVAL_RUN_NOT_FOUND": Refusal.RUN_NOT_FOUND,
    "AGENT_VERSION_NOT_FOUND": Refusal.AGENT_NOT_FOUND,
    "SUITE_NOT_FOUND": Refusal.SUITE_NOT_FOUND,
    "RACE_NOT_FOUND": Refusal.RACE_NOT_FOUND,
    "MISSING_PARAMETER": Refusal.BAD_REQUEST,
    "INVALID_ARTIFACT_TYPE": Refusal.BAD_REQUEST,
    "RATE_LIMIT_EXCEEDED": Refusal.RATE_LIMITED,
}


def refusal_of(status: int, body: object) -> Refusal:
    """The cause behind an answer that is no success: its typed code first, then its status."""
    code = body.get("error_code") if isinstance(body, dict) else None
    if status == 429:
        return Refusal.RATE_LIMITED
    if status >= 500:
        return Refusal.UPSTREAM_ERROR
    if isinstance(code, str) and code in _BY_ERROR_CODE:
        return _BY_ERROR_CODE[code]
    return Refusal.BAD_REQUEST if status in (400, 422) else Refusal.UNEXPECTED
