"""Search with ShoppingBench's semantics: BM25 rank, filters in rank order, 50 hits, sort, pages of ten.

It serves what the search server serves and nothing else; tools that agents call stand on top of it (`tools`). The same
query always gives the same rows: equal scores are ordered by product id.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import bm25s
import numpy as np

from service.world.catalogue import Catalogue, Product

PAGE_ROWS = 10
PAGES = 5
HITS = PAGE_ROWS * PAGES
K1, B = 0.9, 0.4
"""Lucene's BM25 as ShoppingBench's server uses it."""

_WORD = re.compile(r"\w+")
_SERVICES = ("official", "freeShipping", "COD", "flashsale")
_SORTS: dict[str, Callable[[Product], float]] = {
    "order": lambda product: -product.sold_count,
    "priceasc": lambda product: product.price,
    "pricedesc": lambda product: -product.price,
}


def words(text: str) -> list[str]:
    """The tokens a text is found by: runs of letters and digits, lower case."""
    return _WORD.findall(text.lower())


class Search:
    """A search server over one catalogue, in memory."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self._products = [document.product for document in catalogue.documents]
        self._index = bm25s.BM25(k1=K1, b=B, method="lucene")
        corpus = [words(document.contents) for document in catalogue.documents]
        self._index.index(corpus, show_progress=False)
        self._vocabulary = {token for tokens in corpus for token in tokens}
        self._ranked = lru_cache(maxsize=4096)(self._rank)

    def find_product(
        self,
        q: str,
        page: int | str = 1,
        shop_id: str | None = None,
        price: str | None = None,
        sort: str | None = None,
        service: str | None = None,
    ) -> list[dict[str, Any]]:
        """At most ten rows of one page.

        Args:
            q: free text; no known word finds nothing.
            page: 1 to 5; any other page is empty.
            shop_id: rows of this shop only.
            price: "low-high" in PHP, both inclusive, either may be left out; another form is ignored.
            sort: order (most sold first), priceasc or pricedesc, applied to the first 50 hits; else by rank.
            service: comma list; a row must offer all; unknown names are ignored.
        """
        if not str(page).isdigit() or not 1 <= int(page) <= PAGES:
            return []
        low, high = price_bounds(price)
        wanted = [name for name in (service or "").split(",") if name in _SERVICES]
        hits: list[Product] = []
        for index in self._ranked(" ".join(words(q))):
            product = self._products[index]
            if (
                (shop_id and product.shop_id != shop_id)
                or not low <= product.price <= high
                or any(name not in product.service for name in wanted)
            ):
                continue
            hits.append(product)
            if len(hits) == HITS:
                break
        if sort in _SORTS:
            hits.sort(key=_SORTS[sort])
        start = (int(page) - 1) * PAGE_ROWS
        return [find_row(product) for product in hits[start : start + PAGE_ROWS]]

    def view_product_information(self, product_ids: str) -> list[dict[str, Any]]:
        """Details of the products in a comma list, in its order; unknown ids are left out."""
        found = (self.catalogue.by_id.get(product_id) for product_id in product_ids.split(","))
        return [view_row(product) for product in found if product is not None]

    def _rank(self, query: str) -> tuple[int, ...]:
        """Indices of every matching product, best first, equal scores by id."""
        tokens = [token for token in query.split(" ") if token in self._vocabulary]
        if not tokens:
            return ()
        scores = self._index.get_scores(tokens)
        order = np.argsort(-scores, kind="stable")
        return tuple(int(index) for index in order[: np.count_nonzero(scores > 0)])


def price_bounds(price: str | None) -> tuple[float, float]:
    """(low, high) of a "low-high" filter; an absent or unreadable side does not bound."""
    sides = (price or "").split("-")
    if len(sides) != 2:
        return float("-inf"), float("inf")
    return _number(sides[0], float("-inf")), _number(sides[1], float("inf"))


def find_row(product: Product) -> dict[str, Any]:
    """What a result list shows of a product: neither options nor attributes."""
    return {
        "price": product.price,
        "product_id": product.product_id,
        "service": product.service,
        "shop_id": product.shop_id,
        "sold_count": product.sold_count,
        "title": product.title,
    }


def view_row(product: Product) -> dict[str, Any]:
    """What a product view shows: neither title nor price."""
    return {
        "attributes": product.attributes,
        "description": product.description,
        "product_id": product.product_id,
        "short_description": product.short_description,
        "sku_options": product.sku_options,
    }


def _number(text: str, otherwise: float) -> float:
    try:
        return float(text)
    except ValueError:
        return otherwise
