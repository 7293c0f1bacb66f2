"""Problems over a catalogue: product, shop and voucher, with gold answers that nothing else in the catalogue matches.

A few problems are relatives of an earlier one (a paraphrase, the same words with other spacing and numbers, a shared
gold product), so that leak clusters have something to find; all others use gold products of their own.
"""

import itertools
import math
import random
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any
from uuid import UUID, uuid5

import msgspec

from service.domain.sn15.scoring import Category, Target, Voucher, meets, price_after
from service.errors import ErrorCode, SluiceError
from service.world import phrasing
from service.world.catalogue import Catalogue, Product
from service.world.search import words

_FREE_NUMBER = re.compile(r"(?<![:\w])\d+(?!\w)")
"""A number that is no part of a size: an amount of money."""
_NAMESPACE = UUID("5f1c15a5-0000-5000-8000-736c75696365")


class Relation(StrEnum):
    """How a problem gives away the answer of an earlier one."""

    PARAPHRASE = "paraphrase"
    RENUMBERED = "renumbered"
    """The same words; spacing and prices differ."""
    SHARED_GOLD = "shared_gold"
    """A voucher problem that asks for the product of a product problem, among others."""
    TWIN = "twin"
    """The same words but for the prices, and another gold: only the text is shared."""


class Problem(msgspec.Struct, frozen=True):
    """One problem with its gold answer, in ShoppingBench's shapes."""

    problem_id: str
    category: Category
    query: str
    targets: tuple[Target, ...]
    voucher: Voucher | None = None
    relative_of: str | None = None
    relation: Relation | None = None

    @property
    def gold(self) -> tuple[str, ...]:
        """Ids of the gold products, in order."""
        return tuple(target.product_id for target in self.targets)

    @property
    def reward(self) -> Any:
        """The raw reward: one target for a product problem, else a list; absent constraints are left out."""
        raw = [{name: value for name, value in msgspec.to_builtins(target).items() if value} for target in self.targets]
        return raw[0] if self.category is Category.PRODUCT else raw

    @property
    def raw_voucher(self) -> dict[str, Any] | None:
        """The raw voucher, null fields kept as ShoppingBench keeps them."""
        return None if self.voucher is None else msgspec.to_builtins(self.voucher)


def title_similarity(a: str, b: str) -> float:
    """Jaccard over word 1- and 2-grams: stands for the embedding model, which the small world has no need of."""
    left, right = _grams(a), _grams(b)
    return len(left & right) / max(len(left | right), 1)


def generate_problems(catalogue: Catalogue, seed: int, count: int, relative_every: int = 4) -> list[Problem]:
    """Generate `count` problems, the three categories in turn.

    For every `relative_every`th product problem one relative is due; it follows the next product problem it can be
    made of.

    Raises:
        SluiceError: BAD_INPUT when the catalogue has too few products for that many problems.
    """
    rng = random.Random(f"problems/{seed}")
    maker = _Maker(catalogue, rng, seed)
    problems: list[Problem] = []
    categories = itertools.cycle(Category)
    relations = itertools.cycle(Relation)
    products = itertools.count(1)
    due: list[Relation] = []
    while len(problems) < count:
        problem = maker.fresh(next(categories))
        problems.append(problem)
        if problem.category is not Category.PRODUCT:
            continue
        if next(products) % relative_every == 0:
            due.append(next(relations))
        for relation in due:
            if (relative := maker.relative(problem, relation)) is not None:
                due.remove(relation)
                problems.append(relative)
                break
    return problems[:count]


