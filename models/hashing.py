"""Hashes of integers by SplitMix64 (Steele, Lea and Flood, 2014), and hashes of texts by XXH3."""

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray


def splitmix64(x: NDArray[np.uint64], seed: int = 0) -> NDArray[np.uint64]:
    """Return the hash of each number in `x`. Another `seed` gives other hashes."""
    with np.errstate(over="ignore"):
        x = x + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


def threshold(share: float) -> np.uint64:
    """Return a bound so that the fraction `share` of all 64-bit hashes lies below it."""
    return np.uint64(min(int(share * 2**64), 2**64 - 1))


def text_hashes(texts: pa.Array, seed: int = 0) -> NDArray[np.uint64]:
    """Return the hash of each text, uint64 [n]."""
    digest = xxhash.xxh3_64_intdigest
    values = texts.cast(pa.binary()).to_pylist()
    return np.fromiter((digest(value, seed) for value in values), np.uint64, len(values))
