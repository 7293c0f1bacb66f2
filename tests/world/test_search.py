"""Search keeps ShoppingBench's semantics: checked against a brute force over the whole rank order."""

import gzip
import itertools
import json
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from service.world.catalogue import generate_catalogue, load_catalogue
from service.world.search import K1, B, Search, price_bounds, words
from service.world.tools import Tools, direct, tool_call_id


@pytest.fixture(scope="module")
def search() -> Search:
    return Search(generate_catalogue(15, families=80))


def bm25(search: Search, query: str) -> list[tuple[float, str]]:
    """(score, id) of every product, by the textbook formula."""
    texts = [(document.id, words(document.contents)) for document in search.catalogue.documents]
    mean = sum(len(text) for _, text in texts) / len(texts)
    holding = Counter(token for _, text in texts for token in set(text))
    scores = []
    for product_id, text in texts:
        counts = Counter(text)
        total = 0.0
        for token in words(query):
            idf = math.log(1 + (len(texts) - holding[token] + 0.5) / (holding[token] + 0.5))
            total += idf * counts[token] / (counts[token] + K1 * (1 - B + B * len(text) / mean))
        scores.append((total, product_id))
    return scores


def brute_force(search: Search, query: str, page: int, **filters: Any) -> list[str]:
    """Rank, filter in rank order, first 50, sort, ten per page: each said in one line."""
    ranked = sorted((entry for entry in bm25(search, query) if entry[0] > 0), key=lambda e: (-round(e[0], 4), e[1]))
    products = [search.catalogue.by_id[product_id] for _, product_id in ranked]
    low, high = price_bounds(filters.get("price"))
    wanted = set(filter(None, (filters.get("service") or "").split(",")))
    kept = [p for p in products if low <= p.price <= high and wanted <= set(p.service)]
    kept = [p for p in kept if filters.get("shop_id") in (None, p.shop_id)][:50]
    keys = {"order": lambda p: -p.sold_count, "priceasc": lambda p: p.price, "pricedesc": lambda p: -p.price}
    if filters.get("sort") in keys:
        kept.sort(key=keys[filters["sort"]])
    return [p.product_id for p in kept[10 * (page - 1) : 10 * page]]


def test_rows_are_those_of_the_brute_force(search: Search) -> None:
    rng = random.Random(1)
    shops = sorted({document.product.shop_id for document in search.catalogue.documents})
    for _ in range(120):
        query = " ".join(rng.sample(words(rng.choice(search.catalogue.documents).contents), 3))
        filters = {
            "price": rng.choice([None, "0-400", "300-", "-700", "250-900"]),
            "service": rng.choice([None, None, "COD", "official,COD", "freeShipping"]),
            "sort": rng.choice([None, "order", "priceasc", "pricedesc", "default"]),
            "shop_id": rng.choice([None, None, None, rng.choice(shops)]),
        }
        page = rng.choice([1, 1, 2, 5])
        rows = search.find_product(query, page, **filters)
        assert [row["product_id"] for row in rows] == brute_force(search, query, page, **filters), (
            query,
            page,
            filters,
        )


def test_pages_beyond_one_to_five_and_unknown_words_find_nothing(search: Search) -> None:
    for page in (0, 6, -1, "x", ""):
        assert search.find_product("black", page) == []
    assert search.find_product("black", "2") == search.find_product("black", 2) != []
    assert search.find_product("zzzz") == search.find_product("") == search.find_product("+-&|!(){}") == []


def test_at_most_fifty_products_are_ever_shown(search: Search) -> None:
    pages = [search.find_product("black white red navy", page) for page in range(1, 6)]
    assert [len(page) for page in pages] == [10] * 5
    assert len({row["product_id"] for row in itertools.chain(*pages)}) == 50


def test_equal_scores_are_in_id_order_so_no_sibling_has_a_place_of_its_own(search: Search) -> None:
    for family in search.catalogue.families[:20]:
        title = search.catalogue.by_id[family[0]].title
        ids = [row["product_id"] for row in search.find_product(title) if row["title"] == title]
        assert ids == list(family) == sorted(family)