class _Maker:
    """Draws golds without putting any back, and words problems over them."""

    def __init__(self, catalogue: Catalogue, rng: random.Random, seed: int) -> None:
        self._rng = rng
        self._seed = seed
        self._serial = 0
        self._products = catalogue.raw()
        self._by_id = catalogue.by_id
        self._siblings = {member: family for family in catalogue.families for member in family}
        self._unused = sorted(self._siblings)
        rng.shuffle(self._unused)

    def fresh(self, category: Category) -> Problem:
        """A problem whose gold no other problem uses."""
        if category is Category.PRODUCT:
            return self._problem(category, self._draw(1, one_shop=False, priced=True))
        kind = self._rng.choice(("platform", "shop")) if category is Category.VOUCHER else "shop"
        size = self._rng.randint(1 if kind == "platform" else 2, 4)
        targets = self._draw(size, one_shop=kind == "shop", priced=category is Category.SHOP)
        voucher = self._voucher(kind, targets) if category is Category.VOUCHER else None
        return self._problem(category, targets, voucher)

    def relative(self, origin: Problem, relation: Relation) -> Problem | None:
        """A problem that gives away the answer of a product problem; None if this one has no such relative."""
        (gold,) = origin.targets
        match relation:
            case Relation.PARAPHRASE:
                return self._problem(Category.PRODUCT, origin.targets, None, origin, relation)
            case Relation.RENUMBERED:
                query = _renumbered(self._rng, origin.query)
                return self._problem(Category.PRODUCT, origin.targets, None, origin, relation, query)
            case Relation.SHARED_GOLD:
                unpriced = self._constrained(self._by_id[gold.product_id], priced=False)
                if unpriced is None:
                    return None
                targets = (unpriced, *self._draw(2, one_shop=False, priced=False))
                return self._problem(Category.VOUCHER, targets, self._voucher("platform", targets), origin, relation)
            case Relation.TWIN:
                return self._twin(origin, gold)

    def _twin(self, origin: Problem, gold: Target) -> Problem | None:
        """Ask, in the same words, for the sibling that has the same options at another price."""
        bounds = gold.price[0].get("between") if gold.price else None
        for member in self._siblings[gold.product_id] if bounds else ():
            moved = _around(self._by_id[member].price, 0.9)
            target = msgspec.structs.replace(gold, product_id=member, price=({"between": moved},))
            fits = meets(self._products[member], target, title_similarity) and self._unique(self._by_id[member], target)
            if member == gold.product_id or not fits:
                continue
            self._unused = [product_id for product_id in self._unused if product_id != member]
            query = _reworded(origin.query, dict(zip(bounds or (), moved, strict=True)))
            return self._problem(Category.PRODUCT, (target,), None, origin, Relation.TWIN, query)
        return None

    def _problem(
        self,
        category: Category,
        targets: tuple[Target, ...],
        voucher: Voucher | None = None,
        origin: Problem | None = None,
        relation: Relation | None = None,
        query: str | None = None,
    ) -> Problem:
        self._serial += 1
        items = [phrasing.describe(self._rng, self._by_id[target.product_id], target) for target in targets]
        if query is None and voucher is not None:
            query = phrasing.voucher_query(self._rng, items, voucher)
        elif query is None and category is Category.SHOP:
            query = phrasing.shop_query(self._rng, items)
        return Problem(
            problem_id=str(uuid5(_NAMESPACE, f"{self._seed}/{self._serial}")),
            category=category,
            query=query or phrasing.product_query(self._rng, items[0]),
            targets=targets,
            voucher=voucher,
            relative_of=origin.problem_id if origin else None,
            relation=relation,
        )

    def _draw(self, size: int, one_shop: bool, priced: bool) -> tuple[Target, ...]:
        """Targets of distinct families, of one shop if asked."""
        shops = list(dict.fromkeys(self._by_id[product_id].shop_id for product_id in self._unused))
        self._rng.shuffle(shops)
        for shop_id in shops if one_shop else [""]:
            chosen: list[Target] = []
            families: set[tuple[str, ...]] = set()
            for product_id in self._unused:
                family = self._siblings[product_id]
                product = self._by_id[product_id]
                if family in families or (one_shop and product.shop_id != shop_id):
                    continue
                if (target := self._constrained(product, priced)) is not None:
                    chosen.append(target)
                    families.add(family)
                if len(chosen) == size:
                    taken = {target.product_id for target in chosen}
                    self._unused = [product_id for product_id in self._unused if product_id not in taken]
                    return tuple(chosen)
        raise SluiceError(ErrorCode.BAD_INPUT, "no shop of the catalogue has enough products left")

    def _constrained(self, product: Product, priced: bool) -> Target | None:
        """Constraints drawn at random, then as many more as it takes that no sibling meets them; None if none do."""
        builders = self._constraints(product, priced)
        self._rng.shuffle(builders)
        target = Target(product.product_id, title=(product.title,))
        for field, value in builders:
            decided = self._unique(product, target)
            if decided and self._rng.random() < 0.6:
                continue
            target = msgspec.structs.replace(target, **{field: (*getattr(target, field), value)})
        return target if self._unique(product, target) else None

    def _constraints(self, product: Product, priced: bool) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = [("sku_options", dict(self._rng.choice(list(product.sku_options.values()))))]
        found += [("attributes", {key: tuple(values)}) for key, values in product.attributes.items()]
        found += [("service", name) for name in product.service[:1]]
        if priced:
            low, high = _around(product.price, self._rng.uniform(0.7, 0.95))
            bounds = {"between": (low, high)} if self._rng.random() < 0.6 else {"greater than": (low, None)}
            found.append(("price", bounds))
        return found

    def _unique(self, product: Product, target: Target) -> bool:
        others = (member for member in self._siblings[product.product_id] if member != product.product_id)
        return not any(meets(self._products[member], target, title_similarity) for member in others)

    def _voucher(self, kind: str, targets: Sequence[Target]) -> Voucher:
        """A voucher as ShoppingBench draws them; the budget holds only with the discount where there is room for it."""
        total = sum(self._by_id[target.product_id].price for target in targets)
        threshold = round(total * self._rng.uniform(0.1, 0.9))
        percent = self._rng.randint(10, 50)
        fixed = self._rng.random() < 0.5
        voucher = Voucher(
            voucher_type=kind,
            threshold=threshold,
            discount_type="fixed" if fixed else "percentage",
            budget=0,
            face_value=max(round(threshold * self._rng.uniform(0.1, 0.5)), 1) if fixed else None,
            discount=None if fixed else percent / 100,
            cap=None if fixed else self._rng.randint(math.ceil(threshold * percent / 100), threshold),
        )
        after = price_after(total, voucher)
        least = math.ceil(after)
        budget = max(min(math.ceil(least * self._rng.uniform(1.0, 1.1)), math.ceil(total) - 1), least)
        return msgspec.structs.replace(voucher, price_after_voucher=round(after, 3), budget=budget)


