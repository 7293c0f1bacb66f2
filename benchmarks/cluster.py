"""How long clustering takes and what it finds: synthetic problems with planted near-duplicates, one JSON line out.

Usage: python -m benchmarks.cluster [--problems 100000] [--minhash]. Near-duplicates are planted by rewording,
reordering and renumbering the clauses of a base query; recall is the share of planted pairs that end in one cluster,
precision the share of joined pairs that the rule confirms when read pair by pair. With `--minhash` the same texts go
through datatrove too.
"""

import argparse
import json
import random
import resource
import sys
import time
from collections import defaultdict
from itertools import pairwise

from benchmarks import minhash
from service.domain.leaks.leakage import LEAK_1, EdgeKind, ProblemFacts, clusters, edges
from service.domain.leaks.queries import near_equal, normalise

VOCABULARY = 30_000
DUPLICATE_SHARE = 0.2
FRAMES = ("Looking for", "Show me", "Find", "I need", "Can you help me find")


def words(rng: random.Random) -> list[str]:
    """A vocabulary of pronounceable words."""
    made: set[str] = set()
    while len(made) < VOCABULARY:
        made.add("".join(rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(rng.randint(2, 5))))
    return sorted(made)


def clauses(rng: random.Random, vocabulary: list[str]) -> list[str]:
    """The wants of one query. Word frequencies are skewed, as in real shops."""
    count = rng.randint(2, 6)
    return [
        " ".join(vocabulary[int(len(vocabulary) * rng.random() ** 3)] for _ in range(rng.randint(3, 6)))
        for _ in range(count)
    ]


def spell(rng: random.Random, wants: list[str]) -> str:
    """One wording of a query."""
    order = rng.sample(wants, len(wants))
    return f"{rng.choice(FRAMES)} {', '.join(order)}, priced above {rng.randint(5, 900)} pesos."


def problems(count: int, seed: int) -> tuple[list[ProblemFacts], list[tuple[str, str]]]:
    """Problems and the pairs among them that were planted."""
    rng = random.Random(seed)
    vocabulary = words(rng)
    made: list[ProblemFacts] = []
    planted: list[tuple[str, str]] = []
    while len(made) < count:
        wants = clauses(rng, vocabulary)
        copies = 2 if rng.random() < DUPLICATE_SHARE / 2 else 1
        names = [f"p{len(made) + n:08}" for n in range(copies)]
        made += [
            ProblemFacts(name, "legacy_shoppingbench", "product", spell(rng, wants), True, frozenset({f"g{name}"}))
            for name in names
        ]
        planted += [(names[0], name) for name in names[1:]]
    return made, planted


def main() -> None:
    """Run once and print the figures."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--problems", type=int, default=100_000)
    arguments.add_argument("--seed", type=int, default=15)
    arguments.add_argument("--minhash", action="store_true", help="compare with datatrove")
    options = arguments.parse_args()
    made, planted = problems(options.problems, options.seed)
    before_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    start, start_cpu = time.perf_counter(), time.process_time()
    found = edges(made, LEAK_1)
    cluster = clusters(found, [facts.problem_id for facts in made])
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - start_cpu
    text = {facts.problem_id: facts.query or "" for facts in made}
    joined = [edge for edge in found if edge.kind is not EdgeKind.SUSPECT]
    confirmed = sum(near_equal(text[edge.a], text[edge.b], LEAK_1.queries) for edge in joined)
    figures = {
        "problems": len(made),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu_seconds, 2),
        "peak_megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "peak_megabytes_before": round(before_bytes / 2**20),
        "edges": len(joined),
        "planted_pairs": len(planted),
        "recall": round(sum(cluster[a] == cluster[b] for a, b in planted) / max(len(planted), 1), 5),
        "precision": round(confirmed / max(len(joined), 1), 5),
    }
    sys.stdout.write(json.dumps(figures) + "\n")
    if options.minhash:
        for name, shape in minhash.SHAPES.items():
            sys.stdout.write(json.dumps({"way": name} | compared(made, planted, shape)) + "\n")


def compared(made: list[ProblemFacts], planted: list[tuple[str, str]], shape: minhash.Shape) -> dict[str, object]:
    """What datatrove makes of the same texts: pairs it joins that the rule does not confirm cost it precision."""
    found = minhash.by_datatrove([normalise(facts.query or "", LEAK_1.queries) for facts in made], shape)
    if found is None:
        return {"not installed": "pip install 'sluice-sn15[bench]'"}
    place = {facts.problem_id: number for number, facts in enumerate(made)}
    together = [found.cluster_of.get(place[a], -1) == found.cluster_of.get(place[b], -2) for a, b in planted]
    members: dict[int, list[int]] = defaultdict(list)
    for number, cluster in sorted(found.cluster_of.items()):
        members[cluster].append(number)
    pairs = [pair for numbers in members.values() for pair in pairwise(numbers)]
    confirmed = sum(near_equal(made[a].query or "", made[b].query or "", LEAK_1.queries) for a, b in pairs)
    return {
        "cpu_seconds": round(found.seconds, 2),
        "recall": round(sum(together) / max(len(planted), 1), 5),
        "precision": round(confirmed / max(len(pairs), 1), 5),
    }


if __name__ == "__main__":
    main()
