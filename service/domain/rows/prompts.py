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
    ExecutionKind.ATIF: "sluice/import-1",
    ExecutionKind.MESSAGES: "sluice/import-1",
}

_IMPORT_PROMPT = (
    "You are a shopping assistant. Find what the user asks for, with every condition of the request.\n"
    "Use the tools to search and compare, and take product ids only from tool results."
)

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
    ExecutionKind.ATIF: _IMPORT_PROMPT,
    ExecutionKind.MESSAGES: _IMPORT_PROMPT,
}


def _schema(name: str, description: str, properties: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": dict(properties), "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _number(description: str) -> dict[str, Any]:
    return {"type": "number", "description": description}


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

REFERENCE_AGENT_TOOLS: tuple[dict[str, Any], ...] = (
    _schema(
        "calculate_voucher",
        "Work out the total of some products after a voucher, and whether it is within the budget.",
        {
            "product_prices": _text("Prices separated by commas."),
            "voucher_type": {"type": "string", "enum": ["fixed", "percentage"], "description": "Kind of discount."},
            "discount_value": _number("Discount: an amount if fixed, else percent."),
            "threshold": _number("Least total at which the voucher applies."),
            "budget": _number("What the user can spend."),
            "cap": _number("Largest discount of a percentage voucher; 0 is none."),
        },
        ["product_prices", "voucher_type", "discount_value", "threshold", "budget"],
    ),
    _schema(
        "check_product_match",
        "Check a product's details against requirements.",
        {
            "product_id": _text("One product id."),
            "requirements": _text("JSON object of attribute names and the values they must have."),
        },
        ["product_id", "requirements"],
    ),
    _schema(
        "find_products_in_same_shop",
        "Find several products that one shop sells.",
        {"product_queries": _text("JSON list of searches, each with q and, if wanted, price and service.")},
        ["product_queries"],
    ),
)
"""Tools that SN15's reference agent adds to them; a row offers one only if it calls it."""

_PARAMETERS = {
    tool["function"]["name"]: frozenset(tool["function"]["parameters"]["properties"])
    for tool in PUBLISHED_TOOLS + REFERENCE_AGENT_TOOLS
}
_NONE: frozenset[str] = frozenset()


class ToolSet(NamedTuple):
    """Tool schemas in OpenAI's style, and where they come from."""

    schemas: tuple[dict[str, Any], ...]
    source: str
    """`published`: every call fits a published schema; `inferred`: at least one schema was read off the calls."""


def tool_set(kind: ExecutionKind, calls: Sequence[ToolCall]) -> ToolSet:
    """The tools a row offers: the published ones of its kind, and a schema read off the calls for every other.

    A call with a parameter that its published schema lacks makes that schema an inferred one. Independent of other
    rows and of the order of the calls.
    """
    seen: dict[str, dict[str, Any]] = {}
    for call in calls:
        properties = seen.setdefault(call.name, {})
        if not isinstance(call.arguments, str):
            for key, value in call.arguments.items():
                properties[key] = {"type": _merged(properties.get(key), _json_type(value))}
    has_published = kind is not ExecutionKind.ENVPACK
    strange = {
        name for name in seen if not has_published or not seen[name].keys() <= _PARAMETERS.get(name, frozenset())
    }
    always = PUBLISHED_TOOLS if kind is ExecutionKind.LEGACY else ()
    offered = [
        *always,
        *(
            tool
            for tool in PUBLISHED_TOOLS + REFERENCE_AGENT_TOOLS
            if tool["function"]["name"] in seen
            if tool not in always
        ),
    ]
    kept = tuple(tool for tool in offered if tool["function"]["name"] not in strange)
    inferred = tuple(
        _schema(name, f"{name} (schema inferred from calls)", dict(sorted(seen[name].items())), [])
        for name in sorted(strange)
    )
    return ToolSet(kept + inferred, "inferred" if inferred else "published")


def offered_names(kind: ExecutionKind, calls: Sequence[ToolCall]) -> frozenset[str] | None:
    """Names of the published tools that those calls add to a row's offer; None where `tool_set` would infer one."""
    if kind is ExecutionKind.ENVPACK and calls:
        return None
    for call in calls:
        if not isinstance(call.arguments, str) and not call.arguments.keys() <= _PARAMETERS.get(call.name, _NONE):
            return None
    return frozenset([call.name for call in calls if call.name in _PARAMETERS])


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