def raw_problem(problem: Problem, title: str, suite: str) -> Mapping[str, Any]:
    """The row of a problem in a recorded folder."""
    voucher = {} if problem.voucher is None else {"voucher": problem.raw_voucher}
    described = {"category": problem.category.value.capitalize(), "difficulty": "easy", "title": title}
    placed = {"problem_id": problem.problem_id, "suite": suite}
    return {"query": problem.query, "reward": problem.reward, **voucher, **described, **placed}


def _around(price: float, below: float) -> tuple[float, float]:
    """Whole PHP around a price."""
    return math.floor(price * below), math.ceil(price * 1.3)


def _reworded(query: str, amounts: Mapping[float | None, float]) -> str:
    """The query with some amounts of money exchanged."""
    words_of = {phrasing.amount(old): phrasing.amount(new) for old, new in amounts.items()}
    return _FREE_NUMBER.sub(lambda number: words_of.get(number.group(), number.group()), query)


def _renumbered(rng: random.Random, query: str) -> str:
    """The same words with doubled spaces here and there and every number a little larger."""
    shifted = _FREE_NUMBER.sub(lambda number: str(int(number.group()) + 1), query)
    return "".join(word + ("  " if rng.random() < 0.3 else " ") for word in shifted.split(" "))


@lru_cache(maxsize=8192)
def _grams(text: str) -> frozenset[str]:
    tokens = words(text)
    return frozenset([*tokens, *(" ".join(pair) for pair in itertools.pairwise(tokens))])
