"""The catalogue: product documents as ShoppingBench indexes them, generated from a seed or read from a file.

It does not search and knows no problem. A generated catalogue comes in families: products of the same title words and
the same bag of option words, which differ in how options combine. Only a product view tells them apart; ids are uniform,
so neither position nor rank gives one away.
"""

import gzip
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from service.errors import ErrorCode, SluiceError
from service.world.vocabulary import BRANDS, COLORS, KINDS, SERVICES, Kind

ID_RANGE = range(2_000_000_000, 5_999_999_999)
SHOP_ID_RANGE = range(1_000_000, 9_999_999)


class Product(msgspec.Struct, frozen=True):
    """One product document, field for field as ShoppingBench's index holds it."""

    product_id: str
    shop_id: str
    title: str
    price: float
    """PHP."""
    sold_count: int = 0
    service: list[str] = []
    sku_options: dict[str, dict[str, str]] = {}
    attributes: dict[str, list[str]] = {}
    brand: str = ""
    category: str = ""
    short_description: str = ""
    description: str = ""
    specification: str = ""
    main_image_url: str = ""
    product_url: str = ""

    @property
    def contents(self) -> str:
        """The indexed text: title, SKU values, attribute values, a line each."""
        skus = " ".join(value for option in self.sku_options.values() for value in option.values())
        attributes = " ".join(value for values in self.attributes.values() for value in values)
        return f"{self.title}\n{skus}\n{attributes}"


class Document(msgspec.Struct, frozen=True):
    """A line of a catalogue file."""

    id: str
    contents: str
    product: Product


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Products sorted by id, with the text each is found by."""

    documents: tuple[Document, ...]
    by_id: dict[str, Product]
    families: tuple[tuple[str, ...], ...]
    """Ids of products only a view tells apart; empty for a catalogue read from a file."""

    def raw(self) -> dict[str, dict[str, Any]]:
        """Plain documents by id, as `domain.scoring` takes them."""
        return {product_id: msgspec.to_builtins(product) for product_id, product in self.by_id.items()}


def load_catalogue(path: Path) -> Catalogue:
    """Read a catalogue file: JSONL of {id, contents, product}, gzipped where the name says so.

    Raises:
        SluiceError: BAD_INPUT when a line is no product document, NOT_FOUND when there is no such file.
    """
    if not path.is_file():
        raise SluiceError(ErrorCode.NOT_FOUND, f"no catalogue file at {path}")
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    try:
        documents = msgspec.json.Decoder(Document).decode_lines(data)
    except msgspec.DecodeError as fault:
        raise SluiceError(ErrorCode.BAD_INPUT, f"{path.name} is not a catalogue: {fault}") from fault
    return _catalogue(documents, ())


def generate_catalogue(seed: int, families: int = 300, shops: int = 60) -> Catalogue:
    """Generate `families` families of three to five products, spread over `shops` shops."""
    rng = random.Random(f"catalogue/{seed}")
    product_ids = iter(rng.sample(ID_RANGE, families * 5))
    shop_ids = [str(shop_id) for shop_id in rng.sample(SHOP_ID_RANGE, shops)]
    pairs = rng.sample([(brand, kind) for brand in BRANDS for kind in KINDS], families)
    products: list[Product] = []
    groups = []
    for brand, kind in pairs:
        members = list(_family(rng, brand, kind, product_ids, shop_ids))
        groups.append(tuple(sorted(member.product_id for member in members)))
        products.extend(members)
    return _catalogue([Document(item.product_id, item.contents, item) for item in products], tuple(groups))


def _catalogue(documents: list[Document], families: tuple[tuple[str, ...], ...]) -> Catalogue:
    ordered = tuple(sorted(documents, key=lambda document: document.id))
    return Catalogue(ordered, {document.id: document.product for document in ordered}, families)


def _family(
    rng: random.Random, brand: str, kind: Kind, product_ids: Iterator[int], shop_ids: list[str]
) -> Iterator[Product]:
    """Four ways to combine the same option words (sometimes one is missing), and one that differs in price alone."""
    style = rng.choice(kind.styles)
    colors, sizes, values = rng.sample(COLORS, 2), rng.sample(kind.sizes, 2), rng.sample(kind.values, 2)
    members = [(straight, crossed) for straight in (True, False) for crossed in (True, False)]
    rng.shuffle(members)
    for straight, crossed in members[: rng.choice((3, 4, 4))]:
        yield _member(rng, brand, kind, style, (colors, sizes, values), (straight, crossed), next(product_ids), shop_ids)
    if rng.random() < 0.3:
        yield _member(
            rng, brand, kind, style, (colors, sizes, values), members[0], next(product_ids), shop_ids, price_factor=3
        )


def _member(
    rng: random.Random,
    brand: str,
    kind: Kind,
    style: str,
    words: tuple[list[str], list[str], list[str]],
    combination: tuple[bool, bool],
    product_id: int,
    shop_ids: list[str],
    price_factor: int = 1,
) -> Product:
    colors, sizes, values = words
    straight, crossed = combination
    skus = dict(zip(colors, sizes if straight else reversed(sizes), strict=True))
    first, second = values if crossed else reversed(values)
    return Product(
        product_id=str(product_id),
        shop_id=rng.choice(shop_ids),
        title=f"{brand.capitalize()} {style.title()} {kind.noun.title()}",
        price=round(kind.price * price_factor * rng.uniform(0.8, 1.25), 2),
        sold_count=int(rng.paretovariate(0.7)) % 5000,
        service=sorted(rng.sample(SERVICES, rng.choice((0, 1, 1, 2)))),
        sku_options={
            str(index): {"color_family": color, "size": size} for index, (color, size) in enumerate(skus.items(), 1)
        },
        attributes={kind.parts[0]: [first], kind.parts[1]: [second]},
        brand=brand,
        category=f"{kind.category} > {kind.noun.title()}",
        short_description=f"A {style} {kind.noun} by {brand}.",
        description=f"{kind.noun.capitalize()} in {' or '.join(sorted(colors))}, sizes {', '.join(sorted(sizes))}.",
        product_url=f"https://shop.example/products/-i{product_id}.html",
    )
