"""The shopping tools agents call: ShoppingBench's four and SN15's three extra ones, over any search transport.

They keep no state and decide nothing. `get(path, params)` is the transport: the search itself, or a recorder in front
of it. One tool may search several times, which the caller of the tool does not see.
"""

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote_plus, unquote_plus

from service.world.search import Search

Get = Callable[[str, dict[str, Any]], Any]
"""(path, query parameters) -> decoded JSON."""

FIND_PATH = "/search/find_product"
VIEW_PATH = "/search/view_product_information"
SHOPS_TRIED = 5


def direct(search: Search) -> Get:
    """The transport that asks the search and records nothing."""

    def get(path: str, params: dict[str, Any]) -> Any:
        if path == VIEW_PATH:
            return search.view_product_information(**params)
        return search.find_product(**{**params, "q": unquote_plus(params["q"])})

    return get


def tool_call_id(name: str, parameters: Mapping[str, Any]) -> str:
    """SN15's id of a tool call: the same name and parameters always give the same eight characters."""
    digest = hashlib.md5(f"{name}\n{dict(parameters)}".encode(), usedforsecurity=False).digest()
    return base64.urlsafe_b64encode(digest).decode().translate({ord(mark): None for mark in "=+/"})[:8]


class Tools:
    """The seven tools by name."""

    def __init__(self, get: Get) -> None:
        self._get = get
        self._tools: dict[str, Callable[..., Any]] = {
            "find_product": self.find_product,
            "view_product_information": self.view_product_information,
            "recommend_product": recommend_product,
            "terminate": terminate,
            "calculate_voucher": calculate_voucher,
            "check_product_match": self.check_product_match,
            "find_products_in_same_shop": self.find_products_in_same_shop,
        }

    def execute(self, name: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Run one call and return it as a dialogue records it; what goes wrong is the result's text."""
        call_id = tool_call_id(name, parameters)
        if name not in self._tools:
            result: Any = f"Error: Tool '{name}' is not registered. Available tools: {', '.join(sorted(self._tools))}"
        else:
            try:
                result = self._tools[name](**parameters)
            except (TypeError, ValueError, KeyError) as fault:
                result = f"Error: {fault}"
        return {"name": name, "parameters": parameters, "tool_call_id": call_id, "result": result}

    def find_product(self, q: str, page: int = 1, **filters: str) -> list[dict[str, Any]]:
        """One page of results. The query is encoded here and once more by the transport, as SN15's tool does."""
        rows: list[dict[str, Any]] = self._get(FIND_PATH, {"q": quote_plus(q), "page": page, **filters})
        return rows

    def view_product_information(self, product_ids: str) -> list[dict[str, Any]]:
        """Details of a comma list of products."""
        rows: list[dict[str, Any]] = self._get(VIEW_PATH, {"product_ids": product_ids})
        return rows

    def check_product_match(self, product_id: str, requirements: str) -> dict[str, Any]:
        """Whether every required value occurs in the details of a product; views it under the hood."""
        details = json.dumps(self.view_product_information(product_id)).lower()
        wanted = json.loads(requirements).values()
        return {"matched": all(str(value).lower() in details for value in wanted), "product_id": product_id}

    def find_products_in_same_shop(self, product_queries: str) -> dict[str, Any]:
        """One product per query spec, all of one shop; searches broadly, then within the likeliest shops."""
        specs = json.loads(product_queries)
        broad = [self.find_product(**spec) for spec in specs]
        counts = Counter(shop_id for rows in broad for shop_id in sorted({row["shop_id"] for row in rows}))
        for tried, (shop_id, _) in enumerate(counts.most_common(SHOPS_TRIED), 1):
            found = [self.find_product(**spec, shop_id=shop_id) for spec in specs]
            if all(found):
                products = [rows[0] for rows in found]
                return {"found": True, "shop_id": shop_id, "products": products, "shops_tried": tried}
        return {"found": False, "shop_id": "", "products": [], "shops_tried": min(len(counts), SHOPS_TRIED)}


def recommend_product(product_ids: str) -> str:
    """Put an answer forward; the last one counts."""
    return f"Having recommended the products to the user: {product_ids}."


def terminate(status: str = "success") -> str:
    """End the interaction."""
    return f"The interaction has been completed with status: {status}"


def calculate_voucher(
    product_prices: str, voucher_type: str, discount_value: float, threshold: float, budget: float, cap: float = 0
) -> dict[str, Any]:
    """Total of a comma list of prices after a voucher; `discount_value` is PHP (fixed) or percent (percentage)."""
    total = sum(float(price) for price in product_prices.split(","))
    discount = 0.0
    if total >= threshold:
        percentage = min(total * discount_value / 100, cap or float("inf"))
        discount = discount_value if voucher_type == "fixed" else percentage
    return {
        "total_before": round(total, 2),
        "discount_amount": round(discount, 2),
        "total_after": round(total - discount, 2),
        "within_budget": total - discount <= budget,
    }
