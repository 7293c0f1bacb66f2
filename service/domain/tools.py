"""The tools of each kind of execution: what they are for, and which products a call names. Reads no payload."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, AnyStr, NamedTuple

from service.domain.wire.lenient import storable


class ExecutionKind(StrEnum):
    """Which harness ran the agent; it decides the wire format and what evidence can exist."""

    LEGACY = "legacy_shoppingbench"
    ENVPACK = "envpack"
    ATIF = "atif"
    """Of an imported file: no harness is known, and nothing but the document."""
    MESSAGES = "messages"
    """The same of a chat row."""


class ToolRoles(NamedTuple):
    """What the tools of one execution kind are for; tools of other names are for none of it."""

    search: frozenset[str]
    """They list products."""
    view: frozenset[str]
    """They show products again: those that their arguments name, or those left under one more condition."""
    answer: frozenset[str]
    """They name the products an agent settled on."""
    logged: frozenset[str] = frozenset()
    """Their every call asks the catalogue through the client whose log the payload holds."""


IMPORTED_TOOLS = ToolRoles(
    search=frozenset({"find_product", "search", "filter"}),
    view=frozenset({"view_product_information", "filter"}),
    answer=frozenset({"recommend_product", "place_test_order"}),
)
"""Those of both harnesses: a file of either may be imported."""

TERMINATE = "terminate"
"""The call that ends a conversation."""

TOOLS: Mapping[ExecutionKind, ToolRoles] = {
    ExecutionKind.LEGACY: ToolRoles(
        search=frozenset({"find_product"}),
        view=frozenset({"view_product_information"}),
        answer=frozenset({"recommend_product"}),
        logged=frozenset({"find_product", "view_product_information"}),
    ),
    ExecutionKind.ENVPACK: ToolRoles(
        search=frozenset({"search", "filter"}),
        view=frozenset({"filter"}),
        answer=frozenset({"place_test_order"}),
    ),
    ExecutionKind.ATIF: IMPORTED_TOOLS,
    ExecutionKind.MESSAGES: IMPORTED_TOOLS,
}
"""The published tools. Episodes have none to view one product: their searches show whole listings."""


def product_ids(arguments: dict[str, Any] | str) -> tuple[str, ...]:
    """Ids named by a call's arguments, which agents write as "a,b", as ["a", "b"] or as a number."""
    if isinstance(arguments, str):
        return ()
    named = arguments.get("product_ids") or arguments.get("product_id") or ""
    if type(named) is str and "," not in named:  # the usual case: one id
        only = storable(named.strip())
        return (only,) if only else ()
    parts = named if isinstance(named, list) else str(named).split(",")
    ids = dict.fromkeys([storable(str(part).strip()) for part in parts if isinstance(part, (str, int))])
    ids.pop("", None)
    return tuple(ids)


def stands_in(word: AnyStr, text: AnyStr) -> bool:
    """Whether a word stands in a text by itself, such as an id among other words or in JSON."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        # A slice before the start would wrap around, and one character is enough to tell.
        if not text[max(at - 1, 0) : at].isalnum() and not text[end : end + 1].isalnum():
            return True
        at = text.find(word, at + 1)
    return False


def result_ids(result: Any) -> set[str]:
    """Product ids of a result that lists products; empty for any other result."""
    return set(listed_ids(result) or ())


def listed_ids(result: Any) -> list[str] | None:
    """Product ids of a result that lists products, in its order; None for any other result."""
    if not isinstance(result, list):
        return None
    try:
        ids = [product["product_id"] for product in result]  # the usual case
    except (TypeError, KeyError, IndexError):
        ids = [product.get("product_id") for product in result if isinstance(product, dict)]
    return [name if type(name) is str else str(name) for name in ids if isinstance(name, str | int)]
