"""Generated shopping queries for the tests of texts and leaks."""

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

NOUNS = [
    "kettle",
    "tent",
    "drill",
    "violin",
    "lantern",
    "blender",
    "stapler",
    "helmet",
    "router",
    "tripod",
    "rug",
    "saddle",
    "mirror",
    "candle",
]
TRAITS = [
    "foldable",
    "magnetic",
    "waterproof",
    "engraved",
    "scented",
    "cordless",
    "adjustable",
    "insulated",
    "ergonomic",
    "vintage",
]
MAKERS = [
    "zephyra",
    "borealis",
    "quintoro",
    "maplewick",
    "nordhaven",
    "ilustra",
    "kestrelco",
    "ombravia",
    "pellucid",
    "tarnwell",
]
PLACES = [
    "camping",
    "kitchen",
    "garage",
    "studio",
    "office",
    "nursery",
    "balcony",
    "workshop",
    "classroom",
    "stable",
    "garden",
    "attic",
]


@pytest.fixture(scope="session")
def queries() -> list[str]:
    """200 distinct requests in a few clauses; some differ in a word or a number only."""
    rng = random.Random(15)
    made: dict[str, None] = {}
    while len(made) < 200:
        noun, trait, maker, place = (rng.choice(words) for words in (NOUNS, TRAITS, MAKERS, PLACES))
        other = rng.choice(TRAITS)
        made[
            f"Looking for a {trait} {noun} from {maker}, {other} enough for the {place},"
            f" priced above {rng.randint(5, 900)} pesos."
        ] = None
    return list(made)


@pytest.fixture(scope="session")
def benchmark(shared_data: Path) -> list[dict[str, Any]]:
    """The 900 problems of the public benchmark, each with the name of its file."""
    return [
        {"file": path.stem, **msgspec.json.decode(line)}
        for path in sorted((shared_data / "shoppingbench").glob("*.jsonl"))
        for line in path.read_bytes().splitlines()
    ]


@pytest.fixture(scope="session")
def benchmark_queries(benchmark: list[dict[str, Any]]) -> list[str]:
    """The texts of those problems."""
    return [problem["query"] for problem in benchmark]
