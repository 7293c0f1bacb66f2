"""The words around a trajectory that no log holds: our system prompts and the tool schemas.

Not a copy of what the agent's model saw: SN15's logs keep no prompt, and agents write their own. A row says so in
`prompt_source` and `tools_source`. Changing a text here changes rows, so it takes a new version.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from service.domain.trajectory import ExecutionKind, ToolCall

PROMPT_SOURCE: Mapping[ExecutionKind, str] = {
    ExecutionKind.LEGACY: "sluice/shopping-1",
    ExecutionKind.ENVPACK: "sluice/episode-1",
}

SYSTEM_PROMPTS: Mapping[ExecutionKind, str] = {
    ExecutionKind.LEGACY: (
        "You are a shopping assistant. Find products that meet every condition of the user's request: the item "
        "itself, price range, options, services, shop, and budget after any voucher.\n"
        "Think before you act, and use the tools: search, look at a product's details before you rely on them, "
        "then recommend once, with the product ids in the order in which the user asked for the items. "
        "Take product ids only from tool results. End by calling terminate."
    ),
    ExecutionKind.ENVPACK: (
        "You are a shopping assistant working for a shopper in an online store. Find out what the shopper needs, "
        "ask when something is unclear, and follow changes of mind.\n"
        "Use the tools to search and compare. Place the order only for a product that meets every need, "
        "or say that there is none."
    ),
}


def _schema(name: str, description: str, properties: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": dict(properties), "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


PUBLISHED_TOOLS: tuple[dict[str, Any], ...] = (
    _schema(
        "find_product",
        "Search the shop for products. Returns at most ten products a page.",
        {
            "q": _text("Search words."),
            "page": {"type": "integer", "description": "Page of the results, 1 to 5."},
            "shop_id": _text("Search in this shop only."),
            "price": _text("Price range, written low-high, such as 0-100 or 1000-."),
            "sort": {
                "type": "string",
                "enum": ["priceasc", "pricedesc", "order", "default"],
                "description": "Order of the results; order means most sold first.",
            },
            "service": _text("Services all asked for, separated by commas: official, freeShipping, COD, flashsale."),
        },
        ["q"],
    ),
    _schema(
        "view_product_information",
        "Read the description, options and attributes of products.",
        {"product_ids": _text("Product ids separated by commas.")},
        ["product_ids"],
    ),
    _schema(
        "recommend_product",
        "Recommend the products to the user. Use it once.",
        {"product_ids": _text("Product ids separated by commas, in the order in which the user asked.")},
        ["product_ids"],
    ),
    _schema(
        "terminate",
        "End the conversation.",
        {"status": {"type": "string", "enum": ["success", "failure"], "description": "How it ended."}},
        ["status"],
    ),
)
"""ShoppingBench's shopping tools: names, parameters and enums as published, descriptions ours."""

_PUBLISHED_PARAMETERS = {
    tool["function"]["name"]: frozenset(tool["function"]["parameters"]["properties"]) for tool in PUBLISHED_TOOLS
}


class ToolSet(NamedTuple):
    """Tool schemas in OpenAI's style, and where they come from."""

    schemas: tuple[dict[str, Any], ...]
    source: str
    """`published`: every call fits a published schema; `inferred`: at least one schema was read off the calls."""


def tool_set(kind: ExecutionKind, calls: Sequence[ToolCall]) -> ToolSet:
    """The tools a row offers: the published ones of its kind, widened by what its calls use beyond them.

    Independent of other rows and of the order of the calls.
    """
    seen: dict[str, dict[str, Any]] = {}
    for call in calls:
        properties = seen.setdefault(call.name, {})
        if not isinstance(call.arguments, str):
            for key, value in call.arguments.items():
                properties[key] = {"type": _merged(properties.get(key), _json_type(value))}
    published = PUBLISHED_TOOLS if kind is ExecutionKind.LEGACY else ()
    unknown = {name for name, properties in seen.items() if not _is_published(name, properties, published)}
    kept = tuple(tool for tool in published if tool["function"]["name"] not in unknown)
    inferred = tuple(
        _schema(name, f"{name} (schema inferred from calls)", dict(sorted(seen[name].items())), [])
        for name in sorted(unknown)
    )
    return ToolSet(kept + inferred, "inferred" if inferred else "published")


def _is_published(name: str, properties: Mapping[str, Any], published: Sequence[Mapping[str, Any]]) -> bool:
    return bool(published) and name in _PUBLISHED_PARAMETERS and properties.keys() <= _PUBLISHED_PARAMETERS[name]


def _json_type(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case list() | tuple():
            return "array"
        case dict():
            return "object"
        case _:
            return "string"


def _merged(earlier: Mapping[str, str] | None, kind: str) -> str:
    """One name for all types seen under a parameter; a parameter of several types is called a string."""
    return kind if earlier is None or earlier["type"] == kind else "string"
