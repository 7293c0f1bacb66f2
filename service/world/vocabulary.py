"""The words the small world is made of, read from `vocabulary.toml` beside this module. It makes no product of them."""

import tomllib
from importlib import resources
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """A kind of product and the words its variants draw from."""

    category: str
    noun: str
    styles: tuple[str, ...]
    parts: tuple[str, str]
    """Two attribute keys that take values of one domain, so that a swap leaves the bag of words unchanged."""
    values: tuple[str, ...]
    sizes: tuple[str, ...]
    price: int
    """Typical price in PHP."""


def _read() -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath("vocabulary.toml").read_text(encoding="utf-8"))


def _kinds(words: dict[str, Any]) -> tuple[Kind, ...]:
    return tuple(
        Kind(
            category=department["category"],
            noun=noun,
            styles=tuple(department["styles"]),
            parts=(department["parts"][0], department["parts"][1]),
            values=tuple(words["values"][department["values"]]),
            sizes=tuple(words["sizes"][department["sizes"]]),
            price=department["price"],
        )
        for department in words["departments"]
        for noun in department["nouns"]
    )


_WORDS = _read()
BRANDS: tuple[str, ...] = tuple(_WORDS["brands"])
COLORS: tuple[str, ...] = tuple(_WORDS["colors"])
SERVICE_WORDS: dict[str, str] = _WORDS["services"]
"""How a shopper words each service flag."""
SERVICES: tuple[str, ...] = tuple(SERVICE_WORDS)
KINDS = _kinds(_WORDS)
