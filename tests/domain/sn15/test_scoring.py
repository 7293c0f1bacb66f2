"""Scores follow SN15's production rules; the recorded scores of every recorded trajectory are the reference."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.domain.sn15.scoring import Category, Score, meets, parse_targets, parse_voucher, price_after, score
from service.errors import SluiceError


def same_title(a: str, b: str) -> float:
    return float(a == b)


def product(product_id: str, **fields: Any) -> dict[str, Any]:
    blank: dict[str, Any] = {"title": "Steel kettle", "price": 100.0, "service": [], "shop_id": "s1"}
    return {**blank, "sku_options": {}, "attributes": {}, "product_id": product_id, **fields}


RED_M, BLUE_L = {"color": "red", "size": "m"}, {"color": "blue", "size": "l"}
PRODUCTS = {
    "1": product("1", price=120.0, sku_options={"1": RED_M, "2": BLUE_L}),
    "2": product("2", price=80.0, attributes={"material": ["steel"]}, service=["COD"]),
    "3": product("3", price=200.0, shop_id="s2", title="Glass kettle"),
}


def judge(answer: list[str], reward: Any, category: Category = Category.PRODUCT, voucher: Any = None) -> Score:
    return score(answer, reward, voucher, PRODUCTS, category, same_title)


def test_the_target_itself_is_a_success_even_against_its_own_stated_constraints() -> None:
    result = judge(["3"], {"product_id": "3", "title": ["Steel kettle"], "price": [{"less than": [None, 5]}]})
    assert result.success
    # A ground truth match fills every stated field and leaves the unstated ones at 0.
    assert result.fields == {"title": 1, "price": 1, "service": 0, "sku & attrs": 0}


@pytest.mark.parametrize(
    ("reward", "rule"),
    [
        ({"title": ["Steel kettle"]}, 1.0),
        ({"title": ["Glass kettle"]}, 0.0),
        ({"price": [{"between": [100, 120]}]}, 1.0),
        ({"price": [{"greater than": [121, None]}]}, 0.0),
        ({"price": [{"less than": [None, 120]}]}, 1.0),
        ({"service": ["COD"]}, 0.0),
        # One SKU must hold all pairs: red/m is one, red/l is spread over two -> 1 of 2.
        ({"sku_options": [{"color": "red", "size": "m"}]}, 1.0),
        ({"sku_options": [{"color": "red", "size": "l"}]}, 0.5),
        # 1 of title, 0 of price, 1 of options -> 2 of 3.
        ({"title": ["Steel kettle"], "price": [{"less than": [None, 1]}], "sku_options": [{"color": "blue"}]}, 2 / 3),
        ({}, 0.0),
    ],
)
def test_the_rule_is_the_share_of_stated_constraints_met(reward: dict[str, Any], rule: float) -> None:
    result = judge(["1"], {"product_id": "9", **reward})
    assert result.rule == pytest.approx(rule)
    assert result.success is (rule == 1.0)


def test_a_product_problem_counts_only_the_first_of_the_cleaned_ids() -> None:
    reward = {"product_id": "2"}
    assert judge(["", " 2 ", "1"], reward).success
    assert not judge(["1", "2"], reward).success
    assert judge(["404"], reward).product == 0


PAIR = [{"product_id": "1"}, {"product_id": "2"}]


def test_a_shop_problem_matches_by_position_and_needs_one_shop() -> None:
    assert judge(["1", "2"], PAIR, Category.SHOP).success
    # Swapped, neither target has a stated constraint to meet: rule 0, so neither counts towards the shop.
    swapped = judge(["2", "1"], PAIR, Category.SHOP)
    assert (swapped.rule, swapped.shop, swapped.success) == (0, 0, False)
    # A repeated id is dropped before positions are given out: this is the answer 1, 2.
    assert judge(["1", "1", "2"], PAIR, Category.SHOP).success
    apart = judge(["1", "3"], [{"product_id": "1"}, {"product_id": "3"}], Category.SHOP)
    assert (apart.rule, apart.shop, apart.success) == (1, 0, False)


def voucher(**fields: Any) -> dict[str, Any]:
    blank = {"voucher_type": "platform", "threshold": 150, "discount_type": "fixed", "face_value": 30, "budget": 170}
    return {**blank, "discount": None, "cap": None, **fields}


@pytest.mark.parametrize(
    ("changes", "success"),
    [
        ({}, True),  # 200 - 30 <= 170
        ({"budget": 169}, False),
        ({"budget": 200, "threshold": 999}, True),  # within budget without any voucher
        ({"threshold": 201}, False),
        ({"discount_type": "percentage", "discount": 0.2, "cap": 100, "budget": 160}, True),  # 200 * .8
        ({"discount_type": "percentage", "discount": 0.2, "cap": 30, "budget": 160}, False),  # capped: 170
        ({"voucher_type": "shop"}, True),
    ],
)
def test_the_budget_rule(changes: dict[str, Any], success: bool) -> None:
    assert judge(["1", "2"], PAIR, Category.VOUCHER, voucher(**changes)).success is success


def test_a_shop_voucher_does_not_apply_across_shops() -> None:
    reward = [{"product_id": "2"}, {"product_id": "3"}]  # 80 + 200 = 280, of two shops
    rules = voucher(threshold=100, budget=250)
    assert judge(["2", "3"], reward, Category.VOUCHER, rules).success
    assert not judge(["2", "3"], reward, Category.VOUCHER, {**rules, "voucher_type": "shop"}).success


def test_nothing_asked_is_nothing_won() -> None:
    assert not judge([], [], Category.SHOP).success
    assert not judge(["1"], [], Category.VOUCHER, voucher()).success


def test_hostile_shapes_are_one_error() -> None:
    for reward in ("x", [1], {"product_id": None}, None):
        with pytest.raises(SluiceError):
            judge(["1"], reward)
    with pytest.raises(SluiceError):
        judge(["1"], [{"product_id": "1"}], Category.VOUCHER, {"budget": 1})


def test_meets_ignores_the_id_and_price_after_ignores_who_may_use_it() -> None:
    (target,) = parse_targets({"product_id": "nowhere", "attributes": [{"material": ["steel"]}]})
    assert meets(PRODUCTS["2"], target, same_title)
    assert not meets(PRODUCTS["1"], target, same_title)
    assert price_after(149, parse_voucher(voucher())) == 149


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _answer(dialogue: list[dict[str, Any]]) -> list[str]:
    given: Any = ""
    for step in dialogue:
        message = (step.get("completion") or {}).get("message") or {}
        for call in message.get("tool_call") or []:
            if call["name"] == "recommend_product":
                given = call["parameters"].get("product_ids", "")
    return given.split(",") if isinstance(given, str) else []


@pytest.mark.shared
def test_every_recorded_score_is_reproduced(shared_data: Path) -> None:
    rows = _lines(shared_data / "catalog" / "products.jsonl.gz")
    products = {row["id"]: row["product"] for row in rows}
    compared = 0
    differing = []
    for agent in sorted(path for path in (shared_data / "runs").iterdir() if path.is_dir()):
        problems = {row["problem_id"]: row for row in _lines(agent / "problems.jsonl.gz")}
        envelopes = {row["problem_id"]: row for row in _lines(agent / "output.jsonl.gz")}
        for row in _lines(agent / "scores.jsonl.gz"):
            if not row["score_dict"]:
                continue
            problem = problems[row["problem_id"]]
            dialogue = [step for step in envelopes[row["problem_id"]]["dialogue"] if isinstance(step, dict)]
            category = Category(row["category"])
            # The recorded scorer had no title model: titles are left out of the rule.
            ours = score(_answer(dialogue), problem["reward"], problem.get("voucher"), products, category, None)
            theirs = row["score_dict"]
            mine = {"product": ours.product, "gt": ours.gt, "rule": ours.rule, **ours.fields}
            mine |= {"shop": ours.shop or 0, "budget": ours.budget or 0}
            compared += 1
            agree = all(theirs.get(name, 0) == pytest.approx(value) for name, value in mine.items())
            if not agree or ours.success != row["success"]:
                differing.append((agent.name, row["problem_id"], theirs, mine))
    assert compared > 1000
    assert differing == []
