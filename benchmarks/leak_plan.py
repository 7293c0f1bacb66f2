"""What the numbers of the near-equal rule do to real questions, for `docs/leak-plan.md`.

Usage: python -m benchmarks.leak_plan FILE..., each a JSONL file of questions with gold, such as ShoppingBench's.
"""

import sys
from collections import defaultdict
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from service.domain.leaks.benchmark_files import joined_items, read_items
from service.domain.leaks.leakage import LEAK_1
from service.domain.leaks.near_pairs import near_pairs
from service.domain.leaks.queries import QueryRule, informative, normalise, similarity

THRESHOLDS = (0.30, 0.35, 0.40, 0.45, 0.50, 0.60)
LEAST_TOKENS = (1, 2, 3, 4, 5, 6)


def main() -> None:
    """Print the pairs that each choice would join, and how alike questions are that share an answer."""
    rule = LEAK_1.queries
    items = joined_items([read_items(enumerate(Path(name).read_bytes().splitlines(), 1)) for name in sys.argv[1:]])
    asked = [item.query for item in items if item.query]
    texts = distinct(asked, rule)
    print(f"{len(asked)} questions, {len(texts)} texts, {len(texts) * (len(texts) - 1) // 2} pairs")
    for threshold in THRESHOLDS:
        print(f"threshold {threshold:.2f}: {len(near_pairs(texts, replace(rule, threshold=threshold)))} pairs joined")
    for least in LEAST_TOKENS:
        print(
            f"{least} informative tokens: {sum(informative(text, rule) >= least for text in texts)} texts may be joined"
        )
    uncut = replace(rule, voucher_opening="\0")
    print(f"voucher block not cut: {len(near_pairs(distinct(asked, uncut), uncut))} pairs joined")
    by_gold = defaultdict(set)
    for item in items:
        for product_id in item.gold_ids:
            by_gold[product_id].add(normalise(item.query or "", rule))
    alike = [similarity(a, b, rule).ratio for words in by_gold.values() for a, b in combinations(sorted(words), 2)]
    print(f"questions that share an answer: {len(alike)} pairs, the closest at {max(alike, default=0):.2f}")


def distinct(queries: list[str], rule: QueryRule) -> list[str]:
    """Normalised texts, each once."""
    return sorted({normalise(query, rule) for query in queries})


if __name__ == "__main__":
    main()