@pytest.mark.parametrize(
    ("price", "bounds"),
    [
        ("0-100", (0, 100)),
        ("1000-", (1000, math.inf)),
        ("-5", (-math.inf, 5)),
        ("x-9", (-math.inf, 9)),
        ("1-2-3", (-math.inf, math.inf)),
        ("7", (-math.inf, math.inf)),
        (None, (-math.inf, math.inf)),
    ],
)
def test_price_filters(price: str | None, bounds: tuple[float, float]) -> None:
    assert price_bounds(price) == bounds


def test_a_view_keeps_order_and_leaves_out_what_does_not_exist(search: Search) -> None:
    first, second = search.catalogue.documents[3].id, search.catalogue.documents[1].id
    rows = search.view_product_information(f"{first},404,{second}")
    assert [row["product_id"] for row in rows] == [first, second]
    assert set(rows[0]) == {"attributes", "description", "product_id", "short_description", "sku_options"}


def test_tools_answer_like_the_recorded_ones(search: Search) -> None:
    tools = Tools(direct(search))
    product = search.catalogue.documents[0].product
    found = tools.execute("find_product", {"q": product.title.lower()})
    assert found["result"] == search.find_product(product.title)
    key, values = next(iter(product.attributes.items()))
    for value, matched in ((values[0], True), ("plutonium", False)):
        call = {"product_id": product.product_id, "requirements": json.dumps({key: value})}
        expected = {"matched": matched, "product_id": product.product_id}
        assert tools.execute("check_product_match", call)["result"] == expected
    # The recorded call and its recorded result.
    voucher = {"product_prices": "240.72,25.28", "voucher_type": "fixed", "discount_value": 49, "threshold": 121}
    after = {"total_before": 266.0, "discount_amount": 49, "total_after": 217.0, "within_budget": True}
    assert tools.execute("calculate_voucher", {**voucher, "budget": 235, "cap": 0})["result"] == after
    assert tools.execute("terminate", {})["result"].endswith("success")
    assert "is not registered. Available tools: calculate_voucher," in tools.execute("x", {})["result"]
    assert tools.execute("find_product", {})["result"].startswith("Error: ")


def test_one_shop_tool_searches_many_times_and_answers_from_one_shop(search: Search) -> None:
    asked: list[dict[str, Any]] = []

    def counting(path: str, params: dict[str, Any]) -> Any:
        asked.append(params)
        return direct(search)(path, params)

    products = [document.product for document in search.catalogue.documents]
    (shop_id, _), *_ = Counter(product.shop_id for product in products).most_common(1)
    titles = sorted({product.title for product in products if product.shop_id == shop_id})[:2]
    queries = json.dumps([{"q": title} for title in titles])
    result = Tools(counting).execute("find_products_in_same_shop", {"product_queries": queries})["result"]
    assert result["found"]
    assert len({product["shop_id"] for product in result["products"]}) == 1
    assert len(asked) == 2 + 2 * result["shops_tried"]  # once everywhere, then once per shop tried


def test_call_ids_follow_the_recorded_rule() -> None:
    assert tool_call_id("find_product", {"q": "waist bag hosport", "price": "180-505"}) == "dZwyEpC6"
    assert tool_call_id("terminate", {"status": "success"}) == "NR0gqQng"


@pytest.mark.shared
def test_recorded_views_are_reproduced_and_recorded_searches_nearly(shared_data: Path) -> None:
    search = Search(load_catalogue(shared_data / "catalog" / "products.jsonl.gz"))
    views = overlaps = searches = 0
    with gzip.open(shared_data / "runs" / "ref_good" / "output.jsonl.gz", "rt", encoding="utf-8") as lines:
        envelopes = [json.loads(line) for line in itertools.islice(lines, 60)]
    steps = [step for envelope in envelopes for step in envelope["dialogue"] or []]
    for call in (call for step in steps for call in step["completion"]["message"].get("tool_call", [])):
        if call["name"] == "view_product_information":
            views += 1
            assert search.view_product_information(**call["parameters"]) == call["result"]
        elif call["name"] == "find_product" and call["result"]:
            searches += 1
            ours = {row["product_id"] for row in search.find_product(**call["parameters"])}
            overlaps += len(ours & {row["product_id"] for row in call["result"]}) / len(call["result"])
    assert views > 50
    # Lucene stems and drops stop words, we do not; most of a page is still the same.
    assert overlaps / searches > 0.6
