"""Scoring: an answer against its ground truth, as strictly as SN15 in production scores it.

Pure: product documents and the title similarity are handed in. It reads no trajectory (see `trajectory.answer`) and
sets no reward. The rules are ShoppingBench's with SN15's changes: ids stripped and de-duplicated, titles similar from
0.7 up, a constraint the problem does not state earns nothing, and a product counts towards the shop or the budget only
if it meets at least one constraint.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, assert_never

import msgspec

from service.errors import ErrorCode, SluiceError

TitleSimilarity = Callable[[str, str], float]
"""(title of the answer, title asked for) -> cosine-like similarity; 1 means the same."""

TITLE_SIMILARITY_MIN = 0.7
FIELDS = ("title", "price", "service", "sku & attrs")


class Category(StrEnum):
    """What a problem asks for: one product, several of one shop, several within a budget."""

    PRODUCT = "product"
    SHOP = "shop"
    VOUCHER = "voucher"


class Target(msgspec.Struct, frozen=True):
    """One product a problem asks for: its id and the constraints any other product must meet instead."""

    product_id: str
    title: tuple[str, ...] = ()
    price: tuple[dict[str, tuple[float | None, float | None]], ...] = ()
    service: tuple[str, ...] = ()
    sku_options: tuple[dict[str, str], ...] = ()
    attributes: tuple[dict[str, tuple[str, ...]], ...] = ()

    @property
    def options(self) -> list[tuple[str, str]]:
        """The wanted (key, value) pairs of SKU options and attributes together."""
        skus = [pair for option in self.sku_options for pair in option.items()]
        return skus + [(key, value) for entry in self.attributes for key, values in entry.items() for value in values]


class Voucher(msgspec.Struct, frozen=True):
    """A budget and the discount that may bring the total under it."""

    voucher_type: str
    """`platform` (any products) or `shop` (all of one shop)."""
    threshold: float
    discount_type: str
    """`fixed` (face_value off) or `percentage` (discount off, at most cap)."""
    budget: float
    face_value: float | None = None
    discount: float | None = None
    """A fraction, not a percentage."""
    cap: float | None = None
    price_after_voucher: float | None = None


class Tally(NamedTuple):
    """Constraints of one field: how many were stated, how many met."""

    stated: int
    met: int


class Score(msgspec.Struct, frozen=True):
    """Means over the problem's targets, each in 0..1; `shop` and `budget` are None where they are not asked."""

    product: float
    """Share of targets answered with a product that exists."""
    gt: float
    rule: float
    fields: dict[str, float]
    """Share of stated constraints met, per name of FIELDS; 0 where none is stated."""
    shop: float | None
    budget: float | None
    success: bool


class _Answered(NamedTuple):
    product: Mapping[str, Any]
    gt: bool
    tallies: dict[str, Tally]

    @property
    def rule(self) -> float:
        stated = sum(tally.stated for tally in self.tallies.values())
        met = sum(tally.met for tally in self.tallies.values())
        return 1.0 if self.gt else met / stated if stated else 0.0


def parse_targets(reward: Any) -> tuple[Target, ...]:
    """Targets of a raw ShoppingBench `reward`, in order.

    Raises:
        SluiceError: BAD_INPUT when it is neither a target nor a list of them.
    """
    try:
        return msgspec.convert(reward if isinstance(reward, Sequence) else [reward], tuple[Target, ...], strict=False)
    except msgspec.ValidationError as fault:
        raise SluiceError(ErrorCode.BAD_INPUT, f"not a ShoppingBench reward: {fault}") from fault


def parse_voucher(raw: Any) -> Voucher:
    """The voucher of a raw ShoppingBench row.

    Raises:
        SluiceError: BAD_INPUT when it has another shape.
    """
    try:
        return msgspec.convert(raw, Voucher, strict=False)
    except msgspec.ValidationError as fault:
        raise SluiceError(ErrorCode.BAD_INPUT, f"not a ShoppingBench voucher: {fault}") from fault


def clean_answer(ids: Iterable[str]) -> list[str]:
    """The ids stripped, without empty ones and repetitions, in order."""
    return list(dict.fromkeys(stripped for product_id in ids if (stripped := product_id.strip())))


