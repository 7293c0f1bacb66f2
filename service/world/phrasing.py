"""How a shopper words a wish: several phrasings per part, so that two queries rarely read alike.

It turns constraints into text and adds none: all that a query says is in its targets, and a title is paraphrased by
brand, style and noun.
"""

import random
from collections.abc import Sequence

from service.domain.sn15.scoring import Target, Voucher
from service.world.catalogue import Product
from service.world.vocabulary import SERVICE_WORDS

_NAMES = (
    "{brand} {style} {noun}",
    "{style} {noun} from {brand}",
    "{noun} by {brand}, the {style} one",
    "{style} {noun} (brand {brand})",
)
_COLOR_SIZES = ("in {color}, size {size}", "{color} and {size} in one", "the {size} version in {color}")
_ATTRIBUTES = ("with {value} as {key}", "where the {key} is {value}", "having {value} for its {key}")
_SERVICES = ("with {service}", "that comes with {service}", "offering {service}")
_BETWEEN = ("priced from {low} to {high} PHP", "costing between {low} and {high} pesos", "in the {low}-{high} range")
_ABOVE = ("priced above {low} PHP", "that costs more than {low} pesos")

PRODUCT_FRAMES = (
    "Looking for a {0}.",
    "Show me a {0}.",
    "I need a {0}, can you find it?",
    "Can you help me get a {0}?",
    "I'd like to buy a {0}.",
    "Please search for a {0}.",
    "Is there any {0}?",
    "My sister asked for a {0}; which one fits?",
)
_SHOP_FRAMES = (
    ("Find shops offering {0}.", ", a ", ", and a "),
    ("I want everything from one store: {0}.", "; a ", "; finally a "),
    ("Which single shop sells {0}?", ", plus a ", ", together with a "),
    ("Same seller please, to save on delivery. {0}.", ". Then a ", ". Last, a "),
)
_VOUCHER_FRAMES = (
    ("I'm looking for {0}. Please show me these products.", ", a ", ", and a "),
    ("Help me put together an order: {0}.", "; a ", "; and a "),
    ("My cart should hold {0}.", ", next a ", ", and also a "),
    ("Find {0}.", ". Also, look for a ", ". Also, look for a "),
)


def describe(rng: random.Random, product: Product, target: Target) -> str:
    """A noun phrase without article that names the product's kind and every constraint of the target."""
    noun = product.category.rpartition(" > ")[2].lower()
    style = product.title.lower().removeprefix(product.brand).removesuffix(noun).strip()
    parts = [rng.choice(_NAMES).format(brand=product.brand, style=style, noun=noun)]
    for option in target.sku_options:
        parts.append(rng.choice(_COLOR_SIZES).format(color=option["color_family"], size=option["size"]))
    for entry in target.attributes:
        for key, values in entry.items():
            parts.append(rng.choice(_ATTRIBUTES).format(key=key.replace("_", " "), value=values[0]))
    parts += [rng.choice(_SERVICES).format(service=SERVICE_WORDS[name]) for name in target.service]
    for bounds in target.price:
        for low, high in bounds.values():
            wording = rng.choice(_ABOVE if high is None else _BETWEEN)
            parts.append(wording.format(low=amount(low), high=amount(high)))
    return ", ".join(parts)


def product_query(rng: random.Random, item: str, frame: int | None = None) -> str:
    """One wish as a sentence; `frame` picks the phrasing."""
    return PRODUCT_FRAMES[rng.randrange(len(PRODUCT_FRAMES)) if frame is None else frame].format(item)


def shop_query(rng: random.Random, items: Sequence[str]) -> str:
    """Several wishes of one shop."""
    return _listed(rng.choice(_SHOP_FRAMES), items)


def voucher_query(rng: random.Random, items: Sequence[str], voucher: Voucher) -> str:
    """Wishes, then the voucher block exactly as ShoppingBench words it."""
    return f"{_listed(rng.choice(_VOUCHER_FRAMES), items)}\n\n{voucher_rules(voucher)}"


def voucher_rules(voucher: Voucher) -> str:
    """The budget sentence and the three rules of a voucher."""
    where = "applies to all products"
    if voucher.voucher_type == "shop":
        where = "only applies to the products from the same shop"
    what = f"a fixed discount of `{amount(voucher.face_value)}`"
    if voucher.discount_type == "percentage":
        percent = round((voucher.discount or 0) * 100)
        what = f"a percentage discount of `{percent}%` with a cap of `{amount(voucher.cap)}`"
    return (
        f"My budget is only `{amount(voucher.budget)}`, but I have a voucher with the following rules:\n"
        f"1. The voucher {where}.\n"
        f"2. It is valid only when the total price of the products exceeds `{amount(voucher.threshold)}`.\n"
        f"3. It provides {what}."
    )


def _listed(frame: tuple[str, str, str], items: Sequence[str]) -> str:
    sentence, between, last = frame
    *first, end = items
    return sentence.format("a " + (between.join(first) + last + end if first else end))


def amount(value: float | None) -> str:
    """An amount of money as queries write it."""
    return "" if value is None else f"{value:g}"
