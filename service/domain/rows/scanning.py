"""Secrets and personal data in the texts of a row: what is found, and where, never the text itself.

Precision first: shop text is full of numbers, so a number counts only where it is written as its kind is. Not a
guarantee: what follows no known form is not seen.
"""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

SCANNER = "row-scan/1"
"""Names the forms below; a change of any is a new one."""


class Kind(StrEnum):
    """What kind of thing was found."""

    API_KEY = "api_key"
    TOKEN = "token"
    """A JSON web token, or what follows `Bearer`."""
    PRIVATE_KEY = "private_key"
    SIGNED_URL = "signed_url"
    """The signature of a presigned URL, which is a credential while it lasts."""
    EMAIL = "email"
    PHONE = "phone"
    """Written with its country code."""
    CARD = "card"
    """Written in groups, with a right check digit."""


SECRETS = frozenset({Kind.API_KEY, Kind.TOKEN, Kind.PRIVATE_KEY, Kind.SIGNED_URL})
PERSONAL = frozenset(Kind) - SECRETS

_FORMS: dict[Kind, re.Pattern[str]] = {
    Kind.API_KEY: re.compile(
        r"\b(?:sk-[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{30,}|gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,}"
        r"|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{35}|xox[baprs]-[A-Za-z0-9-]{10,}|cpk_[A-Za-z0-9._]{40,}"
        r"|glpat-[A-Za-z0-9_-]{20,}|r8_[A-Za-z0-9]{37,})"
    ),
    Kind.TOKEN: re.compile(
        r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
        r"|\bBearer\s+(?=[A-Za-z0-9._~+/-]*\d)[A-Za-z0-9._~+/-]{24,}"
    ),
    Kind.PRIVATE_KEY: re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"),
    Kind.SIGNED_URL: re.compile(
        r"[?&](?:X-Amz-Signature=[0-9a-f]{64}|X-Goog-Signature=[0-9a-f]{64,}|sig=[\w%/+=-]{40,})"
    ),
    Kind.EMAIL: re.compile(r"(?<![\w.+-])[A-Za-z0-9][\w.%+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.)+[A-Za-z]{2,24}\b"),
    Kind.PHONE: re.compile(r"(?<![\w+])\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{2,4}(?:[ .-]?\d{2,4}){2,4}(?!\w)"),
    Kind.CARD: re.compile(r"(?<![\w-])[3-6]\d{3}(?:([ -])\d{4}\1\d{4}\1\d{4}|([ -])\d{6}\2\d{5})(?![\w-])"),
}
_SIGNS: dict[Kind, tuple[str, ...]] = {
    Kind.API_KEY: (
        *("sk-", "hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "AKIA", "ASIA", "AIza", "xox", "cpk_"),
        *("glpat-", "r8_"),
    ),
    Kind.TOKEN: ("eyJ", "Bearer"),
    Kind.PRIVATE_KEY: ("PRIVATE KEY",),
    Kind.SIGNED_URL: ("ignature=", "sig="),
    Kind.EMAIL: ("@",),
    Kind.PHONE: ("+",),
    Kind.CARD: (" ", "-"),
}
"""What a text must hold to hold one of a kind: most texts hold none, and are told so at once."""


class Found(NamedTuple):
    """One thing in one text."""

    kind: Kind
    text: int
    """Which of the texts, from 0."""
    start: int
    end: int


def scan(texts: Iterable[str]) -> Iterator[Found]:
    """Everything found, text by text."""
    for place, text in enumerate(texts):
        for kind, form in _FORMS.items():
            if any(sign in text for sign in _SIGNS[kind]):
                for match in form.finditer(text):
                    if kind is not Kind.CARD or _checks(match[0]):
                        yield Found(kind, place, match.start(), match.end())


def masked(text: str) -> str:
    """The text with personal data replaced by its kind, such as `[email]`."""
    for kind in (Kind.EMAIL, Kind.CARD, Kind.PHONE):
        if any(sign in text for sign in _SIGNS[kind]):
            text = _FORMS[kind].sub(lambda match, kind=kind: _mask(kind, match[0]), text)  # type: ignore[misc]
    return text


def _mask(kind: Kind, found: str) -> str:
    return found if kind is Kind.CARD and not _checks(found) else f"[{kind.value}]"


def _checks(number: str) -> bool:
    """Luhn's check of a card number (ISO/IEC 7812-1, annex B)."""
    digits = [int(char) for char in number if char.isdigit()]
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
