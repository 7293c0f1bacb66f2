"""The catalogue: product documents as ShoppingBench indexes them, generated from a seed or read from a file.

It does not search and knows no problem. A generated catalogue comes in families: products of the same title words and
the same bag of option words, which differ in how options combine. Only a product view tells them apart; ids are
uniform, so neither position nor rank gives one away.
"""

import gzip
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from service.errors import ErrorCode, SluiceError
from service.world.vocabulary import BRANDS, COLORS, KINDS, SERVICES, Kind

ID_RANGE = range(2_000_000_000, 5_999_999_999)
SHOP_ID_RANGE = range(1_000_000, 9_999_999)
LARGEST_FAMILY = 5
AS_FAMILY = 0.8
"""Chance that a product has its family's shop; and again its services."""


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
    product_ids = iter(rng.sample(ID_RANGE, families * LARGEST_FAMILY))
    shop_ids = [str(shop_id) for shop_id in rng.sample(SHOP_ID_RANGE, shops)]
    drawn = [
        [family.member(rng, variant, next(product_ids), shop_ids) for variant in _variants(rng)]
        for family in (
            _Family.draw(rng, brand, kind, rng.choice(shop_ids))
            for brand, kind in rng.sample([(brand, kind) for brand in BRANDS for kind in KINDS], families)
        )
    ]
    documents = [Document(product.product_id, product.contents, product) for members in drawn for product in members]
    return _catalogue(documents, tuple(tuple(sorted(product.product_id for product in members)) for members in drawn))


def _catalogue(documents: list[Document], families: tuple[tuple[str, ...], ...]) -> Catalogue:
    ordered = tuple(sorted(documents, key=lambda document: document.id))
    return Catalogue(ordered, {document.id: document.product for document in ordered}, families)


class _Variant(NamedTuple):
    """How one member combines its family's words."""

    sizes_crossed: bool
    values_crossed: bool
    price_factor: int = 1


def _variants(rng: random.Random) -> list[_Variant]:
    """Three or four of the four ways to combine the words, sometimes one of them again at a price of its own."""
    ways = [_Variant(sizes, values) for sizes in (False, True) for values in (False, True)]
    rng.shuffle(ways)
    chosen = ways[: rng.choice((3, 4, 4))]
    return [*chosen, chosen[0]._replace(price_factor=3)] if rng.random() < 0.3 else chosen


@dataclass(frozen=True, slots=True)
class _Family:
    """The words every member of a family shares."""

    brand: str
    kind: Kind
    style: str
    colors: tuple[str, str]
    sizes: tuple[str, str]
    values: tuple[str, str]
    services: tuple[str, ...]
    home: str
    """Shop that sells most members, so that a shop filter alone rarely settles which is meant."""

    @classmethod
    def draw(cls, rng: random.Random, brand: str, kind: Kind, home: str) -> "_Family":
        """Draw the words of a family of this brand and kind."""
        words = (_two(rng, COLORS), _two(rng, kind.sizes), _two(rng, kind.values))
        return cls(brand, kind, rng.choice(kind.styles), *words, _services(rng), home)

    def member(self, rng: random.Random, variant: _Variant, product_id: int, shop_ids: list[str]) -> Product:
        """One product of the family."""
        sizes = reversed(self.sizes) if variant.sizes_crossed else self.sizes
        values = reversed(self.values) if variant.values_crossed else self.values
        skus = enumerate(zip(self.colors, sizes, strict=True), 1)
        return Product(
            product_id=str(product_id),
            shop_id=self.home if rng.random() < AS_FAMILY else rng.choice(shop_ids),
            title=f"{self.brand} {self.style} {self.kind.noun}".title(),
            price=round(self.kind.price * variant.price_factor * rng.uniform(0.8, 1.25), 2),
            sold_count=int(rng.paretovariate(0.7)) % 5000,
            service=list(self.services if rng.random() < AS_FAMILY else _services(rng)),
            sku_options={str(number): {"color_family": color, "size": size} for number, (color, size) in skus},
            attributes={key: [value] for key, value in zip(self.kind.parts, values, strict=True)},
            brand=self.brand,
            category=f"{self.kind.category} > {self.kind.noun.title()}",
            short_description=f"A {self.style} {self.kind.noun} by {self.brand}.",
            description=f"In {' or '.join(sorted(self.colors))}, sizes {', '.join(sorted(self.sizes))}.",
            product_url=f"https://shop.example/products/-i{product_id}.html",
        )


def _services(rng: random.Random) -> tuple[str, ...]:
    return tuple(sorted(rng.sample(SERVICES, rng.choice((0, 1, 1, 2)))))


def _two(rng: random.Random, words: tuple[str, ...]) -> tuple[str, str]:
    first, second = rng.sample(words, 2)
    return first, second