def score(
    answer: Sequence[str],
    reward: Any,
    voucher: Any,
    products: Mapping[str, Mapping[str, Any]],
    category: Category,
    title_similarity: TitleSimilarity | None,
) -> Score:
    """Score recommended product ids.

    Args:
        answer: ids in the order recommended; a product problem counts only the first, the others match by position.
        reward: raw ShoppingBench reward, one target or a list of them.
        voucher: raw ShoppingBench voucher; used by voucher problems only.
        products: product documents by id; an id that is absent does not exist.
        category: which of the three rules decides.
        title_similarity: None leaves titles out of the rule, as SN15's scorer does where its model is missing: such
            a score is comparable only with scores made the same way.

    Raises:
        SluiceError: BAD_INPUT when the reward or the voucher has another shape.
    """
    targets = parse_targets(reward)
    answered = [
        _answer_for(target, products[product_id], title_similarity)
        for target, product_id in zip(targets, clean_answer(answer), strict=False)
        if product_id in products
    ]
    count = max(len(targets), 1)
    counted = [entry for entry in answered if entry.rule > 0]
    together = len(counted) == len(targets) and _hold_together(counted, voucher, category)
    satisfied = bool(targets) and len(answered) == len(targets) and all(entry.rule >= 1 for entry in answered)
    return Score(
        product=len(answered) / count,
        gt=sum(entry.gt for entry in answered) / count,
        rule=sum(entry.rule for entry in answered) / count,
        fields={name: sum(_share(entry.tallies[name]) for entry in answered) / count for name in FIELDS},
        shop=float(together) if category is Category.SHOP else None,
        budget=float(together) if category is Category.VOUCHER else None,
        success=satisfied and together,
    )


def _hold_together(counted: list[_Answered], voucher: Any, category: Category) -> bool:
    """Whether the products meet what the category asks of all of them: one shop, or the budget."""
    match category:
        case Category.PRODUCT:
            return True
        case Category.SHOP:
            return _shops(counted) == 1
        case Category.VOUCHER:
            return _within_budget(counted, parse_voucher(voucher))
        case _:
            assert_never(category)


def meets(product: Mapping[str, Any], target: Target, title_similarity: TitleSimilarity | None) -> bool:
    """Whether a product satisfies every constraint of a target, whatever its id."""
    tallies = _tallies(product, target, title_similarity).values()
    return all(tally.met == tally.stated for tally in tallies)


def price_after(total: float, voucher: Voucher) -> float:
    """Total after the discount, given that the voucher applies to these products; no discount under its threshold."""
    if total < voucher.threshold:
        return total
    if voucher.discount_type == "fixed":
        return total - (voucher.face_value or 0)
    return max(total * (1 - (voucher.discount or 0)), total - (voucher.cap or 0))


def _answer_for(target: Target, product: Mapping[str, Any], title_similarity: TitleSimilarity | None) -> _Answered:
    tallies = _tallies(product, target, title_similarity)
    if product["product_id"] != target.product_id:
        return _Answered(product, False, tallies)
    if target.title and title_similarity is None:
        tallies["title"] = Tally(len(target.title), 0)
    return _Answered(product, True, {name: Tally(tally.stated, tally.stated) for name, tally in tallies.items()})


def _tallies(product: Mapping[str, Any], target: Target, title_similarity: TitleSimilarity | None) -> dict[str, Tally]:
    titles = 0
    if title_similarity is not None:
        titles = sum(title_similarity(product["title"], title) >= TITLE_SIMILARITY_MIN for title in target.title)
    bounds = [(mode, *pair) for entry in target.price for mode, pair in entry.items()]
    return {
        "title": Tally(len(target.title) if title_similarity is not None else 0, titles),
        "price": Tally(len(bounds), sum(_in_bounds(product["price"], *bound) for bound in bounds)),
        "service": Tally(len(target.service), sum(name in product["service"] for name in target.service)),
        "sku & attrs": Tally(len(target.options), _options_met(product, target.options)),
    }


def _in_bounds(price: float, mode: str, low: float | None, high: float | None) -> bool:
    if mode == "less than":
        return high is not None and price <= high
    if mode == "greater than":
        return low is not None and price >= low
    return mode == "between" and low is not None and high is not None and low <= price <= high


def _options_met(product: Mapping[str, Any], wanted: list[tuple[str, str]]) -> int:
    """Most pairs met by any single SKU together with the attributes."""
    attributes = {(key, value) for key, values in (product.get("attributes") or {}).items() for value in values}
    skus = [set(option.items()) for option in (product.get("sku_options") or {}).values()]
    return max(sum(pair in sku | attributes for pair in wanted) for sku in [set(), *skus])


def _share(tally: Tally) -> float:
    return tally.met / tally.stated if tally.stated else 0.0


def _shops(answered: list[_Answered]) -> int:
    return len({entry.product["shop_id"] for entry in answered})


def _within_budget(answered: list[_Answered], voucher: Voucher) -> bool:
    total = sum(entry.product["price"] for entry in answered)
    if total <= voucher.budget:
        return True
    applies = voucher.voucher_type == "platform" or (voucher.voucher_type == "shop" and _shops(answered) == 1)
    return applies and price_after(total, voucher) <= voucher.budget
