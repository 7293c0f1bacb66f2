"""MinHash signatures of texts: how alike two are, estimated from a few hundred bytes each.

An estimate, not a comparison (`near_pairs` compares exactly); the same on every machine. Broder, "On the resemblance
and containment of documents" (1997), with multiply-shift hashing (Dietzfelbinger et al., 1997) of CRC-32s.
"""

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class _Family(NamedTuple):
    factors: NDArray[np.uint64]
    offsets: NDArray[np.uint64]


@lru_cache(maxsize=4)
def _family(permutations: int) -> _Family:
    """Hash functions drawn from a hash of their number, so that every machine has the same."""
    drawn = b"".join(hashlib.sha256(f"minhash {index}".encode()).digest()[:16] for index in range(permutations))
    numbers = np.frombuffer(drawn, dtype="<u8").reshape(permutations, 2)
    return _Family(numbers[:, :1] | np.uint64(1), numbers[:, 1:])


def shingles(words: Sequence[str], size: int) -> set[str]:
    """Runs of so many neighbouring words; a shorter text is one shingle."""
    if not words:
        return set()
    return {" ".join(words[start : start + size]) for start in range(max(1, len(words) - size + 1))}


def signature(of: Iterable[str], permutations: int) -> bytes:
    """The signature of a set of texts: four bytes a permutation; empty for the empty set."""
    hashes = np.fromiter({zlib.crc32(text.encode(errors="replace")) for text in of}, dtype=np.uint64)
    if not len(hashes):
        return b""
    factors, offsets = _family(permutations)
    smallest = np.full(permutations, np.iinfo(np.uint64).max, dtype=np.uint64)
    for start in range(0, len(hashes), 1_024):  # bounds the table held in memory
        table = factors * hashes[None, start : start + 1_024] + offsets
        np.minimum(smallest, table.min(axis=1), out=smallest)
    return (smallest >> np.uint64(32)).astype("<u4").tobytes()


def resemblance(one: bytes, other: bytes) -> float:
    """Estimated Jaccard similarity of two sets, 0 to 1; 0 where either is empty.

    Its standard error is sqrt(j (1 - j) / permutations): 0.0375 at 0.9 with 64. Signatures must be of one length.
    """
    if not one or not other:
        return 0.0
    equal = np.frombuffer(one, dtype="<u4") == np.frombuffer(other, dtype="<u4")
    return float(equal.mean())
